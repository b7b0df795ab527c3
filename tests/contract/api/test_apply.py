"""`svc.objects.apply` as people use it."""

import json
import time
from random import Random
from typing import Any

import msgspec
import pytest
from anyio import create_task_group, fail_after

from podyard.api import applying
from podyard.api.applying import Admitter, apply
from podyard.bus import Bus
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author
from podyard.proto import codec, streams, subjects
from podyard.proto.objects_api import ApplyRequest, ObjectsReply
from podyard.telemetry import traceparent
from tests.contract.api.conftest import Api, StartApi, outcomes, pod, stored
from tests.support.waiting import eventually

GOOD = ("created", "configured", "unchanged")


async def test_a_pod_is_created_then_unchanged_then_configured(api: Api) -> None:
    created, unchanged = await api.apply(pod("a")), await api.apply(pod("a"))
    configured = await api.apply(pod("a", labels={"app": "web"}))
    assert [outcomes(one)[0] for one in (created, unchanged, configured)] == ["created", "unchanged", "configured"]
    first, second, third = (one.results[0] for one in (created, unchanged, configured))
    assert first.uid == second.uid == third.uid != ""
    assert first.position == second.position < third.position
    found = await stored(api.bus, "pods", "a")
    assert found.sequence == third.position
    assert found.event.actions == ("UpdatePodLabel",)
    assert (found.event.who, found.uid) == ("ann", first.uid)
    assert found.document()["spec"]["schedulerName"] == "default-scheduler"


async def test_unknown_fields_are_refused_told_or_ignored_as_the_sender_wants(api: Api) -> None:
    odd = pod("a", unheardOf={"deep": [1, 2]}, nodeSelectors={"a": "b"})
    refused = await api.apply(odd, validation="strict")
    assert [(one.field, one.type, one.detail) for one in refused.results[0].errors] == [
        ("spec.unheardOf", "UnknownField", "unknown field"),
        ("spec.nodeSelectors", "UnknownField", 'unknown field: did you mean "nodeSelector"?'),
    ]
    told = await api.apply(odd)
    assert told.results[0].warnings == (
        'unknown field "spec.unheardOf"',
        'unknown field "spec.nodeSelectors": did you mean "nodeSelector"?',
    )
    found = (await stored(api.bus, "pods", "a")).document()
    assert not {"unheardOf", "nodeSelectors"} & found["spec"].keys()
    ignored = await api.apply(odd, validation="ignore")
    assert (outcomes(ignored), ignored.results[0].warnings) == (["unchanged"], ())


async def test_unknown_fields_are_told_with_all_other_faults(api: Api) -> None:
    odd = pod("a", priorityClassName="none", foo=1, restartPolicy="Sometimes")
    refused = await api.apply(odd, pod("b", bar=2), validation="strict")
    assert [[one.field for one in result.errors] for result in refused.results] == [
        ["spec.foo", "spec.priorityClassName", "spec.restartPolicy"],
        ["spec.bar"],
    ]


async def test_one_fault_refuses_all_and_names_every_field(api: Api) -> None:
    bad = pod("bad")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot"
    reply = await api.apply(pod("good"), bad, pod("lost", namespace="nowhere"))
    assert outcomes(reply) == ["refused", "refused", "refused"]
    assert reply.results[0].message == "nothing was written: 2 other objects of the request cannot be"
    assert reply.results[1].errors[0].field == "spec.containers[0].resources.requests[cpu]"
    assert reply.results[2].errors
    assert await api.bus.last_sequence(streams.CLUSTER.name) == 0


async def test_partial_writes_the_good_ones(api: Api) -> None:
    reply = await api.apply({"kind": "Pond", "apiVersion": "v1"}, pod("good"), partial=True)
    assert outcomes(reply) == ["refused", "created"]
    assert reply.results[0].errors[0].field == "kind"


@pytest.mark.parametrize("junk", [b"7", b'"text"', b"[]", b"null"])
async def test_what_is_no_object_is_refused(api: Api, junk: bytes) -> None:
    request = ApplyRequest(objects=(msgspec.Raw(junk),))
    reply = await api.ask(subjects.OBJECTS_APPLY, request)
    assert outcomes(reply) == ["refused"]


