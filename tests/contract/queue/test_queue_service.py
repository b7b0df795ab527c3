"""The queue's service with a scheduler that is played."""

from typing import Any

import anyio
import pytest

from podyard.bus import Bus, Outgoing, RemoteError
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.operations import DeadLetter
from podyard.proto.queue_api import AttemptResult, DoneRequest, PopReply, SessionHeartbeat
from podyard.queue.core import recorded
from podyard.queue.service import SERVICE
from podyard.queue.settings import QueueSettings
from tests.contract.queue.conftest import StartQueue
from tests.contract.queue.stack import Cluster, Scheduler, last_attempt, nomination, requeue_record
from tests.support import objects
from tests.support.cluster import bound, released
from tests.support.services import make_service, running
from tests.support.spans import KeptSpans
from tests.support.waiting import WITHIN_S, eventually


async def test_a_pod_goes_from_its_creation_to_its_binding(cluster: Cluster, scheduler: Scheduler) -> None:
    sequence = await cluster.pod("a")
    reply = await scheduler.pop()
    (pod,) = reply.pods
    assert (pod.name, pod.number, pod.attempt) == ("a", 1, f"{reply.epoch}-1")
    assert reply.position >= sequence, "the scheduler can wait until it has read that far"
    await scheduler.done(pod, "scheduled", node="n1")
    await scheduler.sees("a", "binding")
    await cluster.bind(pod, "n1")
    await scheduler.misses("a")


async def test_what_becomes_of_pods_shows_under_kube_schedulers_names(
    bus: Bus, cluster: Cluster, connect_bus: Any
) -> None:
    service = make_service(SERVICE, await connect_bus("q1"), instance="q1")
    value = service.metrics.get_sample_value
    async with running(service):
        scheduler = Scheduler(bus)
        await scheduler.led()
        assert value("leader_election_master_status", {"name": "queue"}) == 1
        await cluster.pod("a")
        await cluster.pod("b")
        taken, other = await scheduler.take(), await scheduler.take()
        await scheduler.reject(other, "NodeResourcesFit")
        await scheduler.done(taken, "scheduled", node="n1")
        await cluster.commit([bound(taken.name, "n1", uid=taken.uid, attempt=taken.attempt, decided_at=99)])
        await scheduler.misses(taken.name)
        handled = "scheduler_event_handling_duration_seconds_count"
        await eventually("the binding is counted", lambda: value(handled, {"event": "AssignedPodAdd"}) == 1)
        assert value(handled, {"event": "UnschedulablePodAdd"}) == 2
        incoming = "scheduler_queue_incoming_pods_total"
        assert value(incoming, {"queue": "active", "event": "UnschedulablePodAdd"}) == 2
        assert value(incoming, {"queue": "unschedulable", "event": "ScheduleAttemptFailure"}) == 1
        pending = {pool: value("scheduler_pending_pods", {"queue": pool}) for pool in ("active", "unschedulable")}
        assert pending == {"active": 0, "unschedulable": 1}
        rejected = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
        assert value("scheduler_unschedulable_pods", rejected) == 1
        assert value("scheduler_inflight_events", {"event": "PodPopped"}) == 0
        assert value("scheduler_pod_scheduling_sli_duration_seconds_count", {"attempts": "1"}) == 1
    assert value("scheduler_pending_pods", {"queue": "unschedulable"}) is None, "it does not lead any more"


async def test_pods_are_counted_also_while_no_scheduler_asks(bus: Bus, cluster: Cluster, connect_bus: Any) -> None:
    service = make_service(SERVICE, await connect_bus("q1"), instance="q1")
    incoming = "scheduler_queue_incoming_pods_total", {"queue": "active", "event": "UnschedulablePodAdd"}
    async with running(service):
        await Scheduler(bus).led()
        await cluster.pod("a")
        await eventually("it is counted", lambda: service.metrics.get_sample_value(*incoming) == 1)


async def test_a_pop_waits_for_pods_and_says_so_when_none_come(cluster: Cluster, scheduler: Scheduler) -> None:
    assert (await scheduler.pop(wait_s=0.05)).pods == ()
    async with anyio.create_task_group() as tasks:
        got: list[Any] = []

        async def wait() -> None:
            got.append(await scheduler.pop(wait_s=8))

        tasks.start_soon(wait)
        await cluster.pod("late")
    assert [pod.name for pod in got[0].pods] == ["late"]


