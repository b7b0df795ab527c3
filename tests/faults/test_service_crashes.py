"""A service dies at a named point of its work, and either itself or its standby goes on: nothing is bound
twice, overcommitted or lost."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest

from podyard.proto import headers
from podyard.proto.placement import Binding
from tests.faults.frames import Frame
from tests.faults.message_rules import CrashPoint, Moment
from tests.faults.stage import Stage

pytestmark = pytest.mark.timeout(200)
whole = pytest.mark.whole_faults
HIT_WITHIN_S: Final = 20.0
BOUND_WITHIN_S: Final = 40.0
SCHEDULERS: Final = ("scheduler-1", "scheduler-2")


def commits(frame: Frame) -> bool:
    """The fence as the last message of a batch."""
    return headers.BATCH_COMMIT.encode() in frame.head


def alone(frame: Frame) -> bool:
    """The fence moved without a batch: at a take-over, or to settle what is unclear."""
    return not commits(frame)


def hands_out(frame: Frame) -> bool:
    """A pop's answer with pods in it."""
    return b'"attempt"' in frame.payload


def scheduled(frame: Frame) -> bool:
    """Results of which one is a node."""
    return b'"outcome":"scheduled"' in frame.payload


def binds(frame: Frame) -> bool:
    """The answer of a binder that has bound something."""
    return b'"result":"bound"' in frame.payload


class Death(NamedTuple):
    """Who dies where, and whether it is started again at once, before its lease has ended."""

    service: str
    point: Callable[[], CrashPoint]
    at_once: bool = False


BINDER: Final = {
    "in the middle of a batch": Death("binder", lambda: CrashPoint("placement.commits.*", "before", nth=4)),
    "before the commit": Death("binder", lambda: CrashPoint("placement.fence", "before", nth=4, where=commits)),
    "before the commit, restarted": Death(
        "binder", lambda: CrashPoint("placement.fence", "before", nth=4, where=commits), at_once=True
    ),
    "after the commit, before its ack, restarted": Death(
        "binder", lambda: CrashPoint("placement.fence", "stored", nth=4, where=commits), at_once=True
    ),
    "between ack and reply": Death("binder", lambda: CrashPoint("answer to svc.binder.bind", "before", where=binds)),
    "after the reply, restarted": Death(
        "binder", lambda: CrashPoint("answer to svc.binder.bind", "stored", where=binds), at_once=True
    ),
}
QUEUE: Final = {
    "before it answers a pop, restarted": Death(
        "queue", lambda: CrashPoint("answer to svc.queue.pop", "before", nth=3, where=hands_out), at_once=True
    ),
    "after it answered a pop": Death(
        "queue", lambda: CrashPoint("answer to svc.queue.pop", "stored", nth=3, where=hands_out)
    ),
    "before it answers done": Death("queue", lambda: CrashPoint("answer to svc.queue.done", "before", nth=3)),
    "before it records a wake-up": Death("queue", lambda: CrashPoint("requeues.>", "before", nth=2)),
}
SCHEDULER: Final = {
    "after done, before bind": Death("scheduler", lambda: CrashPoint("svc.binder.bind", "before", nth=3)),
    "between done and its answer": Death(
        "scheduler", lambda: CrashPoint("svc.queue.done", "stored", nth=2, where=scheduled), at_once=True
    ),
    "between bind and its answer": Death("scheduler", lambda: CrashPoint("svc.binder.bind", "stored", nth=3)),
    "between pop and its answer": Death(
        "scheduler", lambda: CrashPoint("svc.queue.pop", "stored", nth=4), at_once=True
    ),
}
OTHERS: Final = {
    "api between write and ack": Death("api", lambda: CrashPoint("cluster.pods.>", "stored", nth=5), at_once=True),
    "agent amid its reports": Death(
        "node_agent", lambda: CrashPoint("cluster.podstatus.>", "stored", nth=9), at_once=True
    ),
    "workloads before a marker": Death("workloads", lambda: CrashPoint("cluster.pods.>", "before"), at_once=True),
}
SHORT: Final = (
    "binder after the commit",
    "binder between ack",
    "queue before it answers a pop",
    "scheduler after done",
)
"""Of each service one, in `make test`."""


def deaths() -> list[object]:
    """All, of which a few are for every day."""
    named = {f"binder {name}": death for name, death in BINDER.items()}
    named |= {f"queue {name}": death for name, death in QUEUE.items()}
    named |= {f"scheduler {name}": death for name, death in SCHEDULER.items()} | OTHERS
    return [
        pytest.param(death, id=name, marks=() if name.startswith(SHORT) else whole) for name, death in named.items()
    ]


