"""Traces as a collector gets them: one connected trace a pod, links where one thing led to another, bad
outcomes always kept."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio

from podyard.cluster.pods import PodView
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import EvictRequest, ObjectsReply
from podyard.proto.placement import Binding
from podyard.telemetry import traceparent
from tests.e2e.labs import exporting
from tests.e2e.stage import WITHIN_S, Stand, node, stand
from tests.support.otlp_sink import Ids, OtlpSink, SinkSpan

WAY = {
    "attempt": "podyard-queue",
    "wait in queue": "podyard-queue",
    "schedule cycle": "podyard-scheduler",
    "bind": "podyard-binder",
    "start pod": "podyard-node_agent",
}
PARENTS = {
    "attempt": "",
    "wait in queue": "attempt",
    "schedule cycle": "attempt",
    "bind": "",
    "start pod": "",
}
FOLLOWS = {"bind": "schedule cycle", "start pod": "bind"}
"""What was handed over goes on after the span that handed it over: it links to that."""
GOOD_PODS = 20


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    tainted = node("node-2", labels={"pool": "tainted"}, taints=[{"key": "reserved", "effect": "NoSchedule"}])
    await here.join(node("node-1"), tainted, node("node-3"))
    return here


async def test_a_pods_way_is_one_connected_trace(here: Stand, sink: OtlpSink) -> None:
    await here.do.apply([here.pod("straight")], "a test")
    await here.running("straight")
    spans = sink.wait_for(lambda spans: bool(here.spans_of(spans, "start pod", "straight")))
    [start] = here.spans_of(spans, "start pod", "straight")

    def whole(spans: list[SinkSpan]) -> bool:
        return {span.name for span in spans if span.trace_id == start.trace_id} >= WAY.keys()

    way = {span.name: span for span in sink.wait_for(whole) if span.trace_id == start.trace_id}
    names = {span.span_id: span.name for span in way.values()}
    assert {name: way[name].service for name in WAY} == WAY
    assert {name: names.get(way[name].parent_id, way[name].parent_id) for name in WAY} == PARENTS
    followed = {name: names.get(way[name].links[0].span_id) for name in FOLLOWS}
    assert followed == FOLLOWS
    points = [span.name for span in way.values() if span.parent_id == way["schedule cycle"].span_id]
    assert {"Filter", "Score"} <= set(points), points
    assert all(not span.error for span in way.values())
    order = [way[name].start_ns for name in ("attempt", "schedule cycle", "bind", "start pod")]
    assert order == sorted(order)
    assert way["attempt"].attributes["podyard.outcome"] == "scheduled"


async def test_an_attempt_after_a_requeue_links_to_the_event_and_to_the_attempt_before(
    here: Stand, sink: OtlpSink
) -> None:
    await here.do.apply([here.pod("patient", nodeSelector={"pool": "tainted"})], "a test")
    await here.attempted("patient")
    await here.do.apply([node("node-2", labels={"pool": "tainted"})], "the taint goes")
    await here.running("patient")
    spans = sink.wait_for(lambda spans: len(here.spans_of(spans, "attempt", "patient")) == 2)
    first, second = here.spans_of(spans, "attempt", "patient")
    assert not first.error, "that no node fits is an answer"
    assert first.attributes["podyard.rejected_by.TaintToleration"] is True
    assert first.trace_id != second.trace_id
    assert second.attributes["podyard.woken_by.plugin"] == "TaintToleration"

    def untainted(spans: list[SinkSpan]) -> list[SinkSpan]:
        return [one for one in spans if one.name == "apply" and one.attributes["podyard.why"] == "the taint goes"]

    [applied] = untainted(sink.wait_for(lambda spans: bool(untainted(spans))))
    assert applied.service == "podyard-api"
    assert applied.kind == "producer"
    assert set(second.links) == {Ids(first.trace_id, first.span_id), Ids(applied.trace_id, applied.span_id)}

    def requeues(spans: list[SinkSpan]) -> list[SinkSpan]:
        return [one for one in spans if one.name == "requeue pods" and (here.namespace, "patient") in pods_of(one)]

    [moved] = requeues(sink.wait_for(lambda spans: bool(requeues(spans))))
    assert moved.attributes["podyard.event"] == "NodeUpdateNodeTaint"
    assert moved.trace_id == applied.trace_id
    assert Ids(applied.trace_id, applied.span_id) in moved.links
    assert pods_of(moved) == [(here.namespace, "patient")]


def pods_of(requeue: SinkSpan) -> list[tuple[str, str]]:
    """Namespace and name of the pods that an event moved."""
    about = [event.attributes for event in requeue.events]
    return [(one["k8s.namespace.name"], one["k8s.pod.name"]) for one in about]


async def test_the_replacement_of_a_pod_evicted_by_request_links_to_the_eviction(here: Stand, sink: OtlpSink) -> None:
    """An eviction by a node: test_nodes_in_trouble."""
    name = "asked"
    template = here.pod(name, terminationGracePeriodSeconds=1)
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": here.namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    }
    await here.do.apply([replica_set], "a test")
    [old] = await here.seen.until("its pod running", lambda: here.seen.running(name), WITHIN_S)
    target = ObjectRef(resource="pods", namespace=here.namespace, name=old.name)
    asked = codec.encode(EvictRequest(pods=(target,), who="test", why="a test"))
    reply = codec.decode(ObjectsReply, (await here.bus.request(subjects.OBJECTS_EVICT, asked)).payload)
    assert [result.outcome for result in reply.results] == ["evicted"]

    def another() -> list[PodView]:
        return [one for one in here.seen.running(name) if one.uid != old.uid]

    [new] = await here.seen.until("another pod running", another, WITHIN_S)

    def both(spans: list[SinkSpan]) -> bool:
        return bool(here.spans_of(spans, "attempt", new.name) and here.spans_of(spans, "evict pod", old.name))

    spans = sink.wait_for(both)
    [evicted] = here.spans_of(spans, "evict pod", old.name)
    assert evicted.service == "podyard-api"
    assert Ids(evicted.trace_id, evicted.span_id) in here.spans_of(spans, "attempt", new.name)[0].links


async def test_at_one_percent_bad_outcomes_are_kept_and_unsampled_good_ones_send_nothing(tmp_path: Path) -> None:
    with OtlpSink() as sink:
        rare = exporting(sink, OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.01")
        good = [f"good-{number}" for number in range(GOOD_PODS)]
        async with AsyncExitStack() as stack:
            here = await stack.enter_async_context(stand(tmp_path, environment=rare))
            await here.do.apply([node("node-1")], "a node")
            await here.do.apply([*map(here.pod, good), here.pod("bad", cpu="99")], "a test")
            await here.running(*good)
            await here.attempted("bad")
            bound = [await _decision(here, name) for name in good]
            [bad] = here.seen.attempts
        # the lab has ended in order: what its services had to send has been sent
        sampled = {_trace_id(record.trace) for record in bound if _is_sampled(record.trace)}
        sent = {span.trace_id for span in sink.spans}
        assert {_trace_id(record.trace) for record in bound} & sent == sampled
        assert len(sampled) < GOOD_PODS
        kept = {span.name: span for span in sink.spans if span.trace_id == _trace_id(bad.trace)}
        assert kept["attempt"].attributes["podyard.outcome"] == "unschedulable"
        assert kept["schedule cycle"].parent_id == kept["attempt"].span_id
        assert kept["schedule cycle"].attributes["podyard.rejected_by.NodeResourcesFit"] is True


async def _decision(here: Stand, name: str) -> AttemptRecord:
    """The attempt that bound a pod, as its binding holds it."""
    subject = subjects.binding(here.namespace, name, here.seen.view.pods[here.namespace, name].uid)
    stored = await here.bus.get(streams.CLUSTER.name, subject)
    assert stored is not None
    binding = codec.decode(Binding, stored.payload)
    assert binding.decision is not None
    return binding.decision


def _trace_id(trace: str) -> str:
    found = traceparent.parse(trace)
    assert found is not None
    return f"{found.trace_id:032x}"


def _is_sampled(trace: str) -> bool:
    found = traceparent.parse(trace)
    return found is not None and found.sampled
