"""The scheduler service against a queue and a binder that the test plays."""

import itertools
from collections import Counter

import anyio
import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.proto.binder_api import BindAnswer, BindRequest, Decision
from podyard.proto.placement import Usage
from tests.contract.scheduler.stage import TRACE, Stage, pod
from tests.support.buses import ConnectBus
from tests.support.cluster import bound
from tests.support.objects import node
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> Stage:
    return Stage(await connect_bus("scheduler", request_timeout_s=0.5), bus)


async def test_pods_are_bound_and_told_to_the_queue(stage: Stage) -> None:
    await stage.cluster.nodes(3)
    names = [f"p{at}" for at in range(40)]
    await stage.cluster.pods(*map(pod, names))
    async with stage.running():
        await stage.queue.offer(*names)
        await eventually("all bound", lambda: len(stage.cluster.bound) == len(names))
        await eventually("all told", lambda: len(stage.queue.results) == len(names))
        assert {result.outcome for result in stage.queue.results} == {"scheduled"}
        assert {result.uid: result.node for result in stage.queue.results} == {
            uid: bound.node for uid, bound in stage.cluster.bound.items()
        }
        assert max(Counter(bound.node for bound in stage.cluster.bound.values()).values()) == 14
        assert stage.service.health.ready, stage.service.health.checks


async def test_nothing_is_scheduled_before_the_pops_position_is_reached(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("early"))
    async with stage.running():
        await stage.queue.offer("early")
        # the queue has read one message more: the node that the scheduler is to choose among
        stage.queue.position += 1
        await eventually("popped", lambda: any(beat.attempts == ("1-1",) for beat in stage.queue.beats))
        assert not stage.binder.requests
        await stage.cluster.create("nodes", [node("n9999", cpu="64")])
        await eventually("bound", lambda: stage.cluster.bound)
        assert stage.cluster.bound["uid-early"].node == "n9999"


async def test_a_pod_that_fits_nowhere_is_told_recorded_and_traced(stage: Stage) -> None:
    await stage.cluster.create("nodes", [node("a", cpu="1"), node("b", unschedulable=True)])
    await stage.cluster.pods(pod("big", cpu="2"))
    async with stage.running():
        await stage.queue.offer("big")
        await eventually("told", lambda: stage.queue.results)
        record = await stage.record("big")
    (result,) = stage.queue.results
    assert result.outcome == "unschedulable"
    assert result.unschedulable_plugins == ("NodeResourcesFit", "NodeUnschedulable")
    assert result.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")
    assert record.message == result.message
    assert [(one.plugin, one.nodes, one.examples) for one in record.rejections] == [
        ("NodeResourcesFit", 1, ("a",)),
        ("NodeUnschedulable", 1, ("b",)),
    ]
    cycle = next(span for span in stage.spans.spans if span.name == "schedule cycle")
    assert not cycle.error, "that no node fits is an answer"
    assert cycle.attributes["podyard.message"] == result.message
    assert cycle.attributes["podyard.rejections"] == [
        "NodeResourcesFit: 1 node: Insufficient cpu (a: wants 2 cpu, the whole node has 1)",
        "NodeUnschedulable: 1 node: node(s) were unschedulable (b: is cordoned (spec.unschedulable))",
    ]
    assert cycle.attributes["podyard.nodes.rejected_by.NodeResourcesFit"] == 1
    assert cycle.attributes["podyard.rejected_by.NodeResourcesFit"] is True
    children = [span.name for span in stage.spans.spans if span.parent == cycle.ids]
    assert children == ["PreFilter", "Filter", "PostFilter"]
    assert cycle.parent is not None
    assert str(cycle.parent) == TRACE + "00"


async def test_in_detail_each_call_of_a_plugin_has_a_span_within_its_extension_point(stage: Stage) -> None:
    stage.service.settings = msgspec.structs.replace(stage.service.settings, spans_by_plugin=True)
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("a"), pod("b"))
    async with stage.running():
        await stage.queue.offer("a", sampled=True)
        await stage.queue.offer("b")
        await eventually("bound", lambda: len(stage.cluster.bound) == 2)
    points = {str(span.ids): span for span in stage.spans.spans if "podyard.plugin" not in span.attributes}
    calls = [span for span in stage.spans.spans if "podyard.plugin" in span.attributes]
    assert {
        "Filter NodeResourcesFit",
        "Score NodeResourcesFit",
        "Score TaintToleration",
        "ScoreExtensionNormalize TaintToleration",
    } <= {span.name for span in calls}
    for call in calls:
        above = points[str(call.parent)]
        point, plugin = call.name.split(" ")
        assert point in (above.name, f"{above.name}ExtensionNormalize")
        assert plugin == call.attributes["podyard.plugin"]
        assert above.start_ns <= call.start_ns < call.end_ns <= max(above.end_ns, call.start_ns + 1_000)
    assert len(stage.spans.named("schedule cycle")) == 1, "an attempt that is not sampled has none of them"