@pytest.mark.parametrize("death", deaths())
async def test_a_service_that_dies_there_loses_nothing(stage: Stage, death: Death, request: pytest.FixtureRequest):
    async with stage.trial(request.node.callspec.id.replace(" ", "-").replace(",", "").lower()) as load:
        leads = death.service in ("binder", "queue")
        victim = await stage.leading(death.service) if leads else f"{death.service}-1"
        point = stage.proxy(victim).rule(death.point())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            await point.hit(HIT_WITHIN_S)
            assert await stage.process(victim).ended() == -signal.SIGKILL
            if death.at_once:
                await stage.process(victim).start()
            elif leads:
                await stage.leading(death.service, other_than=victim)


@whole
@pytest.mark.parametrize("listing", [False, True], ids=["before it lists", "while it lists"])
async def test_a_binder_that_dies_while_taking_over_leaves_it_to_the_next(stage: Stage, listing: bool):
    """Between the fence's move, which is its first write, and the end of the listing that must hold it."""
    async with stage.trial("take-over") as load:
        first = await stage.leading("binder")
        second = stage.standby("binder", first)
        consumers = "$JS.API.CONSUMER.CREATE.CLUSTER.>"
        point = CrashPoint(consumers, "answered") if listing else CrashPoint("placement.fence", "answered", where=alone)
        async with load.flowing():
            await stage.bound(10)
            stage.proxy(second).rule(point)
            stage.process(first).kill()
            await point.hit(HIT_WITHIN_S)
            assert await stage.process(second).ended() == -signal.SIGKILL
            epoch = stage.recorder.checker.fence.epoch
            await stage.process(first).start()
            await stage.bound(5)
        assert stage.recorder.checker.fence.epoch > epoch


@whole
@pytest.mark.parametrize("moment", ["before", "stored", "answered"])
async def test_a_scheduler_that_dies_between_deletions_of_its_victims(stage: Stage, moment: Moment):
    """Those that are deleted go, the others stay; the preemptor is tried again and ends on a node."""
    async with stage.trial(f"victims-{moment}") as load:
        await load.crowd()
        await stage.verdict()
        points = [stage.proxy(one).rule(CrashPoint("cluster.pods.>", moment, nth=1)) for one in SCHEDULERS]
        await load.preempt()
        await stage.died(points, HIT_WITHIN_S)
        for rule in points:
            rule.end()
        await asyncio.wait_for(all_bound(stage, load.made[-3:]), BOUND_WITHIN_S)


@whole
@pytest.mark.parametrize("moment", ["before", "stored"])
async def test_a_queue_that_dies_around_a_nomination(stage: Stage, moment: Moment):
    async with stage.trial(f"nomination-{moment}") as load:
        await load.crowd()
        await stage.verdict()
        leader = await stage.leading("queue")
        point = stage.proxy(leader).rule(CrashPoint("cluster.nominations.>", moment, nth=2))
        await load.preempt()
        await point.hit(HIT_WITHIN_S)
        assert await stage.process(leader).ended() == -signal.SIGKILL
        await stage.leading("queue", other_than=leader)


async def all_bound(stage: Stage, names: Sequence[str]) -> None:
    """Wait until these pods are."""
    while set(names) - {one.name for one in stage.recorder.placed.values() if isinstance(one, Binding)}:
        await stage.recorder.changed()


@whole
@pytest.mark.parametrize("moment", ["before", "stored"])
async def test_a_queue_that_dies_while_it_buries_a_session(stage: Stage, moment: Moment):
    """A scheduler dies with attempts open; the queue writes what became of them, and dies too."""
    async with stage.trial(f"burial-{moment}") as load:
        leader = await stage.leading("queue")
        death = stage.proxy("scheduler-1").rule(CrashPoint("svc.queue.done", "before", nth=2))
        burial = stage.proxy(leader).rule(CrashPoint("decisions.>", moment))
        async with load.flowing():
            await death.hit(HIT_WITHIN_S)
            await burial.hit(HIT_WITHIN_S)
            assert await stage.process(leader).ended() == -signal.SIGKILL
            await stage.leading("queue", other_than=leader)


@whole
async def test_everything_dies_at_once(stage: Stage):
    """Nothing but what is stored is left, with pods in every state."""
    async with stage.trial("everything") as load, load.flowing():
        await stage.bound(10)
        for process in stage.processes.values():
            process.kill()
        for process in stage.processes.values():
            assert await process.ended() == -signal.SIGKILL
        await stage.revive()
        await stage.bound(5)
