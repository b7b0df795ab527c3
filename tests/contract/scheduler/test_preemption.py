"""Preemptions: what the queue is told and when, what becomes of victims, and that it always ends
(docs/rules.md, preemption-ends-with-activation)."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus, Request
from podyard.cluster import disruption
from podyard.cluster.errors import Contended
from podyard.cluster.intents import Author, Plan, Step, Stored
from podyard.cluster.keys import ObjectKey
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindAnswer, BindRequest
from podyard.proto.events import ClusterEvent
from podyard.proto.operations import K8sEvent
from podyard.proto.queue_api import PreemptingRequest, QueueReply
from podyard.scheduler import preemption_link
from podyard.shell import writes
from tests.contract.scheduler.stage import Stage, pod
from tests.support.buses import ConnectBus
from tests.support.cluster import bound
from tests.support.waiting import eventually

BOUND_TRACE = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"


class Preempting:
    """The queue's verb `preempting`: keeps what it is told, with what was done by then."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.told: list[PreemptingRequest] = []
        self.results_at: list[int] = []
        """How many results the queue had when it was told."""
        self.answer: Callable[[PreemptingRequest], str] = lambda _: ""
        self.epoch = 1
        self.open = anyio.Event()
        self.open.set()
        """Requests are answered while this is set."""

    async def serve(self) -> None:
        await self._stage.bus.serve(subjects.queue_verb("preempting"), self._handle)

    async def _handle(self, request: Request) -> bytes:
        message = codec.decode(PreemptingRequest, request.payload)
        self.told.append(message)
        self.results_at.append(len(self._stage.queue.results))
        await self.open.wait()
        outdated = message.running and message.epoch < self.epoch
        return codec.encode(QueueReply(epoch=self.epoch, refused=self.answer(message), outdated=outdated))

    def steps(self) -> list[tuple[bool, str]]:
        """Running or not, and the last victim's name; repeats left out."""
        found = [(one.running, "" if one.victim is None else one.victim.name) for one in self.told]
        return [one for at, one in enumerate(found) if at == 0 or one != found[at - 1]]


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> Stage:
    return Stage(await connect_bus("scheduler", request_timeout_s=0.5), bus)


@pytest_asyncio.fixture
async def preempting(stage: Stage) -> Preempting:
    found = Preempting(stage)
    await found.serve()
    return found


async def placed(stage: Stage, *names: str, cpu: str = "1", on: str = "n0000") -> None:
    """Pods of priority 0 on a node."""
    await stage.cluster.pods(*(pod(name, cpu=cpu) for name in names))
    usage = stage.cluster.usage
    await stage.cluster.commit([bound(name, on, usage=usage[f"uid-{name}"], trace=BOUND_TRACE) for name in names])


async def stored(stage: Stage, name: str) -> tuple[dict[str, Any], ClusterEvent, str] | None:
    """A pod's last version: document, event, trace; None for a marker."""
    found = await stage.bus.get(streams.CLUSTER.name, subjects.object_("pods", "default", name))
    if found is None or found.deleted:
        return None
    event = codec.decode(ClusterEvent, found.payload)
    return msgspec.json.decode(event.object), event, found.trace


async def is_ending(stage: Stage, name: str) -> bool:
    found = await stored(stage, name)
    return found is None or "deletionTimestamp" in found[0]["metadata"]


async def ended(stage: Stage, preempting: Preempting) -> None:
    """Wait until the queue was told that it is over."""
    await eventually("the end", lambda: preempting.told and not preempting.told[-1].running)


async def test_the_queue_is_told_first_then_the_victims_end_one_of_them_last(
    stage: Stage, preempting: Preempting
) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", "two", "three", "four")
    await stage.cluster.pods(pod("urgent", cpu="3", priority=10, schedulerName="default-scheduler"))
    events: list[K8sEvent] = []
    await stage.bus.subscribe("k8sevents.>", lambda _, payload, __: events.append(codec.decode(K8sEvent, payload)))
    async with stage.running():
        preempting.open = anyio.Event()
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        assert preempting.steps() == [(True, "")]
        assert stage.queue.of("urgent") == [], "the result waits until the queue knows that the preemption runs"
        assert not [name for name in ("one", "two", "three", "four") if await is_ending(stage, name)]
        await eventually("a sign of life", lambda: any("1-1" in beat.attempts for beat in stage.queue.beats))
        preempting.open.set()
        await ended(stage, preempting)
        record = await stage.record("urgent")
        victims = [victim.name for victim in record.victims]
        assert (len(victims), record.nominated_node) == (3, "n0000")
        assert preempting.steps() == [(True, ""), (True, victims[-1]), (False, "")]
        assert {one.attempt for one in preempting.told} == {"1-1"}
        await eventually("the result", lambda: stage.queue.of("urgent"))
        [result] = stage.queue.of("urgent")
        assert (result.outcome, result.nominated_node) == ("unschedulable", "n0000")
        for name in victims:
            assert await is_ending(stage, name)
        await eventually("events", lambda: len(events) == 3)
    await says_why(stage, victims[0], events)


async def test_a_start_that_was_for_an_earlier_leader_is_told_again(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10, schedulerName="default-scheduler"))
    async with stage.running():
        preempting.open = anyio.Event()
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        preempting.epoch = 2
        preempting.open.set()
        await ended(stage, preempting)
    assert [(one.running, one.epoch) for one in preempting.told] == [(True, 1), (True, 2), (False, 2)]