async def test_a_sampled_attempt_has_one_span_an_extension_point_and_its_id_in_the_decision(stage: Stage) -> None:
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("a"), pod("b"))
    async with stage.running():
        await stage.queue.offer("a", sampled=True)
        await stage.queue.offer("b")
        await eventually("bound", lambda: len(stage.cluster.bound) == 2)
    decided = {decision.name: decision.trace for decision in stage.binder.decisions()}
    cycles = [str(span.ids) for span in stage.spans.spans if span.name == "schedule cycle"]
    assert cycles == [decided["a"]]
    assert decided["b"].startswith(TRACE[:36])
    assert decided["b"][36:52] != TRACE[36:52]
    points = [span.name for span in stage.spans.spans]
    assert points == ["schedule cycle", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit"]
    cycle, *children = stage.spans.spans
    for before, after in itertools.pairwise(children):
        assert cycle.start_ns <= before.start_ns <= before.end_ns <= after.start_ns <= after.end_ns <= cycle.end_ns


async def test_an_attempt_and_its_cycle_show_under_kube_schedulers_names(stage: Stage) -> None:
    value = stage.service.metrics.get_sample_value
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("a"))
    async with stage.running():
        await stage.queue.offer("a")
        attempts = "scheduler_schedule_attempts_total", {"result": "scheduled", "profile": "default-scheduler"}
        await eventually("an attempt is counted", lambda: value(*attempts) == 1)
        assert value("scheduler_cache_size", {"type": "nodes"}) == 2
    points = {"extension_point": "Filter", "status": "Success", "profile": "default-scheduler"}
    assert value("scheduler_framework_extension_point_duration_seconds_count", points) == 1
    calls = {"plugin": "NodeResourcesFit", "extension_point": "Filter", "status": "Success"}
    assert (value("scheduler_plugin_execution_duration_seconds_sum", calls) or 0) > 0


async def test_a_conflict_is_decided_again_on_what_the_binder_saw(stage: Stage) -> None:
    await stage.cluster.create("nodes", [node("big", cpu="8"), node("small", cpu="4")])
    await stage.cluster.pods(pod("p", cpu="2"))
    seen: list[Decision] = []

    def full(decision: Decision) -> BindAnswer | None:
        seen.append(decision)
        if len(seen) > 1:
            return None
        return BindAnswer(
            attempt=decision.attempt, uid=decision.uid, result="conflict", cause="fit", reasons=("Insufficient cpu",)
        )

    async def takes_the_room(request: BindRequest) -> None:
        del request
        if not seen:
            await stage.cluster.commit([bound("other", "big", usage=Usage(requests={"cpu": 7000}))])

    stage.binder.answer, stage.binder.before = full, takes_the_room
    async with stage.running():
        await stage.queue.offer("p")
        await eventually("bound", lambda: "uid-p" in stage.cluster.bound)
        await eventually("told", lambda: len(stage.queue.of("p")) == 2)
    assert [decision.node for decision in seen] == ["big", "small"]
    assert seen[0].attempt == seen[1].attempt
    assert seen[1].number > seen[0].number
    scheduled, dropped = stage.queue.of("p")
    assert (scheduled.outcome, scheduled.node) == ("scheduled", "big")
    assert dropped.assumed == "big"
    assert dropped.attempt != scheduled.attempt


async def test_after_three_retries_a_conflict_is_a_bind_error(stage: Stage) -> None:
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("p"))
    stage.binder.answer = lambda decision: BindAnswer(
        attempt=decision.attempt, uid=decision.uid, result="conflict", cause="NodePorts", reasons=("no",)
    )
    async with stage.running():
        await stage.queue.offer("p")
        await eventually(
            "given up", lambda: any(one.attempt == "1-1" and one.outcome == "bindError" for one in stage.queue.results)
        )
        record = await stage.record("p")
    assert len(stage.binder.decisions()) == 4
    last = stage.queue.of("p")[-1]
    assert (last.attempt, last.outcome, last.message) == ("1-1", "bindError", "NodePorts: no")
    assert last.assumed
    assert record.outcome == "bindError"
    assert record.message == "NodePorts: no"
    cycles = stage.spans.named("schedule cycle")
    assert len({span.ids.span_id for span in cycles}) == 4, "every cycle whose decision was refused is kept"
    assert not any(span.error for span in cycles), "each of them found a node: the attempt failed, not they"


async def test_decisions_are_sent_again_with_the_same_ids_until_a_binder_answers(stage: Stage) -> None:
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("p"), pod("q"))
    async with stage.running(binder=False):
        await stage.queue.offer("p", "q")
        await eventually("told", lambda: len(stage.queue.results) == 2)
        await eventually("missed", lambda: not stage.service.health.checks["binder"].ok)
        hang = anyio.Event()

        async def hangs_once(request: BindRequest) -> None:
            if len(stage.binder.requests) == 1:
                await hang.wait()

        stage.binder.before = hangs_once
        await stage.binder.serve()
        await eventually("asked again", lambda: len(stage.binder.requests) >= 2)
        hang.set()
        await eventually("bound", lambda: len(stage.cluster.bound) == 2)
        await eventually("well again", lambda: stage.service.health.checks["binder"].ok)
    first, second = stage.binder.requests[:2]
    assert first == second
    assert {result.outcome for result in stage.queue.results} == {"scheduled"}


