"""The Kubernetes API over HTTPS, with the api behind it."""

import base64
import json
from typing import Any

import pytest

from podyard.bus.outgoing import Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord
from tests.contract.kube_api.conftest import Clients
from tests.support.waiting import eventually

Document = dict[str, Any]
NAMESPACE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
MERGE = {"Content-Type": "application/merge-patch+json"}


def config(name: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", replicas: int = 2) -> Document:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("token", "path", "code"),
    [
        ("", "/version", 200),
        ("", "/livez", 200),
        ("", "/api/v1/pods", 401),
        ("", "/apis", 401),
        ("wrong", "/api/v1/pods", 401),
        ("a-stranger", "/api/v1/pods", 403),
        ("a-reader", "/api/v1/pods", 200),
        ("a-person", "/api/v1/pods", 200),
    ],
)
async def test_nobody_reads_more_than_he_may(clients: Clients, token: str, path: str, code: int) -> None:
    answer = await clients.ask("GET", path, token)
    assert answer.status_code == code
    if code >= 400:
        assert (answer.json()["kind"], answer.json()["code"]) == ("Status", code)


async def test_a_reader_writes_nothing_and_is_told_so_as_the_reference_does(clients: Clients) -> None:
    refused = await clients.ask("POST", f"{NAMESPACE}/configmaps", "a-reader", json=config("c"))
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        'configmaps is forbidden: User "ray" cannot create resource "configmaps" in API group "" in the namespace "default"',
    )
    for token, allowed in (("a-reader", False), ("a-person", True)):
        about = {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": about}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = await clients.ask("POST", path, token, json=review)
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, allowed)


async def test_people_ask_whose_a_token_is(clients: Clients) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    for token, status in (
        (
            "a-reader",
            {"authenticated": True, "user": {"username": "ray", "groups": ["podyard:readers", "system:authenticated"]}},
        ),
        ("nobody's", {"authenticated": False, "user": {}}),
    ):
        answer = await clients.ask("POST", path, json={"spec": {"token": token}})
        assert (answer.status_code, answer.json()["status"]) == (201, status)
    assert (await clients.ask("POST", path, json={"spec": {}})).status_code == 400
    assert (await clients.ask("POST", path, "a-reader", json={"spec": {"token": "a-person"}})).status_code == 403


async def test_a_status_is_whole_whoever_wrote_it(clients: Clients) -> None:
    """Client libraries refuse one in which a required field is missing."""
    path = f"{APPS}/statefulsets"
    made = await clients.create(path, {**deployment(), "kind": "StatefulSet"})
    read = (await clients.ask("GET", f"{path}/web")).json()
    patched = (await clients.ask("PATCH", f"{path}/web", headers=MERGE, content=b"{}")).json()
    assert made["status"] == read["status"] == patched["status"] == {"replicas": 0}


async def test_an_object_lives(clients: Clients) -> None:
    path = f"{NAMESPACE}/configmaps"
    made = await clients.create(path, config("c", x="1"))
    assert made["metadata"]["uid"]
    again = await clients.ask("POST", path, json=config("c"))
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    found = (await clients.ask("GET", f"{path}/c")).json()
    assert (found["data"], found["metadata"]["resourceVersion"]) == ({"x": "1"}, made["metadata"]["resourceVersion"])
    patched = (await clients.ask("PATCH", f"{path}/c", headers=MERGE, content=b'{"data":{"y":"2"}}')).json()
    assert patched["data"] == {"x": "1", "y": "2"}
    old = await clients.ask("PUT", f"{path}/c", json=found)
    assert (old.status_code, old.json()["reason"]) == (409, "Conflict")
    assert "please apply your changes to the latest version" in old.json()["message"]
    put = await clients.ask("PUT", f"{path}/c", json={**patched, "data": {"z": "3"}})
    assert (put.status_code, put.json()["data"]) == (200, {"z": "3"})
    gone = await clients.ask("DELETE", f"{path}/c")
    assert (gone.status_code, gone.json()["status"]) == (200, "Success")
    missing = await clients.ask("GET", f"{path}/c")
    assert (missing.status_code, missing.json()["message"]) == (404, 'configmaps "c" not found')