async def says_why(stage: Stage, victim: str, events: list[K8sEvent]) -> None:
    """On the pod, in its writer's words, in an event and in the trace."""
    found = await stored(stage, victim)
    assert found is not None
    document, event, trace = found
    [condition] = document["status"]["conditions"]
    del condition["lastTransitionTime"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }
    assert document["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (event.who, event.why) == ("scheduler", "preempted by default/urgent on n0000")
    told = next(one for one in events if one.regarding.name == victim)
    assert (told.reason, told.message, told.trace) == ("Preempted", "Preempted by pod uid-urgent on node n0000", trace)
    assert (told.type, told.action, told.controller) == ("Normal", "Preempting", "default-scheduler")
    [span] = [one for one in stage.spans.spans if one.attributes.get("k8s.pod.name") == victim]
    [cycle] = [one for one in stage.spans.spans if one.name == "schedule cycle"]
    assert span.name == "preempt pod"
    assert span.parent is None, "the cycle that chose it is over"
    assert str(span.ids) == trace
    assert trace.endswith("-01"), "what follows from it is kept"
    assert stage.spans.links_of(span) == [f"follows {str(cycle.ids)[3:52]}", f"ends {BOUND_TRACE[3:52]}"]
    assert span.attributes["podyard.preemptor"] == "default/urgent"
    assert event.causes == (str(cycle.ids),)


async def test_the_only_victim_is_named_at_once(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", cpu="4")
    await stage.cluster.pods(pod("urgent", cpu="3", priority=10))
    async with stage.running():
        await stage.queue.offer("urgent")
        await ended(stage, preempting)
        assert preempting.steps() == [(True, "one"), (False, "")]
        assert await is_ending(stage, "one")


async def test_victims_that_are_gone_already_do_not_keep_it_from_its_end(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", "two", cpu="2")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))
    async with stage.running():
        preempting.open = anyio.Event()
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        for name in ("one", "two"):
            await writes.remove(stage.bus, ObjectKey("pods", "default", name), Author("test"))
        preempting.open.set()
        await ended(stage, preempting)
        assert [running for running, _ in preempting.steps()] == [True, True, False]


async def test_a_victim_that_cannot_be_deleted_spares_the_last_one_and_ends_it_all_the_same(
    stage: Stage, preempting: Preempting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", "two", cpu="2")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))

    def contended(key: ObjectKey, **_: object) -> Plan:
        def plan(_: Stored | None) -> Step:
            raise Contended(key, 8)

        return plan

    monkeypatch.setattr(disruption, "deletion", contended)
    async with stage.running():
        await stage.queue.offer("urgent")
        await ended(stage, preempting)
        assert preempting.steps() == [(True, ""), (False, "")]
        assert not await is_ending(stage, "one")
        assert not await is_ending(stage, "two")
    failed = [one for one in stage.spans.spans if one.name == "preempt pod"]
    assert [one.attributes["podyard.preemption"] for one in failed] == ["failed"]


async def test_a_session_that_is_over_ends_nobody(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", cpu="4")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))
    preempting.answer = lambda _: "that session is dead"
    async with stage.running():
        await stage.queue.offer("urgent")
        await ended(stage, preempting)
        await eventually("the result", lambda: stage.queue.of("urgent"))
        assert not await is_ending(stage, "one")


async def test_a_scheduler_that_stops_says_that_its_preemptions_are_over(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", cpu="4")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))
    async with stage.running():
        preempting.open = anyio.Event()
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        preempting.open.set()
    assert not preempting.told[-1].running


async def test_its_time_is_measured_when_it_is_over(
    stage: Stage, preempting: Preempting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", cpu="4")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))
    now = 100.0
    monkeypatch.setattr(preemption_link, "time", SimpleNamespace(perf_counter=lambda: now))
    async with stage.running():
        preempting.open = anyio.Event()
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        now = 107.0
        preempting.open.set()
        await ended(stage, preempting)
        taken = stage.service.metrics.get_sample_value(
            "podyard_scheduler_preemption_seconds_sum", {"outcome": "success"}
        )
        assert taken == 7.0


async def test_a_victim_that_is_being_bound_is_deleted_when_it_is_bound(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("slow", cpu="4"), pod("urgent", cpu="4", priority=10))
    go_on = anyio.Event()

    async def wait(_: BindRequest) -> None:
        await go_on.wait()

    stage.binder.before = wait
    async with stage.running():
        await stage.queue.offer("slow")
        await eventually("asked", lambda: stage.binder.requests)
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        assert not await is_ending(stage, "slow")
        go_on.set()
        await ended(stage, preempting)
        found = await stored(stage, "slow")
        assert found is not None, "it was bound, so it gets its grace period"
        assert found[0]["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_a_victim_that_is_refused_by_the_binder_is_not_deleted(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("slow", cpu="4"), pod("urgent", cpu="4", priority=10))
    go_on = anyio.Event()

    async def wait(_: BindRequest) -> None:
        await go_on.wait()

    stage.binder.before = wait
    stage.binder.answer = lambda decision: BindAnswer(attempt=decision.attempt, uid=decision.uid, result="error")
    async with stage.running():
        await stage.queue.offer("slow")
        await eventually("asked", lambda: stage.binder.requests)
        await stage.queue.offer("urgent")
        await eventually("the start", lambda: preempting.told)
        go_on.set()
        await ended(stage, preempting)
        assert not await is_ending(stage, "slow")


async def test_lower_nominations_are_named_in_the_result(stage: Stage, preempting: Preempting) -> None:
    await stage.cluster.nodes(1)
    await placed(stage, "one", cpu="4")
    await stage.cluster.pods(pod("urgent", cpu="4", priority=10))
    middle = pod("middle", cpu="4", priority=5, status={"nominatedNodeName": "n0000"})
    await stage.cluster.pods(middle)
    async with stage.running():
        await stage.queue.offer("urgent")

        [told] = await eventually("the result", lambda: stage.queue.of("urgent"))
        assert [one.name for one in told.cleared] == ["middle"]