async def test_a_repeated_pop_gets_the_same_pods(cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.pod("a")
    first = await scheduler.pop(pop_id="x")
    await cluster.pod("b")
    await scheduler.sees("b", "activeQ")
    assert await scheduler.pop(pop_id="x") == first


async def test_other_plugins_are_refused(scheduler: Scheduler) -> None:
    reply = await scheduler.pop(digests={"default-scheduler": "0000"})
    assert "the scheduler has 0000" in reply.refused


async def test_an_event_that_cannot_help_leaves_the_pod_and_says_why(
    bus: Bus, cluster: Cluster, scheduler: Scheduler
) -> None:
    await cluster.pod("needy", cpu="2")
    await scheduler.reject(await scheduler.take(), "NodeResourcesFit")
    sequence = await cluster.node("small", cpu="1")
    record = await requeue_record(bus, str(sequence))
    assert record.event == "NodeAdd"
    assert (record.object, record.who, record.why) == ("small", "test", "a test wants it")
    assert record.moved == ()
    (skipped,) = record.skipped
    assert (skipped.name, skipped.hints[0].plugin) == ("needy", "NodeResourcesFit")
    assert skipped.hints[0].reason == "the whole of small is 1 cpu, the pod needs 2 cpu"
    assert (await scheduler.sees("needy", "unschedulable")).unschedulable_plugins == ("NodeResourcesFit",)


async def test_freed_room_wakes_whom_it_may_help_and_nobody_else(
    bus: Bus, cluster: Cluster, scheduler: Scheduler
) -> None:
    await cluster.pod("big")
    big = await scheduler.take()
    await scheduler.done(big, "scheduled", node="n1")
    await cluster.bind(big, "n1")
    await cluster.pod("fits", cpu="500m")
    await scheduler.reject(await scheduler.take(), "NodeResourcesFit")
    await cluster.pod("tainted")
    await scheduler.reject(await scheduler.take(), "TaintToleration")
    await cluster.commit(releases=[released("big", "n1")])
    woken = await scheduler.take()
    assert woken.name == "fits"
    assert woken.number == 2
    assert woken.woken_by is not None
    assert woken.woken_by.event == "AssignedPodDelete"
    assert woken.woken_by.reason == "freed 100m cpu on n1, the pod needs 500m cpu"
    record = await requeue_record(bus, woken.woken_by.event_id)
    assert [move.name for move in record.moved] == ["fits"]
    assert record.skipped == (), "TaintToleration did not register it: the other pod was not asked"
    await scheduler.sees("tainted", "unschedulable")


async def test_an_event_during_the_attempt_is_not_lost(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.node("n1", taints=[{"key": "a", "effect": "NoSchedule"}])
    await cluster.pod("a")
    pod = await scheduler.take()
    sequence = await cluster.node("n1")
    await eventually("the queue has read it", lambda: _reached(scheduler, sequence))
    await scheduler.reject(pod, "TaintToleration")
    again = await scheduler.take()
    assert again.woken_by is not None
    assert again.woken_by.event == "NodeUpdateNodeTaint"
    record = await requeue_record(bus, f"{sequence}-{pod.attempt}")
    assert [(move.name, move.from_) for move in record.moved] == [("a", "inFlight")]


async def test_pods_that_come_back_in_one_request_share_the_events_record(
    bus: Bus, cluster: Cluster, scheduler: Scheduler
) -> None:
    await cluster.node("n1", taints=[{"key": "a", "effect": "NoSchedule"}])
    for name in ("a", "b"):
        await cluster.pod(name)
    pods = [await scheduler.take(), await scheduler.take()]
    sequence = await cluster.node("n1")
    await eventually("the queue has read it", lambda: _reached(scheduler, sequence))
    results = tuple(
        AttemptResult(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            attempt=pod.attempt,
            outcome="unschedulable",
            unschedulable_plugins=("TaintToleration",),
        )
        for pod in pods
    )
    await scheduler.ask("done", DoneRequest(session=scheduler.session, results=results))
    record = await requeue_record(bus, f"{sequence}-{pods[0].attempt}")
    assert [move.name for move in record.moved] == ["a", "b"]


async def _reached(scheduler: Scheduler, sequence: int) -> bool:
    return (await scheduler.list()).position >= sequence


async def test_a_gated_pod_is_recorded_and_opens(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.pod("g", schedulingGates=[{"name": "wait"}])
    await scheduler.sees("g", "gated")
    record = await eventually("a record of the gate", lambda: last_attempt(bus, "g"))
    assert (record.outcome, record.message) == ("gated", "waiting for scheduling gates: [wait]")
    await cluster.pod("g")
    assert (await scheduler.take()).name == "g"


async def test_records_of_a_pod_go_with_it(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    document = objects.pod("g", schedulingGates=[{"name": "wait"}])
    await cluster.put("pods", document)
    await eventually("a record of the gate", lambda: last_attempt(bus, "g"))
    await cluster.remove("pods", document)

    async def purged() -> bool:
        return await last_attempt(bus, "g") is None

    await eventually("the records are purged", purged)
    await scheduler.misses("g")


async def test_a_record_that_comes_after_its_pod_went_goes_too(
    bus: Bus, cluster: Cluster, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler stores its records on its own time, also those of a pod that is deleted meanwhile."""
    monkeypatch.setattr(recorded, "PURGE_AGAIN_S", 1.0)
    document = objects.pod("late")
    await cluster.put("pods", document)
    pod = await scheduler.take()
    sequence = await cluster.remove("pods", document)
    await eventually("the queue has read it", lambda: _reached(scheduler, sequence))
    await scheduler.done(pod, "error")
    record = AttemptRecord(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, attempt=pod.attempt, outcome="error", number=1, at=1.0
    )
    await bus.publish(Outgoing(subjects.decisions(pod.namespace, pod.name, pod.uid), codec.encode(record)))

    async def purged() -> bool:
        return await last_attempt(bus, "late") is None

    await eventually("the late record is purged", purged)


async def test_a_nomination_is_a_fact_until_the_pod_is_bound(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.pod("pre", priority=5)
    await scheduler.reject(await scheduler.take(), "NodeResourcesFit", nominated_node="n1")
    fact = await eventually("the nomination", lambda: nomination(bus, "pre"))
    assert (fact.node, fact.priority) == ("n1", 5)
    assert fact.epoch == (await scheduler.list()).epoch
    assert (await scheduler.sees("pre", "unschedulable")).nominated_node == "n1"
    await cluster.node("n1")
    pod = await scheduler.take()
    await scheduler.done(pod, "scheduled", node="n1")
    await cluster.bind(pod, "n1")

    async def over() -> bool:
        return await nomination(bus, "pre") is None

    await eventually("the fact has gone", over)


async def test_a_bare_event_requeues_once(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.pod("a")
    await scheduler.reject(await scheduler.take(), "TaintToleration")
    tainted = objects.node("n1", taints=[{"key": "x", "effect": "NoSchedule"}])
    cluster.bare("Node", "UpdateNodeTaint", id="ev1", old=tainted, new=objects.node("n1"))
    pod = await scheduler.take()
    assert pod.woken_by is not None
    assert (pod.woken_by.event_id, pod.woken_by.plugin) == ("bare-ev1", "TaintToleration")
    await scheduler.reject(pod, "TaintToleration")
    cluster.bare("Node", "UpdateNodeTaint", id="ev1", old=tainted, new=objects.node("n1"))
    cluster.bare("Node", "UpdateNodeTaint", id="ev2", old=tainted, new=tainted)
    assert (await requeue_record(bus, "bare-ev2")).skipped[0].name == "a"
    await scheduler.sees("a", "unschedulable")


async def test_a_message_that_is_none_becomes_a_dead_letter(bus: Bus, cluster: Cluster, scheduler: Scheduler) -> None:
    bus.send(subjects.bare_event("Node", "Add"), b'{"id": 3}')
    with pytest.raises(RemoteError, match="not a DoneRequest"):
        await bus.request(subjects.queue_verb("done"), b"{}")

    async def dead() -> DeadLetter | None:
        found = await bus.get("DEAD", subjects.dead("q1"))
        return None if found is None else codec.decode(DeadLetter, found.payload)

    await eventually("a dead letter", dead)
    await cluster.pod("still")
    assert (await scheduler.take()).name == "still"


async def test_a_silent_session_dies_and_its_pods_are_tried_by_another(
    bus: Bus, cluster: Cluster, start_queue: StartQueue
) -> None:
    await start_queue(settings=QueueSettings(session_timeout_s=1.0, pod_max_backoff_s=0.0))
    silent, other = Scheduler(bus, "silent"), Scheduler(bus, "other")
    await silent.led()
    await cluster.pod("parked")
    await silent.reject(await silent.take(), "NodeAffinity")
    await cluster.pod("a")
    lost = await silent.take()
    names: set[str] = set()

    async def both() -> bool:
        names.update(pod.name for pod in (await other.pop(wait_s=0.3)).pods)
        return names == {"a", "parked"}

    await eventually("both pods again: the parked one may have waited for what the dead one had assumed", both)
    late = await silent.done(lost, "scheduled", node="n1")
    assert "is dead" in late.refused
    await other.sees("a", "inFlight")
    record = await eventually("a record of the lost attempt", lambda: last_attempt(bus, "a"))
    assert (record.outcome, record.attempt, record.scheduler) == ("error", lost.attempt, "silent")
    assert record.message == "scheduler session silent died"


async def test_a_session_that_ends_in_order_leaves_its_pods_to_others_at_once(
    bus: Bus, cluster: Cluster, start_queue: StartQueue
) -> None:
    await start_queue(settings=QueueSettings(session_timeout_s=1000.0))
    ends, other = Scheduler(bus, "ends"), Scheduler(bus, "other")
    await ends.led()
    await cluster.pod("a")
    left = await ends.take()
    answers: list[PopReply] = []

    async def wait() -> None:
        answers.append(await ends.pop(wait_s=10.0))

    with anyio.fail_after(WITHIN_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await ends.heartbeat(left.attempt)
            assert (await ends.ask("heartbeat", SessionHeartbeat(session="ends", over=True))).refused == ""
    assert (answers[0].pods, "it has ended" in answers[0].refused) == ((), True)
    again = await other.take(wait_s=1.0)
    assert (again.name, again.number) == ("a", 2)
    await cluster.pod("b")
    assert (await ends.pop()).pods == ()
    assert (await other.take()).name == "b"
    record = await eventually("a record of the attempt that was left", lambda: last_attempt(bus, "a"))
    assert (record.outcome, record.attempt, record.message) == (
        "error",
        left.attempt,
        "scheduler session ends has ended",
    )


async def test_a_binding_that_does_not_come_is_given_up(bus: Bus, cluster: Cluster, start_queue: StartQueue) -> None:
    await start_queue(settings=QueueSettings(binding_timeout_s=1.0))
    scheduler = Scheduler(bus)
    await scheduler.led()
    await cluster.pod("a")
    await scheduler.done(await scheduler.take(), "scheduled", node="n1")
    info = await scheduler.sees("a", "errorBackoffQ")
    assert "no binding was seen within 1 s" in info.message


async def test_a_standby_takes_over_and_retries_every_pending_pod(
    bus: Bus, cluster: Cluster, connect_bus: Any, start_queue: StartQueue
) -> None:
    scheduler = Scheduler(bus)
    async with running(make_service(SERVICE, await connect_bus("q1"), instance="q1")):
        await scheduler.led()
        await start_queue("q2")
        await cluster.pod("parked")
        await scheduler.reject(await scheduler.take(), "NodeAffinity")
        await cluster.pod("flying")
        flying = await scheduler.take()
        first = await scheduler.list()
        assert first.leader == "q1"
    second = await scheduler.led()
    assert second.leader == "q2"
    assert second.epoch > first.epoch
    reply = await scheduler.pop()
    assert {pod.name for pod in reply.pods} == {"parked", "flying"}
    late = await scheduler.done(flying, "scheduled", node="n1")
    assert late.unknown == (flying.attempt,), "an attempt of the epoch before"
    await scheduler.sees("flying", "inFlight")


async def test_attempts_make_traces_that_link(bus: Bus, cluster: Cluster, start_queue: StartQueue) -> None:
    sink = KeptSpans()
    await start_queue(spans=sink)
    scheduler = Scheduler(bus)
    await scheduler.led()
    apply = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    taint = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
    await cluster.put("pods", objects.pod("a"), trace=apply)
    first = await scheduler.take()
    await scheduler.reject(first, "TaintToleration", message="0/1 nodes are available")
    await cluster.put("nodes", objects.node("n1"), trace=taint)
    second = await scheduler.take()
    await scheduler.done(second, "error", message="boom")
    roots = sink.named("attempt")
    assert [span.attributes["podyard.outcome"] for span in roots] == ["unschedulable", "error"]
    assert str(roots[0].ids) == first.trace
    assert sink.links_of(roots[0]) == [f"made by {apply[3:52]}"], "the first attempt links to what made the pod"
    assert sink.links_of(roots[1]) == [f"woken by {taint[3:52]}", f"attempt before {first.trace[3:52]}"]
    assert roots[1].links[0].attributes["podyard.event.object"] == "n1"
    assert [span.error for span in roots] == ["", "boom"], "that no node fits is no fault"
    assert roots[0].attributes["podyard.message"] == "0/1 nodes are available"
    assert roots[0].attributes["podyard.rejected_by.TaintToleration"] is True
    assert roots[1].attributes["podyard.woken_by.plugin"] == "TaintToleration"
    waits = sink.named("wait in queue")
    assert [str(span.parent) for span in waits] == [first.trace, second.trace]
    (moved,) = sink.named("requeue pods")
    assert moved.parent is None, "the change was told on, and has ended"
    assert sink.links_of(moved) == [f"follows {taint[3:52]}"]
    assert moved.ids.trace_id == int(taint[3:35], 16)
    assert moved.events[0].attributes["k8s.pod.name"] == "a"


async def test_what_a_pod_waited_for_before_an_attempt_is_a_trace_of_its_own(
    bus: Bus, cluster: Cluster, start_queue: StartQueue
) -> None:
    sink = KeptSpans()
    await start_queue(spans=sink)
    scheduler = Scheduler(bus)
    await scheduler.led()
    await cluster.pod("a")
    first = await scheduler.take()
    await scheduler.reject(first, "TaintToleration")
    await scheduler.sees("a", "unschedulable")
    await cluster.put("nodes", objects.node("n1"))
    second = await scheduler.take()
    assert second.parked_s > 0
    assert second.trace.endswith("-01"), "an attempt after the first is kept whole"
    await scheduler.done(second, "scheduled", node="n1")
    await cluster.bind(second, "n1")
    await scheduler.misses("a")
    (before,) = sink.named("wait before attempt")
    assert sink.links_of(before) == [f"attempt before {first.trace[3:52]}"]
    (parked,) = sink.named("parked")
    (backing_off,) = sink.named("backing off")
    assert (parked.parent, backing_off.parent) == (before.ids, before.ids)
    assert (parked.start_ns, parked.end_ns, backing_off.end_ns) == (
        before.start_ns,
        backing_off.start_ns,
        before.end_ns,
    )
    attempt = sink.named("attempt")[-1]
    assert attempt.start_ns == before.end_ns, "the attempt begins when the pod is ready"
    assert attempt.attributes["podyard.parked_s"] == second.parked_s
    (binding,) = sink.named("wait for binding")
    assert binding.parent == attempt.ids


async def test_a_pod_that_waits_can_be_seen_and_so_can_its_end(
    bus: Bus, cluster: Cluster, start_queue: StartQueue
) -> None:
    sink = KeptSpans()
    await start_queue(spans=sink)
    scheduler = Scheduler(bus)
    await scheduler.led()
    made, deleted = (f"00-{n}af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" for n in "12")
    pod = objects.pod("g", schedulingGates=[{"name": "example.com/later"}])
    await cluster.put("pods", pod, trace=made)
    await scheduler.sees("g", "gated")
    (gated,) = sink.named("gate pod")
    assert (gated.attributes["podyard.gated_by"], gated.attributes["k8s.pod.name"]) == ("SchedulingGates", "g")
    assert sink.links_of(gated) == [f"made by {made[3:52]}"]
    await cluster.remove("pods", pod, trace=deleted)
    await scheduler.misses("g")
    (left,) = sink.named("leave queue")
    assert left.ids.trace_id == int(deleted[3:35], 16)
    assert sink.links_of(left)[0] == f"follows {deleted[3:52]}"


async def test_an_unsampled_good_attempt_costs_no_span(bus: Bus, cluster: Cluster, start_queue: StartQueue) -> None:
    sink = KeptSpans()
    await start_queue(spans=sink)
    scheduler = Scheduler(bus)
    await scheduler.led()
    await cluster.pod("a")
    pod = await scheduler.take()
    await scheduler.done(pod, "scheduled", node="n1")
    await cluster.bind(pod, "n1")
    await scheduler.misses("a")
    assert sink.spans == []
