"""The demo's story with every service killed at a busy moment: it still ends right, and what is stored adds
up."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from podyard.bus.errors import TemporaryError, Unclear
from podyard.cli.demo.story import NAMESPACE, REPORT, TRAINER, WEB_PODS, Step, Story
from podyard.cluster.pods import PodView
from podyard.objects import pod_requests
from podyard.proto import codec, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.shell.snapshot import snapshot
from tests.e2e import ledger
from tests.e2e.stage import WITHIN_S, Stand, pause, paused, resume, state_of
from tests.support.waiting import eventually

PATIENCE_S: Final = 60.0
POP_WAIT_S: Final = 1.0
"""So long a pop waits in the queue (`pop_wait_s` of the scheduler)."""
HOPELESS: Final = "hopeless"
"""A pod that is too large for every node."""
PAUSES: Final = 20
POLL_S: Final = 0.02
"""The queue tells what it holds only when asked."""


@pytest.mark.timeout(240)
async def test_the_story_ends_right_although_every_service_is_killed_amid_its_work(here: Stand) -> None:
    here = here._replace(namespace=NAMESPACE)
    after = ledger.beginning(here.seen.view)
    starts = {child.instance: child.starts for child in here.lab.children}
    story = Story(here.do, here.seen, PATIENCE_S)
    play = Play(here)
    async with story.sensors():
        for step in story.steps():
            await play.step(step)
    assert {child.service for child in here.lab.children if child.starts <= starts[child.instance]} == set()
    await here.lab.until_ready(WITHIN_S)
    with paused(here.lab, "descheduler"):
        await play.kill("api")  # what it had in hand for the descheduler is stored by now, or never will be
        await come_to_rest(here)
        await check_end(here, after)
    await here.lab.until_ready(WITHIN_S)


class Play:
    """The story's steps, each with the kills that belong to it."""

    def __init__(self, here: Stand) -> None:
        self._here = here
        self._disturb: dict[str, Callable[[Step], Awaitable[None]]] = {
            "nodes": self._api_between_write_and_answer,
            "caches": self._binder_between_commit_and_answer,
            "web": self._workloads_scheduler_and_binder_with_pods_in_hand,
            "park": self._queue_with_pods_parked_and_in_flight,
            "wake-a": self._api_with_a_request_in_hand,
            "evict": self._agent_amid_eviction_and_workloads_before_replacement,
            "deschedule": self._descheduler_amid_its_cycle,
        }

    async def step(self, step: Step) -> None:
        """Act, kill, and see what the step must lead to."""
        await self._disturb.get(step.name, self._leave_alone)(step)
        await step.see()

    async def _leave_alone(self, step: Step) -> None:
        await step.act()

    async def _api_between_write_and_answer(self, step: Step) -> None:
        async with self._acting(step):
            await self._until("a node stored", lambda: self._here.seen.view.nodes)
            self._here.lab.child("kube_api").kill()  # nobody of the story asks it: it only has to come back
            await self.kill("api")

    async def _binder_between_commit_and_answer(self, step: Step) -> None:
        async with self._acting(step):
            await self._until("a binding stored", self._bound)
            await self.kill("binder")

    async def _workloads_scheduler_and_binder_with_pods_in_hand(self, step: Step) -> None:
        pause(self._here.lab, "scheduler")
        pause(self._here.lab, "binder")
        async with self._acting(step):
            await self._until("a web pod made", lambda: self._here.seen.pods("web"))
            self._here.lab.child("workloads").kill()
            if not await self._answers_a_pop_that_waits():
                resume(self._here.lab, "scheduler")
                await self._queue_holds(1, "inFlight", "binding")
            await self.kill("scheduler")
            await self._until("all web pods made", lambda: len(self._here.seen.pods("web")) == WEB_PODS)
            await self._queue_holds(1, "binding")
            await self.kill("binder")

    async def _queue_with_pods_parked_and_in_flight(self, step: Step) -> None:
        await step.act()
        await step.see()
        await self._here.do.apply([self._here.pod(HOPELESS, cpu="99")], "it will be parked at the end")
        await self._here.attempted(HOPELESS)
        await self._queue_holds(3, "unschedulable")
        extra = await self._in_flight_at_a_paused_scheduler()
        tried = {name: self._tries(name) for name in (TRAINER[1], REPORT[1], HOPELESS)}
        await self.kill("queue")
        resume(self._here.lab, "scheduler")
        await self._here.running(extra)
        for name, times in tried.items():
            await self._here.attempted(name, times + 1)

    async def _api_with_a_request_in_hand(self, step: Step) -> None:
        pause(self._here.lab, "api")
        async with self._acting(step):
            # the same connection's later request is answered: the server has passed the earlier one on
            await self._queue()
            await self.kill("api")

    async def _agent_amid_eviction_and_workloads_before_replacement(self, step: Step) -> None:
        pause(self._here.lab, "workloads")
        async with self._acting(step):
            await self._until("an eviction announced", self._evicted_by_agent)
            await self.kill("node_agent")
            await self._until("an evicted pod ended", self._evicted)
            await self.kill("workloads")

    async def _descheduler_amid_its_cycle(self, step: Step) -> None:
        async with self._acting(step):
            events = self._here.seen.events
            await self._until("an eviction", lambda: any(event.reporter == "descheduler" for event in events))
            await self.kill("descheduler")

    # what is prepared

    async def _in_flight_at_a_paused_scheduler(self) -> str:
        """A new pod that the queue has handed out; its name."""
        for number in range(PAUSES):
            name = f"extra-{number}"
            pause(self._here.lab, "scheduler")
            await self._here.do.apply([self._here.pod(name)], "it is to be in flight")
            if await self._answers_a_pop_that_waits():
                return name
            resume(self._here.lab, "scheduler")
            await self._here.running(name)
        raise AssertionError(f"no pop of {PAUSES} paused schedulers was answered")

    async def _answers_a_pop_that_waits(self) -> bool:
        """Whether the queue has handed a pod to a scheduler that is paused: not if its last pop had ended
        before there was a pod."""
        with anyio.move_on_after(POP_WAIT_S):
            await self._queue_holds(1, "inFlight")
            return True
        return False

    # what is waited for

    def _tries(self, name: str) -> int:
        return sum(record.name == name for record in self._here.seen.attempts)

    def _evicted_by_agent(self) -> bool:
        return any(event.reason == "Evicted" and event.reporter != "descheduler" for event in self._here.seen.events)

    def _bound(self) -> list[PodView]:
        return [one for one in self._here.seen.view.pods.values() if one.bound is not None]

    def _evicted(self) -> list[PodView]:
        pods = self._here.seen.view.pods.values()
        return [one for one in pods if one.status is not None and one.status.reason == "Evicted"]

    async def _until(self, what: str, question: Callable[[], Any]) -> None:
        await self._here.seen.until(what, question, PATIENCE_S)

    async def _queue_holds(self, least: int, *pools: str) -> None:
        async def holds() -> bool:
            counts = (await self._queue()).counts
            return sum(counts.get(pool, 0) for pool in pools) >= least

        await eventually(f"{least} pods in {' or '.join(pools)}", holds, WITHIN_S)

    async def _queue(self) -> QueueListReply:
        return await queue_list(self._here)

    # what is done

    @asynccontextmanager
    async def _acting(self, step: Step) -> AsyncGenerator[None]:
        """Act while the block runs; ends when both have."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step.act)
            yield

    async def kill(self, service: str) -> None:
        """SIGKILL, and wait until its successor works."""
        child = self._here.lab.child(service)
        starts = child.starts
        child.kill()
        await state_of(
            self._here.lab,
            lambda one: one is not child or (one.starts > starts and one.state in ("ready", "not ready")),
            f"{service} started again",
        )


async def queue_list(here: Stand) -> QueueListReply:
    """What the queue holds, asked until a leader answers."""
    asked = codec.encode(QueueListRequest())
    while True:
        try:
            return codec.decode(QueueListReply, (await here.bus.request(subjects.queue_verb("list"), asked)).payload)
        except (TemporaryError, Unclear):
            await anyio.sleep(POLL_S)


async def come_to_rest(here: Stand) -> None:
    """Wait until the pods that were moved have gone and their successors run, and the queue knows it."""

    def at_rest() -> bool:
        pods = here.seen.view.pods_by_uid.values()
        leaving = [one for one in pods if one.deleting or (one.ended and not one.released)]
        return not leaving and len(here.seen.running("web")) == WEB_PODS

    async def queue_knows() -> bool:
        return [one.name for one in (await queue_list(here)).pods] == [HOPELESS]

    await here.seen.until("nothing on its way", at_rest, PATIENCE_S)
    await eventually(f"a queue that holds {HOPELESS} alone", queue_knows, WITHIN_S)


async def check_end(here: Stand, after: int) -> None:
    """Nothing is lost, nothing is there twice, and everyone's sums are those of the stream."""
    found = await ledger.read_back(here.bus, after)
    view = await snapshot(here.bus)
    ledger.check_commits(found, view.nodes)
    assert view.fence is not None
    assert view.fence.n == after + len(found.commits)
    for node in view.nodes:
        held = [one.bound for one in view.pods_on(node).values() if one.bound is not None]
        assert ledger.usage(held) == ledger.usage(one for one in found.live.values() if one.node == node)
    parked = {one.uid: one for one in (await queue_list(here)).pods}
    for one in view.pods.values():
        if one.bound is not None:
            assert one.usage == pod_requests.usage(one.stored), one
        elif one.release is not None:
            assert one.ended, f"{one} was released and has not ended"
        else:
            assert one.uid in parked, f"{one} is lost: neither bound nor in the queue"
            assert parked[one.uid].message, f"nobody knows why {one} waits"
    assert [one.name for one in parked.values()] == [HOPELESS]
    living = [one for one in view.pods.values() if one.labels.get("app") == "web" and not one.ended]
    assert len(living) == WEB_PODS
    assert await metric(here, "binder", "podyard_binder_usage_drifts_total") == 0


async def metric(here: Stand, service: str, name: str) -> float:
    """A number from a service's /metrics."""
    host, port = here.lab.child(service).http.split(":")
    answer = b""
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        async for chunk in stream:
            answer += chunk
    [line] = [line for line in answer.decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])