async def test_objects_may_use_what_their_own_request_brings(api: Api) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    reply = await api.apply(namespace, urgent, pod("a", namespace="team", priorityClassName="urgent"))
    assert outcomes(reply) == ["created"] * 3
    found = await stored(api.bus, "pods", "a", "team")
    assert found.document()["spec"]["priority"] == 7


async def test_256_objects_are_one_batch_and_an_object_in_the_way_is_updated(api: Api) -> None:
    documents = [pod(f"p{i}") for i in range(256)]
    reply = await api.apply(*documents)
    assert outcomes(reply) == ["created"] * 256
    assert [one.position for one in reply.results] == list(range(1, 257))
    for document in documents:
        document["metadata"]["labels"] = {"seen": "twice"}
    again = await api.apply(*documents[1:], pod("more"))
    assert outcomes(again) == ["configured"] * 255 + ["created"]


async def test_create_only_refuses_what_exists(api: Api) -> None:
    await api.apply(pod("a"))
    reply = await api.apply(pod("a"), create_only=True)
    assert outcomes(reply) == ["refused"]
    assert reply.results[0].errors[0].type == "AlreadyExists"


async def test_a_dry_run_answers_and_writes_nothing(api: Api) -> None:
    reply = await api.apply(pod("a"), pod("b"), dry_run=True)
    assert outcomes(reply) == ["created", "created"]
    assert await api.bus.last_sequence(streams.CLUSTER.name) == 0