async def test_only_decisions_without_an_answer_are_sent_again(stage: Stage) -> None:
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("p"), pod("q"))
    stage.binder.most = 1
    async with stage.running():
        await stage.queue.offer("p", "q")
        await eventually("bound", lambda: len(stage.cluster.bound) == 2)
    assert [[decision.name for decision in request.decisions] for request in stage.binder.requests] == [
        ["p", "q"],
        ["q"],
    ]


async def test_a_refused_session_is_followed_by_another(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("p"))
    async with stage.running():
        await eventually("popped", lambda: stage.queue.pops)
        first = stage.queue.pops[0].session
        stage.queue.refuse.add(first)
        await eventually("another session", lambda: stage.queue.pops[-1].session != first)
        await stage.queue.offer("p")
        await eventually("bound", lambda: stage.cluster.bound)
        await eventually("ready again", lambda: stage.service.health.checks["queue"].ok)
    assert stage.binder.requests[-1].session == stage.queue.pops[-1].session
    assert stage.binder.requests[-1].decisions[0].number == 1


async def test_heartbeats_name_open_attempts_and_the_last_pop(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("p"))
    async with stage.running():
        await stage.queue.offer("p")
        stage.queue.position += 1
        await eventually("listed", lambda: any(beat.attempts for beat in stage.queue.beats))
        beat = next(beat for beat in stage.queue.beats if beat.attempts)
        assert beat.attempts == ("1-1",)
        assert beat.last_pop in {request.pop_id for request in stage.queue.pops}
        await stage.cluster.create("nodes", [node("other")])
        await eventually("bound", lambda: stage.cluster.bound)
        count = len(stage.queue.beats)
        await eventually("not listed any more", lambda: any(not beat.attempts for beat in stage.queue.beats[count:]))


async def test_a_scheduler_that_ends_in_order_tells_its_last_results_and_then_that_its_session_is_over(
    stage: Stage,
) -> None:
    """Its results reach no queue before it ends: what is under way, and what waits behind it."""
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("p"), pod("q"), pod("r"))
    stage.queue.done_epoch = 0
    async with stage.running():
        await stage.queue.offer("p")
        await eventually("told in vain", lambda: stage.queue.done_requests)
        await stage.queue.offer("q")
        await eventually("both bound", lambda: len(stage.cluster.bound) == 2)
        stage.queue.position += 1000  # the last pod is not decided any more
        stage.queue.hand_out("r")
        await eventually("open", lambda: any("1-3" in beat.attempts for beat in stage.queue.beats))
        assert not stage.queue.of("q")
        session = stage.queue.pops[-1].session
        stage.queue.done_epoch = None
    assert {result.outcome for result in stage.queue.of("q")} == {"scheduled"}
    assert not stage.queue.of("r")
    last = stage.queue.beats[-1]
    assert (last.session, last.over, last.attempts) == (session, True, ())
    assert not any(beat.over for beat in stage.queue.beats[:-1])
    assert stage.queue.heard[-2:] == ["done", "heartbeat"]


async def test_outstanding_numbers_are_those_assumed_and_not_seen(stage: Stage) -> None:
    await stage.cluster.nodes(4)
    await stage.cluster.pods(pod("a"), pod("b"), pod("c"))
    gate = anyio.Event()

    async def waits(request: BindRequest) -> None:
        if len(stage.binder.requests) == 1:
            await gate.wait()

    stage.binder.before = waits
    async with stage.running():
        await stage.queue.offer("a")
        await eventually("asked", lambda: len(stage.binder.requests) == 1)
        await stage.queue.offer("b")
        await eventually("asked for b", lambda: any(d.name == "b" for d in stage.binder.decisions()))
        gate.set()
        await eventually("both bound", lambda: len(stage.cluster.bound) == 2)
        await eventually("seen", lambda: _unanswered(stage) == 0)
        await stage.queue.offer("c")
        await eventually("all bound", lambda: len(stage.cluster.bound) == 3)
    claims = {
        request.decisions[0].name: [(one.first, one.last) for one in request.outstanding]
        for request in stage.binder.requests
    }
    assert claims == {"a": [], "b": [(1, 1)], "c": []}


def _unanswered(stage: Stage) -> float:
    return stage.service.metrics.get_sample_value("podyard_scheduler_unanswered_pods") or 0.0


@pytest.mark.parametrize("missing", ["gone", "other uid"])
async def test_a_pod_that_is_no_more_ends_its_attempt(stage: Stage, missing: str) -> None:
    await stage.cluster.nodes(1)
    if missing == "other uid":
        await stage.cluster.pods({**pod("p"), "metadata": {"name": "p", "namespace": "default", "uid": "new"}})
    async with stage.running():
        await stage.queue.offer("p")
        await eventually("told", lambda: stage.queue.results)
    assert [(one.outcome, one.message) for one in stage.queue.results] == [("error", "the pod is gone")]
    assert not stage.binder.requests