async def test_a_dry_run_writes_nothing_and_shows_what_it_would(clients: Clients) -> None:
    answer = await clients.ask("POST", f"{APPS}/deployments?dryRun=All", json=deployment())
    assert (answer.status_code, answer.json()["spec"]["revisionHistoryLimit"]) == (201, 10)
    assert (await clients.ask("GET", f"{APPS}/deployments/web")).status_code == 404


async def test_a_body_that_asks_for_a_dry_run_deletes_and_evicts_nothing(clients: Clients) -> None:
    """kubectl says it there."""
    await clients.create(f"{NAMESPACE}/configmaps", config("c"))
    containers = [{"name": "c", "image": "i"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    await clients.create(f"{NAMESPACE}/pods", pod)
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
    assert (await clients.ask("DELETE", f"{NAMESPACE}/configmaps/c", json=options)).status_code == 200
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p"},
        "deleteOptions": {"dryRun": ["All"]},
    }
    assert (await clients.ask("POST", f"{NAMESPACE}/pods/p/eviction", json=eviction)).status_code == 201
    for path in (f"{NAMESPACE}/configmaps/c", f"{NAMESPACE}/pods/p"):
        found = await clients.ask("GET", path)
        assert (found.status_code, "deletionTimestamp" in found.json()["metadata"]) == (200, False)


async def test_a_cluster_has_its_namespaces_and_keeps_them(clients: Clients) -> None:
    async def are_there() -> bool:
        items = (await clients.ask("GET", "/api/v1/namespaces")).json()["items"]
        names = {item["metadata"]["name"] for item in items}
        return names == {"default", "kube-system", "kube-public", "kube-node-lease"}

    await eventually("the namespaces of every cluster", are_there)
    refused = await clients.ask("DELETE", "/api/v1/namespaces/default")
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


async def test_what_is_not_stored_is_shown_and_not_written_back(clients: Clients) -> None:
    containers = [{"name": "c", "image": "nginx"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    made = await clients.create(f"{NAMESPACE}/pods", pod)
    assert (made["spec"]["containers"][0]["imagePullPolicy"], made["status"]["qosClass"]) == ("Always", "BestEffort")
    version = made["metadata"]["resourceVersion"]
    put = await clients.ask("PUT", f"{NAMESPACE}/pods/p", json=made)
    assert (put.status_code, put.json()["metadata"]["resourceVersion"]) == (200, version)


async def test_a_watch_tells_why_a_pod_is_not_scheduled(clients: Clients) -> None:
    containers = [{"name": "c", "image": "i"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    made = await clients.create(f"{NAMESPACE}/pods", pod)
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    await _fails(clients, uid, int(version), 1_800_000_000.0, "0/1 nodes are available")
    watch = f"{NAMESPACE}/pods?watch=true&timeoutSeconds=15&resourceVersion={version}"
    async with clients.client() as client, client.stream("GET", watch) as answer:
        async for line in answer.aiter_lines():
            told = json.loads(line)["object"]["status"]["conditions"]
            break
    [condition] = told
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
        "0/1 nodes are available",
    )
    subject = subjects.pod_scheduled("default", "p", uid)
    await clients.ask("DELETE", f"{NAMESPACE}/pods/p?gracePeriodSeconds=0")

    async def is_taken_back() -> bool:
        found = await clients.bus.get(streams.CLUSTER.name, subject)
        return found is not None and found.deleted

    await eventually("what was told of a pod that is gone is taken back", is_taken_back)


async def test_a_pod_that_fails_again_is_unscheduled_since_the_first_time(clients: Clients) -> None:
    containers = [{"name": "c", "image": "i"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    made = await clients.create(f"{NAMESPACE}/pods", pod)
    uid, position = made["metadata"]["uid"], int(made["metadata"]["resourceVersion"])

    async def said(message: str) -> dict[str, Any]:
        async def found() -> dict[str, Any] | None:
            conditions = (await clients.ask("GET", f"{NAMESPACE}/pods/p")).json()["status"].get("conditions", [])
            return next((one for one in conditions if one["message"] == message), None)

        return await eventually(f"it is said: {message}", found)

    await _fails(clients, uid, position, 1_800_000_000.0, "0/1 nodes are available")
    first = await said("0/1 nodes are available")
    await _fails(clients, uid, position, 1_800_000_100.0, "0/2 nodes are available")
    second = await said("0/2 nodes are available")
    assert second["lastTransitionTime"] == first["lastTransitionTime"]


async def _fails(clients: Clients, uid: str, position: int, at: float, message: str) -> None:
    """An attempt to schedule the pod `p` found no node."""
    record = AttemptRecord(
        namespace="default",
        name="p",
        uid=uid,
        attempt=f"1-{at:.0f}",
        outcome="unschedulable",
        at=at,
        position=position,
        message=message,
    )
    await clients.bus.publish(Outgoing(subjects.decisions("default", "p", uid), codec.encode(record)))


async def test_an_object_of_a_custom_kind_is_held_to_its_schema(clients: Clients) -> None:
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5, "default": 2}}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.e.com"},
        "spec": {
            "group": "e.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [version],
        },
    }
    found = await clients.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    established = [one["status"] for one in found["status"]["conditions"] if one["type"] == "Established"]
    assert established == ["True"]
    path = "/apis/e.com/v1/namespaces/default/boats"
    boat = {"apiVersion": "e.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"sail": "big"}}
    strict = await clients.ask("POST", f"{path}?fieldValidation=Strict", json=boat)
    assert (strict.status_code, strict.json()["message"]) == (
        400,
        'Boat in version "v1" cannot be handled as a Boat: strict decoding error: unknown field "spec.sail"',
    )
    made = await clients.ask("POST", path, json=boat)
    assert (made.json()["spec"], made.headers["Warning"]) == ({"size": 2}, '299 - "unknown field \\"spec.sail\\""')
    refused = await clients.ask("PATCH", f"{path}/a", headers=MERGE, content=b'{"spec":{"size":6}}')
    assert refused.status_code == 422
    assert refused.json()["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 6: spec.size in body should be less than or equal to 5",
            "field": "spec.size",
        }
    ]


async def test_server_side_apply_creates_takes_turns_and_conflicts(clients: Clients) -> None:
    async def apply(manager: str, document: Document, **query: str) -> Any:
        headers = {"Content-Type": "application/apply-patch+yaml"}
        params = {"fieldManager": manager, **query}
        path = f"{APPS}/deployments/web"
        return await clients.ask("PATCH", path, headers=headers, params=params, content=json.dumps(document))

    assert (await apply("one", deployment())).status_code in (200, 201)
    scaled = {**deployment(), "spec": {"replicas": 5}}
    refused = await apply("two", scaled)
    assert (refused.status_code, refused.json()["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
    forced = await apply("two", scaled, force="true")
    assert forced.json()["spec"]["replicas"] == 5
    assert {entry["manager"] for entry in forced.json()["metadata"]["managedFields"]} == {"one", "two"}


async def test_a_scale_is_read_and_patched(clients: Clients) -> None:
    await clients.create(f"{APPS}/deployments", deployment())
    path = f"{APPS}/deployments/web/scale"
    scale = (await clients.ask("GET", path)).json()
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "a=b")
    patched = await clients.ask("PATCH", path, headers=MERGE, content=b'{"spec":{"replicas":7}}')
    assert patched.json()["spec"] == {"replicas": 7}
    assert (await clients.ask("GET", f"{APPS}/deployments/web")).json()["spec"]["replicas"] == 7
    below = await clients.ask("PATCH", path, headers=MERGE, content=b'{"spec":{"replicas":-1}}')
    assert below.status_code == 422


async def test_values_of_secrets_are_for_people_alone(clients: Clients) -> None:
    value = base64.b64encode(b"hidden").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": value}}
    made = await clients.create(f"{NAMESPACE}/secrets", secret)
    assert made["data"] == {"k": value}
    for path in (f"{NAMESPACE}/secrets/s", f"{NAMESPACE}/secrets", "/api/v1/secrets?watch=true&timeoutSeconds=1"):
        shown = (await clients.ask("GET", path)).text
        hidden = (await clients.ask("GET", path, "a-reader")).text
        assert (value in shown, value in hidden, '"k"' in hidden) == (True, False, True)
    [listed] = (await clients.ask("GET", f"{NAMESPACE}/secrets", "a-reader")).json()["items"]
    assert base64.b64decode(listed["data"]["k"], validate=True) == b"<encrypted>", "libraries decode it"
    back = await clients.ask("PUT", f"{NAMESPACE}/secrets/s", json={**listed, "kind": "Secret", "apiVersion": "v1"})
    assert (back.status_code, "was not shown to you" in back.text) == (422, True)
    patched = await clients.ask(
        "PATCH", f"{NAMESPACE}/secrets/s", headers=MERGE, content=b'{"metadata":{"labels":{"a":"b"}}}'
    )
    assert (patched.status_code, patched.json()["data"]) == (200, {"k": value}), "who writes is told what he wrote"
    found = (await clients.ask("GET", f"{NAMESPACE}/secrets/s")).json()
    assert (found["data"], found["metadata"]["labels"]) == ({"k": value}, {"a": "b"})


async def test_a_watch_goes_on_from_a_list(clients: Clients) -> None:
    await clients.create(f"{NAMESPACE}/configmaps", config("a"))
    version = (await clients.ask("GET", f"{NAMESPACE}/configmaps")).json()["metadata"]["resourceVersion"]
    await clients.create(f"{NAMESPACE}/configmaps", config("b"))
    query = f"watch=true&resourceVersion={version}&timeoutSeconds=5"
    told: list[tuple[str, str]] = []
    async with clients.client() as client, client.stream("GET", f"{NAMESPACE}/configmaps?{query}") as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            event = json.loads(line)
            told.append((event["type"], event["object"]["metadata"]["name"]))
            if len(told) == 1:
                await clients.ask("DELETE", f"{NAMESPACE}/configmaps/a")
            if len(told) == 2:
                break
    assert told == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_tells_how_far_it_came_before_it_ends(clients: Clients) -> None:
    await clients.create(f"{NAMESPACE}/configmaps", config("a"))
    version = (await clients.ask("GET", f"{NAMESPACE}/configmaps")).json()["metadata"]["resourceVersion"]
    query = f"watch=true&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=3"
    other = await clients.create("/api/v1/namespaces", {"metadata": {"name": "another"}})
    told = (await clients.ask("GET", f"{NAMESPACE}/configmaps?{query}")).text.splitlines()
    [event] = map(json.loads, told)
    assert event["type"] == "BOOKMARK"
    assert int(event["object"]["metadata"]["resourceVersion"]) >= int(other["metadata"]["resourceVersion"])


async def test_rbac_objects_are_stored_with_a_warning_that_nobody_goes_by_them(clients: Clients) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    role = {"metadata": {"name": "viewer"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    warning = '299 - "RBAC objects are stored and not enforced here: groups say who may do what"'
    patch = b'{"metadata":{"labels":{"a":"b"}}}'
    for answer in (
        await clients.ask("POST", roles, json=role),
        await clients.ask("PATCH", f"{roles}/viewer", headers=MERGE, content=patch),
        await clients.ask("DELETE", f"{roles}/viewer"),
    ):
        assert answer.is_success, answer.text
        assert warning in answer.headers.get_list("warning")
    assert "warning" not in (await clients.ask("GET", roles)).headers
    other = await clients.ask("POST", f"{NAMESPACE}/configmaps", json=config("a"))
    assert warning not in other.headers.get_list("warning")


async def test_a_definition_is_established_with_the_answer_and_its_kind_served(clients: Clients) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [one]}
    made = await clients.create(definitions, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    shown = (await clients.ask("GET", f"{definitions}/widgets.example.com")).json()
    assert made["status"] == shown["status"]
    assert {one["type"]: one["status"] for one in shown["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert (await clients.ask("GET", "/apis/example.com/v1/widgets")).json()["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "content", "code"),
    [
        ("POST", f"{NAMESPACE}/configmaps", b"{", 400),
        ("POST", f"{NAMESPACE}/configmaps", b'{"a":' * 2000 + b"1" + b"}" * 2000, 400),
        ("POST", f"{NAMESPACE}/configmaps", b"[]", 400),
        ("POST", f"{NAMESPACE}/configmaps", b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}', 400),
        ("POST", f"{NAMESPACE}/configmaps", b" " * (3 * 1024 * 1024 + 1), 413),
        ("POST", f"{NAMESPACE}/configmaps?dryRun=Some", b"{}", 422),
        ("POST", f"{NAMESPACE}/configmaps?fieldValidation=Maybe", b"{}", 422),
        ("GET", f"{NAMESPACE}/configmaps?limit=x", b"", 400),
        ("GET", f"{NAMESPACE}/configmaps?resourceVersion=x", b"", 400),
        ("GET", f"{NAMESPACE}/configmaps?labelSelector=%21%21", b"", 400),
        ("GET", "/api/v1/ponds", b"", 404),
        ("GET", "/api/v1/namespaces/default/pods/p/log", b"", 501),
        ("GET", "/apis/metrics.k8s.io/v1beta1/nodes?includeObject=Some", b"", 400),
        ("PUT", "/api/v1/nodes", b"{}", 405),
        ("GET", f"{NAMESPACE}/configmaps?" + "&".join(f"a{at}=1" for at in range(400)), b"", 400),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, (str, int)) else None,
)
async def test_what_is_wrong_is_refused_with_a_status_and_others_are_answered(
    clients: Clients, method: str, path: str, content: bytes, code: int
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await clients.ask(method, path, content=content, headers=headers)
    assert (answer.status_code, answer.json()["kind"], answer.json()["code"]) == (code, "Status", code)
    assert answer.json()["message"]
    assert (await clients.ask("GET", f"{NAMESPACE}/configmaps")).status_code == 200


async def test_a_patch_in_an_unknown_language_is_refused(clients: Clients) -> None:
    await clients.create(f"{NAMESPACE}/configmaps", config("c"))
    answer = await clients.ask(
        "PATCH", f"{NAMESPACE}/configmaps/c", content=b"{}", headers={"Content-Type": "text/plain"}
    )
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")


async def test_a_kind_is_served_as_soon_as_it_is_defined(clients: Clients) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ponds.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ponds", "kind": "Pond"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    path = "/apis/example.com/v1/namespaces/default/ponds"
    assert (await clients.ask("GET", path)).status_code == 404
    await clients.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert (await clients.ask("GET", "/apis/example.com/v1")).json()["resources"][0]["name"] == "ponds"
    await clients.create(path, {"apiVersion": "example.com/v1", "kind": "Pond", "metadata": {"name": "p"}, "deep": 3})
    listed = (await clients.ask("GET", path)).json()
    assert (listed["kind"], listed["items"][0]["deep"]) == ("PondList", 3)


async def test_a_collection_is_deleted_by_its_labels(clients: Clients) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1"})):
        document = config(name)
        document["metadata"]["labels"] = labels
        await clients.create(f"{NAMESPACE}/configmaps", document)
    assert (await clients.ask("DELETE", f"{NAMESPACE}/configmaps?labelSelector=x%3D1")).status_code == 200
    left = (await clients.ask("GET", f"{NAMESPACE}/configmaps")).json()["items"]
    assert [one["metadata"]["name"] for one in left] == ["b"]


def ponds(*versions: Document, **conversion: Any) -> Document:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ponds.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ponds", "kind": "Pond"},
            "versions": [{"schema": schema, **one} for one in versions],
            **conversion,
        },
    }


async def test_a_custom_object_is_one_in_all_served_versions(clients: Clients) -> None:
    """v1 stores, and is not served any more."""
    versions = ("v1", False, True), ("v1beta1", True, False), ("v2", True, False)
    definition = ponds(*({"name": name, "served": served, "storage": storing} for name, served, storing in versions))
    await clients.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = "/apis/example.com/{}/namespaces/default/ponds"
    pond = {"apiVersion": "example.com/v1beta1", "kind": "Pond", "metadata": {"name": "p"}, "deep": 3}
    made = await clients.create(path.format("v1beta1"), pond)
    assert (made["apiVersion"], made["deep"]) == ("example.com/v1beta1", 3)
    found = (await clients.ask("GET", f"{path.format('v2')}/p")).json()
    assert (found["apiVersion"], found["metadata"]["uid"], found["deep"]) == (
        "example.com/v2",
        made["metadata"]["uid"],
        3,
    )
    put = await clients.ask("PUT", f"{path.format('v2')}/p", json={**found, "deep": 4})
    assert (put.status_code, put.json()["apiVersion"], put.json()["deep"]) == (200, "example.com/v2", 4)
    patched = await clients.ask("PATCH", f"{path.format('v1beta1')}/p", headers=MERGE, content=b'{"deep":5}')
    assert (patched.status_code, patched.json()["apiVersion"], patched.json()["deep"]) == (
        200,
        "example.com/v1beta1",
        5,
    )
    listed = (await clients.ask("GET", path.format("v2"))).json()
    assert [(one["apiVersion"], one["deep"]) for one in listed["items"]] == [("example.com/v2", 5)]
    again = await clients.ask("POST", path.format("v2"), json={**pond, "apiVersion": "example.com/v2"})
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    assert (await clients.ask("DELETE", f"{path.format('v2')}/p")).status_code == 200
    assert (await clients.ask("GET", f"{path.format('v1beta1')}/p")).status_code == 404


AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


def autoscaler(version: str, **spec: Any) -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, **spec}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": whole,
    }


async def test_an_autoscaler_is_read_and_written_in_both_versions(clients: Clients) -> None:
    v1, v2 = (AUTOSCALERS.format(version) for version in ("v1", "v2"))
    made = await clients.create(v1, autoscaler("v1", targetCPUUtilizationPercentage=70))
    assert (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 70)
    found = (await clients.ask("GET", f"{v2}/h")).json()
    (metric,) = found["spec"]["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    wanted = {**found, "spec": {**found["spec"], "metrics": [{"type": "Resource", "resource": memory}, metric]}}
    assert (await clients.ask("PUT", f"{v2}/h", json=wanted)).status_code == 200
    (listed,) = (await clients.ask("GET", v1)).json()["items"]
    assert listed["spec"]["targetCPUUtilizationPercentage"] == 70
    kept = json.loads(listed["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"])
    assert kept == [{"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}]
    patched = await clients.ask(
        "PATCH", f"{v1}/h", headers=MERGE, content=b'{"spec":{"targetCPUUtilizationPercentage":50}}'
    )
    assert patched.json()["spec"]["targetCPUUtilizationPercentage"] == 50
    now = (await clients.ask("GET", f"{v2}/h")).json()
    assert [one["resource"]["name"] for one in now["spec"]["metrics"]] == ["memory", "cpu"]
    assert "annotations" not in now["metadata"]
    status = b'{"status":{"currentReplicas":2,"desiredReplicas":2,"currentCPUUtilizationPercentage":12}}'
    assert (await clients.ask("PATCH", f"{v1}/h/status", headers=MERGE, content=status)).status_code == 200
    (current,) = (await clients.ask("GET", f"{v2}/h")).json()["status"]["currentMetrics"]
    assert current["resource"]["current"]["averageUtilization"] == 12
    preferred = (await clients.ask("GET", "/apis/autoscaling")).json()
    assert [one["version"] for one in preferred["versions"]] == ["v2", "v1"]
