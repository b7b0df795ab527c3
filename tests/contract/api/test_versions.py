"""Requests that mean one version of an object, or put it there as it is: how `kube_api` writes."""

from typing import Any

from podyard.proto.message import ObjectRef
from tests.contract.api.conftest import Api, outcomes, pod, stored

Document = dict[str, Any]


def deployment(**more: Any) -> Document:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", **more},
        "spec": spec,
    }


async def test_another_version_than_the_one_that_is_meant_is_refused_and_stays(api: Api) -> None:
    first = (await api.apply(pod("a"))).results[0].position
    second = (await api.apply(pod("a", labels={"x": "1"}))).results[0].position
    late = await api.apply(pod("a", labels={"x": "2"}), manner="replace", expected=(first,))
    assert [(one.outcome, one.errors[0].type) for one in late.results] == [("refused", "Conflict")]
    assert (await stored(api.bus, "pods", "a")).sequence == second
    good = await api.apply(pod("a", labels={"x": "3"}), manner="replace", expected=(second,))
    assert outcomes(good) == ["configured"]


async def test_of_two_writers_of_one_version_one_is_refused(api: Api) -> None:
    first = (await api.apply(pod("a"))).results[0].position
    replies = [await api.apply(pod("a", labels={"x": x}), expected=(first,)) for x in ("1", "2")]
    assert [outcomes(one) for one in replies] == [["configured"], ["refused"]]


async def test_none_may_be_there_where_none_is_expected(api: Api) -> None:
    assert outcomes(await api.apply(pod("a"), expected=(0,))) == ["created"]
    assert [one.errors[0].type for one in (await api.apply(pod("a"), expected=(0,))).results] == ["Conflict"]


async def test_a_version_is_expected_of_each_object_or_of_none(api: Api) -> None:
    reply = await api.apply(pod("a"), pod("b"), expected=(0,))
    assert outcomes(reply) == ["refused", "refused"]
    assert "for each object, or for none" in reply.results[0].message


async def test_what_is_replaced_keeps_nothing_that_it_does_not_say_but_its_status(api: Api) -> None:
    annotations = {"deployment.kubernetes.io/revision": "1", "mine": "2"}
    await api.apply(deployment(annotations=annotations, finalizers=["example.com/f"]))
    status = await api.apply({**deployment(), "status": {"replicas": 2}}, manner="status")
    assert outcomes(status) == ["configured"]
    before = (await stored(api.bus, "deployments", "web")).document()
    assert (before["status"], before["metadata"]["annotations"]) == ({"replicas": 2}, annotations)
    assert outcomes(await api.apply({**deployment(), "status": {"replicas": 9}}, manner="replace")) == ["configured"]
    after = (await stored(api.bus, "deployments", "web")).document()
    assert not {"annotations", "finalizers"} & after["metadata"].keys()
    assert after["status"] == {"replicas": 2}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"]


async def test_a_status_changes_nothing_else(api: Api) -> None:
    await api.apply(deployment())
    before = (await stored(api.bus, "deployments", "web")).document()
    changed = deployment(labels={"x": "y"})
    changed["spec"]["replicas"] = 7
    await api.apply({**changed, "status": {"replicas": 1}}, manner="status")
    assert (await stored(api.bus, "deployments", "web")).document() == {**before, "status": {"replicas": 1}}


async def test_what_is_not_there_is_neither_replaced_nor_given_a_status(api: Api) -> None:
    for manner in ("replace", "status"):
        assert outcomes(await api.apply(pod("a"), manner=manner)) == ["notFound"]


async def test_who_manages_fields_is_kept_of_who_says_so_and_by_who_applies(api: Api) -> None:
    managed = [{"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {}}}]
    await api.apply(deployment(managedFields=[{"manager": "nobody"}]))
    assert "managedFields" not in (await stored(api.bus, "deployments", "web")).document()["metadata"]
    await api.apply(deployment(managedFields=managed), manner="replace")
    await api.apply(deployment(labels={"x": "y"}))
    assert (await stored(api.bus, "deployments", "web")).document()["metadata"]["managedFields"] == managed


async def test_a_dry_run_shows_objects_of_all_kinds_but_secrets(api: Api) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    reply = await api.apply(deployment(), secret, dry_run=True, admitted=True, partial=True)
    shown, hidden = reply.results
    assert b'"revisionHistoryLimit":10' in bytes(shown.admitted[0])
    assert hidden.admitted == ()


async def test_another_version_than_the_one_that_is_meant_is_not_deleted(api: Api) -> None:
    first = (await api.apply(deployment())).results[0].position
    second = (await api.apply(deployment(labels={"x": "y"}))).results[0].position
    web = ObjectRef(resource="deployments", namespace="default", name="web")
    refused = await api.delete(web, expected=(first,))
    assert [(one.outcome, one.errors[0].type) for one in refused.results] == [("refused", "Conflict")]
    assert outcomes(await api.delete(web, expected=(second,))) == ["deleted"]