async def test_a_dry_run_shows_objects_as_they_would_be_stored(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    wrong = pod("Wrong_name")
    reply = await api.apply(pod("a"), config, wrong, dry_run=True, partial=True, admitted=True)
    assert outcomes(reply) == ["created", "created", "refused"]
    [shown], [other], refused = [one.admitted for one in reply.results]
    assert (msgspec.json.decode(other)["metadata"]["uid"], refused) == (reply.results[1].uid, ())
    document = msgspec.json.decode(shown)
    assert document["metadata"]["uid"] == reply.results[0].uid
    assert document["spec"]["schedulerName"] == "default-scheduler"
    assert document["spec"]["priority"] == 0
    plain = await api.apply(pod("a"), dry_run=True)
    assert plain.results[0].admitted == ()
    assert await api.bus.last_sequence(streams.CLUSTER.name) == 0


async def test_pods_are_shown_by_a_dry_run_alone(api: Api) -> None:
    reply = await api.apply(pod("a"), admitted=True)
    assert outcomes(reply) == ["refused"]
    assert "by a dry run alone" in reply.results[0].message
    assert await api.bus.last_sequence(streams.CLUSTER.name) == 0


async def test_what_does_not_fit_into_an_answer_is_not_shown_and_told(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "SHOWN_BYTES", 1500)
    reply = await api.apply(*(pod(f"p{at}") for at in range(5)), dry_run=True, admitted=True)
    assert outcomes(reply)[0] == "created"
    assert outcomes(reply)[-1] == "refused"
    assert "ask for fewer objects at once" in reply.results[-1].message


async def test_the_same_object_twice_is_created_then_configured(api: Api) -> None:
    reply = await api.apply(pod("a"), pod("a", labels={"a": "b"}))
    assert outcomes(reply) == ["created", "configured"]
    assert reply.results[0].uid == reply.results[1].uid
    found = await stored(api.bus, "pods", "a")
    assert found.document()["metadata"]["labels"] == {"a": "b"}


async def test_generated_names_are_told(api: Api) -> None:
    document = pod("a")
    document["metadata"] = {"generateName": "web-"}
    reply = await api.apply(document, document)
    names = [one.name for one in reply.results]
    assert outcomes(reply) == ["created", "created"]
    assert len(set(names)) == 2
    assert all(name.startswith("web-") for name in names)


async def test_an_instance_reads_its_own_writes_at_once(api: Api) -> None:
    for number in range(20):
        created = await api.apply(pod(f"p{number}"))
        again = await api.apply(pod(f"p{number}"))
        assert (outcomes(created), outcomes(again)) == (["created"], ["unchanged"])


async def test_two_instances_racing_for_one_object_lose_nothing(
    bus: Bus, connect_bus: Any, start_api: StartApi
) -> None:
    first, second = await start_api(bus), await start_api(await connect_bus("second"))
    with fail_after(20.0):
        async with create_task_group() as tasks:

            async def label(api: Api, owner: str) -> None:
                for number in range(10):
                    reply = await api.apply(pod("a", labels={"who": f"{owner}{number}"}))
                    assert outcomes(reply)[0] in GOOD

            tasks.start_soon(label, first, "x")
            tasks.start_soon(label, second, "y")
    counted = [
        sum(api.metric("podyard_api_objects_total", verb="apply", outcome=outcome) for outcome in GOOD)
        for api in (first, second)
    ]
    assert sum(counted) == 20
    found = await stored(bus, "pods", "a")
    assert found.sequence <= 20


async def apply_blindly(bus: Bus, *documents: dict[str, Any]) -> list[str]:
    """Apply as an instance that knows of no objects yet."""
    objects = tuple(msgspec.Raw(json.dumps(document).encode()) for document in documents)
    admitter = Admitter(clock=time.time, random=Random(1))
    found = await apply(bus, DocumentView(), admitter, ApplyRequest(objects=objects), Author("blind"))
    return [one.outcome for one in found]


async def test_what_another_created_meanwhile_is_configured_not_replaced(api: Api) -> None:
    created = await api.apply(pod("a"))
    assert await apply_blindly(api.bus, pod("a")) == ["unchanged"]
    assert await apply_blindly(api.bus, pod("a", labels={"a": "b"})) == ["configured"]
    assert (await stored(api.bus, "pods", "a")).uid == created.results[0].uid


async def test_a_batch_that_meets_others_objects_is_written_one_by_one(api: Api) -> None:
    await api.apply(pod("p3"), pod("p5"))
    documents = [pod(f"p{number}", labels={"a": "b"}) for number in range(64)]
    expected = ["configured" if number in (3, 5) else "created" for number in range(64)]
    assert await apply_blindly(api.bus, *documents) == expected


async def test_a_generated_name_never_lands_on_anothers_object(api: Api) -> None:
    document = pod("a")
    document["metadata"] = {"generateName": "web-"}
    assert await apply_blindly(api.bus, document) == ["created"]
    assert await apply_blindly(api.bus, document) == ["refused"]  # the same seed chooses the same name


async def test_an_unreadable_request_is_refused_and_kept(api: Api) -> None:
    reply = await api.bus.request(subjects.OBJECTS_APPLY, b'{"objects": 7}')
    answer = codec.decode(ObjectsReply, reply.payload)
    assert "objects" in answer.refused
    letter = await eventually("a dead letter", lambda: api.bus.get(streams.DEAD.name, subjects.dead("api")))
    assert json.loads(letter.payload)["subject"] == subjects.OBJECTS_APPLY
    assert api.metric("podyard_api_unreadable_requests_total", verb="apply") == 1


async def test_stored_objects_carry_the_span_of_their_request(api: Api) -> None:
    caller = traceparent.new(sampled=True)
    objects = (msgspec.Raw(json.dumps(pod("a")).encode()),)
    await api.ask(subjects.OBJECTS_APPLY, ApplyRequest(objects=objects, who="ann"), trace=caller)
    delivery = await api.bus.get(streams.CLUSTER.name, subjects.object_("pods", "default", "a"))
    assert delivery is not None
    span = next(one for one in api.spans if one.name == "apply")
    assert str(span.ids) == delivery.trace
    assert span.parent == traceparent.parse(caller)
    assert (span.kind, span.attributes["podyard.who"]) == ("producer", "ann")
    assert api.metric("podyard_api_objects_total", verb="apply", outcome="created") == 1


async def test_a_refused_request_is_always_traced(api: Api) -> None:
    await api.apply({"kind": "Pond", "apiVersion": "v1"})
    assert [span.error != "" for span in api.spans] == [True]


async def test_documents_are_json_whatever_their_kind(api: Api) -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n.example.com"},
        "status": {"capacity": {"cpu": 4}},
    }
    reply = await api.apply(custom, node)
    assert outcomes(reply) == ["created", "created"]
    assert (await stored(api.bus, "widgets.v1.example.com", "w", "")).document()["spec"] == {"size": 3}
    assert (await stored(api.bus, "nodes", "n.example.com", "")).document()["status"]["allocatable"] == {"cpu": "4"}
