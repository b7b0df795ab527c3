"""People ask schedulers where a pod would go, over the bus."""

from contextlib import AsyncExitStack
from typing import Any

import anyio
import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus, RemoteError
from podyard.framework.cycle import Cycle
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import DeadLetter
from podyard.proto.scheduler_api import WouldGoReply, WouldGoRequest
from podyard.scheduler import questions
from podyard.scheduler.core.rehearsals import Rehearsals
from podyard.scheduler.service import SERVICE
from podyard.scheduler.settings import SchedulerSettings
from tests.contract.scheduler.stage import Stage, pod
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.objects import node
from tests.support.services import make_service, running
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> Stage:
    return Stage(await connect_bus("scheduler", request_timeout_s=0.5), bus)


async def ask(bus: Bus, **fields: Any) -> WouldGoReply:
    payload = codec.encode(WouldGoRequest(**{"pod": codec.NULL, **fields}))

    async def answered() -> WouldGoReply | None:
        return codec.decode(WouldGoReply, (await bus.request(subjects.SCHEDULER_WOULD, payload, timeout_s=5)).payload)

    return await eventually("an answer", answered)


def raw(document: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


async def test_where_a_stored_and_a_new_pod_would_go_and_nothing_is_written(stage: Stage) -> None:
    await stage.cluster.create("nodes", [node("small", cpu="1"), node("large", cpu="8")])
    await stage.cluster.pods(pod("waits", cpu="2"))
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        before = await stage.cluster.last_sequence()
        stored = await ask(stage.bus, namespace="default", name="waits", limit=10)
        new = await ask(stage.bus, pod=raw(objects.pod("new", cpu="2")))
        assert (stored.node, new.node) == ("large", "large")
        assert [(one.names, one.verdicts[0].reasons) for one in stored.verdicts] == [
            (("small",), ("Insufficient cpu",))
        ]
        assert await stage.cluster.last_sequence() == before
        assert await stage.bus.last_sequence(streams.DECISIONS.name) == 0
        assert not stage.queue.results
        assert not stage.binder.requests
        assert not stage.spans.spans
        assert not stage.service.metrics.get_sample_value(
            "scheduler_schedule_attempts_total", {"profile": "default-scheduler", "result": "unschedulable"}
        )


async def test_what_was_just_written_is_known_if_its_position_is_named(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        await stage.cluster.pods(pod("late"))
        position = await stage.cluster.last_sequence()
        reply = await ask(stage.bus, namespace="default", name="late", position=position)
        assert reply.position >= position
        assert reply.node == "n0000"


async def test_a_position_that_does_not_come_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "REACHED_S", 0.1)
    await stage.cluster.nodes(1)
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        with pytest.raises(RemoteError, match=r"has read up to position \d+, and 1000000 is not reached within 0.1 s"):
            await ask(stage.bus, namespace="default", name="a", position=1_000_000)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "it names no pod"),
        ({"namespace": "default"}, "it names no pod"),
        ({"namespace": "default", "name": "a", "pod": raw({})}, "it has a `pod` and names another one"),
        ({"pod": raw({"metadata": []})}, "pod: "),
        ({"pod": msgspec.Raw(b"7")}, "pod: "),
        ({"pod": raw({"metadata": {"name": "a"}})}, "no namespace, name or uid: ask the api for a dry run"),
        (
            {"pod": raw(objects.pod("a", cpu="x"))},
            "pod: spec.containers",
        ),
    ],
)
async def test_what_is_no_question_is_refused_with_the_reason(
    stage: Stage, fields: dict[str, Any], reason: str
) -> None:
    await stage.cluster.nodes(1)
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        with pytest.raises(RemoteError, match=reason):
            await ask(stage.bus, **fields)
        await stage.cluster.pods(pod("good"))
        await stage.queue.offer("good")
        await eventually("bound", lambda: stage.cluster.bound)


async def test_of_two_schedulers_one_answers(stage: Stage, connect_bus: ConnectBus, bus: Bus) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("a"))
    other = make_service(SERVICE, await connect_bus("scheduler", request_timeout_s=0.5), SchedulerSettings())
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stage.running())
        await stack.enter_async_context(running(other))
        await eventually("both serve", lambda: stage.service.health.ready and other.health.ready)
        asked = {(await ask(bus, namespace="default", name="a")).scheduler for _ in range(40)}
        assert 1 <= len(asked) <= 2
        counts = [one.endpoints.response("STATS") for one in (stage.service, other)]
        requests = sum(msgspec.json.decode(one)["endpoints"][0]["num_requests"] for one in counts)
        assert requests == 40


class Time:
    """As questions see it: a rehearsal takes as long as it is said to, and a pause ends when the test lets
    it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._end = anyio.Event()

    move_on_after = staticmethod(anyio.move_on_after)

    def current_time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.pauses.append(seconds)
            await self._end.wait()
        self.now += seconds

    def end_pause(self) -> None:
        self._end.set()
        self._end = anyio.Event()


async def test_one_is_in_hand_at_a_time_and_scheduling_gets_as_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, took, run = Time(), [7.0, 5.0, 3.0], Rehearsals.run
    left = list(took)

    def slow(rehearsals: Rehearsals) -> None:
        passes.now += left.pop(0)
        run(rehearsals)

    monkeypatch.setattr(questions, "anyio", passes)
    monkeypatch.setattr(Rehearsals, "run", slow)
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("a"), pod("meanwhile-1"), pod("meanwhile-2"))
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        async with anyio.create_task_group() as tasks:
            for _ in took:
                tasks.start_soon(lambda: ask(stage.bus, namespace="default", name="a"))
            for number in (1, 2):
                await eventually("a pause", lambda number=number: len(passes.pauses) == number)
                await stage.queue.offer(f"meanwhile-{number}")
                await eventually("bound", lambda number=number: f"uid-meanwhile-{number}" in stage.cluster.bound)
                assert passes.pauses == took[:number]
                assert left == took[number:], "the next one waits until the pause is over"
                passes.end_pause()
    assert (passes.pauses, left) == (took[:2], [])


async def test_a_question_that_the_core_raises_on_is_set_aside_and_scheduling_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Cycle.steps

    def raises(self: Cycle, pod: Any) -> Any:
        if pod.name == "bad":
            raise RuntimeError("a bug")
        return steps(self, pod)

    monkeypatch.setattr(Cycle, "steps", raises)
    await stage.cluster.nodes(1)
    async with stage.running():
        await eventually("it serves", lambda: stage.queue.pops)
        bad = WouldGoRequest(pod=raw(objects.pod("bad")))

        async def refused() -> str:
            try:
                await stage.bus.request(subjects.SCHEDULER_WOULD, codec.encode(bad), timeout_s=2)
            except RemoteError as error:
                return error.reason if error.reason.startswith("set aside") else ""
            except Exception:  # the term ends: ask again
                return ""
            raise AssertionError("it answers")

        assert "RuntimeError: a bug" in await eventually("it is refused", refused)
        dead = await stage.bus.get(streams.DEAD.name, subjects.dead("scheduler"))
        assert dead is not None
        assert subjects.SCHEDULER_WOULD in codec.decode(DeadLetter, dead.payload).subject
        await stage.cluster.pods(pod("good"))
        await stage.queue.offer("good")
        await eventually("bound", lambda: stage.cluster.bound)
        assert (await ask(stage.bus, namespace="default", name="good")).placed_on == "n0000"
