"""A core that raises on one message: it is set aside, others' pods are handed out meanwhile, the process
lives."""

from typing import Any

import anyio
import pytest

from podyard.bus import Bus, TemporaryError
from podyard.cluster.changes import Change
from podyard.proto import codec, subjects
from podyard.proto.queue_api import DoneRequest, PopRequest
from podyard.queue.core.changes import Changes
from podyard.queue.core.leader import Leader
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.contract.queue.conftest import StartQueue
from tests.contract.queue.stack import Cluster, Scheduler
from tests.support.raising import dead_letter, raise_on
from tests.support.waiting import eventually


def is_poison(changes: Changes, change: Change, now: float) -> bool:
    """A pod of that name."""
    return change.key.name == "poison" and change.new is not None


def is_poison_queued(queue: SchedulingQueue, pod: QueuedPod, now: float) -> bool:
    """The same, when a queue is filled."""
    return pod.key[1] == "poison"


def holds_poison(leader: Leader, request: DoneRequest, now: float) -> bool:
    """The same, when its attempt has a result."""
    return any(result.name == "poison" for result in request.results)


def is_poison_pop(leader: Leader, request: PopRequest, now: float, position: int) -> bool:
    """A pop of that name for which there is a pod."""
    return request.pop_id == "poison" and leader.queue.has_ready()


async def takes(scheduler: Scheduler, name: str) -> bool:
    """Whether that pod is popped, by a session of its own if need be: the next leader knows no session."""
    await scheduler.led()
    return (await scheduler.take()).name == name


async def test_a_pod_that_the_core_raises_on_is_set_aside_and_others_are_popped(
    cluster: Cluster, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Changes, "apply", is_poison)
    await cluster.pod("first")
    assert await takes(scheduler, "first")
    sequence = await cluster.pod("poison")
    letter = await dead_letter(cluster.bus, "queue")
    assert (letter.subject, letter.sequence) == ("cluster.pods.default.poison", sequence)
    assert letter.payload, "followed, it came with its payload"
    await scheduler.led()
    await scheduler.sees("first", "activeQ")
    assert await scheduler.where("poison") is None
    await cluster.pod("second")
    assert await takes(scheduler, "first")
    assert await takes(scheduler, "second")
    assert len(met) == 1


async def test_a_pod_on_which_the_filling_of_a_queue_raises_is_set_aside(
    cluster: Cluster, bus: Bus, start_queue: StartQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, SchedulingQueue, "restore", is_poison_queued)
    sequence = await cluster.pod("poison")
    await cluster.pod("first")
    await start_queue()
    letter = await dead_letter(bus, "queue")
    assert (letter.subject, letter.sequence) == ("cluster.pods.default.poison", sequence)
    assert await takes(Scheduler(bus), "first")
    assert len(met) == 1


async def test_results_that_the_core_raises_on_are_refused_and_others_are_taken(
    cluster: Cluster, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Leader, "done", holds_poison)
    await cluster.pod("poison")
    poison = await scheduler.take()
    ends: list[Any] = []

    async def told() -> bool:
        try:
            ends.append(await scheduler.done(poison, "scheduled", node="n1"))
        except Exception:  # the queue changes its leader
            return False
        return True

    await eventually("an answer", told)
    assert "Bug: nobody thought of this" in ends[0].refused
    letter = await dead_letter(cluster.bus, "queue")
    assert letter.subject == subjects.queue_verb("done")
    assert codec.decode(DoneRequest, letter.payload).results[0].attempt == poison.attempt
    await cluster.pod("other")
    await scheduler.led()
    other = Scheduler(cluster.bus, "s2")
    names = {(await other.take()).name, (await other.take()).name}
    assert names == {"poison", "other"}, "its attempt has gone back"
    assert len(met) == 1


async def test_a_pop_that_has_waited_and_that_the_core_raises_on_is_refused_and_others_are_answered(
    cluster: Cluster, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Leader, "pop", is_poison_pop)
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            with pytest.raises(TemporaryError, match="changes its leader"):
                await scheduler.pop(pop_id="poison", wait_s=8)

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await scheduler.led()  # it is answered after the pop has come
        await cluster.pod("a")
    letter = await dead_letter(cluster.bus, "queue")
    assert letter.subject == subjects.queue_verb("pop")
    assert codec.decode(PopRequest, letter.payload).pop_id == "poison"
    await scheduler.led()
    assert "Bug: nobody thought of this" in (await scheduler.pop(pop_id="poison")).refused
    assert (await scheduler.take()).name == "a"
    assert len(met) == 1
