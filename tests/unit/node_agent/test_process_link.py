"""Orders of pods that are processes do not overtake each other."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, cast

import anyio
import pytest
import pytest_asyncio

from podyard.node_agent.core import messages
from podyard.node_agent.core.effects import LimitPod, StartContainer, StopPod
from podyard.node_agent.core.programs import Bounds, Program
from podyard.node_agent.host.errors import HostError, NotStarted
from podyard.node_agent.host.processes import Processes
from podyard.node_agent.host.records import Command, Limits, PodId, Started
from podyard.node_agent.process_link import ProcessLink
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto.message import ObjectRef
from podyard.runtime.service import Service
from tests.support.waiting import eventually

ABOUT = ObjectRef(resource="pods", namespace="default", name="web", uid="u")


class Place:
    """Which containers a pod has."""

    def __init__(self, *names: str) -> None:
        self.containers = dict.fromkeys(names)


class Played:
    """Processes that start and end when the test says so; what was asked, in order."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pods: dict[str, Any] = {}
        self.held = anyio.Event()
        self.held.set()
        self.failing: list[Exception] = []
        self.notes = ()
        self.found = ()

    async def make(self, pod: PodId, _limits: Limits) -> None:
        self.pods.setdefault(pod.uid, Place())

    async def start(self, uid: str, command: Command) -> Started:
        self.asked.append(f"start {command.container} {command.attempt}")
        await self.held.wait()
        if self.failing:
            raise self.failing.pop()
        self.asked.append("started")
        return Started(uid, command.container, command.attempt, 1, 2.0)

    async def stop(self, uid: str, grace_s: float, containers: Iterable[str]) -> None:
        listed = "".join(f" {one}" for one in containers)
        self.asked.append(f"stop{listed} {round(grace_s)}")
        await self.held.wait()
        if self.failing:
            raise self.failing.pop()

    async def remove(self, uid: str) -> None:
        await anyio.lowlevel.checkpoint()
        del self.pods[uid]
        self.asked.append("removed")

    async def limit(self, uid: str, container: str, wanted: Limits) -> None:
        self.asked.append(f"limit {container} {wanted.memory_bytes}")

    def used(self) -> Mapping[str, Any]:
        return self.pods


class _Log:
    def warning(self, *_words: Any, **_more: Any) -> None: ...
    def error(self, *_words: Any, **_more: Any) -> None: ...


class _Service:
    """Of a service what a link needs of it."""

    bus = None
    log = _Log()
    settings = NodeAgentSettings()

    class clock:
        @staticmethod
        def now() -> float:
            return 7.0


class Stage:
    def __init__(self) -> None:
        self.processes = Played()
        self.told: list[messages.OfProcesses] = []
        self.link = ProcessLink(
            cast("Service[NodeAgentSettings]", _Service()),
            cast("Processes", self.processes),
            self.told.append,
            self.settled,
        )
        self.stored = anyio.Event()
        self.stored.set()
        """What is said of the pod is stored."""

    async def settled(self, uid: str) -> None:
        assert uid == "u"
        await self.stored.wait()

    def start(self, attempt: int = 0) -> None:
        program = Program(argv=("run",))
        self.link.do(StartContainer(ABOUT, "main", attempt, program, Bounds(), Bounds()))

    async def asked(self, *what: str) -> None:
        await eventually(str(what), lambda: self.processes.asked == [*what])

    async def gone(self, times: int = 1) -> None:
        await eventually("it is gone", lambda: self.told.count(messages.PodGone("u")) == times)


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    found = Stage()
    found.processes.pods["u"] = Place("main")
    yield found


async def test_an_end_waits_for_the_start_that_is_under_way(stage: Stage):
    async with stage.link:
        stage.processes.held = anyio.Event()
        stage.start()
        await stage.asked("start main 0")
        stage.link.do(StopPod("u", 5.0))
        await anyio.wait_all_tasks_blocked()
        await stage.asked("start main 0")
        stage.processes.held.set()
        await stage.asked("start main 0", "started", "stop main 5", "removed")
        await stage.gone()
        assert stage.told[1:] == [messages.ContainerStarted("u", "main", 0, 2.0), messages.PodGone("u")]


async def test_a_start_waits_for_the_end_that_is_under_way(stage: Stage):
    async with stage.link:
        stage.processes.held = anyio.Event()
        stage.link.do(StopPod("u", 0.0))
        await stage.asked("stop main 0")
        stage.start()
        await anyio.wait_all_tasks_blocked()
        await stage.asked("stop main 0")
        stage.processes.held.set()
        await stage.asked("stop main 0", "removed", "start main 0", "started")


async def test_an_end_that_is_to_be_sooner_does_not_wait_and_the_pod_is_removed_once(stage: Stage):
    async with stage.link:
        stage.processes.held = anyio.Event()
        stage.link.do(StopPod("u", 30.0))
        stage.link.do(StopPod("u", 1.0))
        await stage.asked("stop main 30", "stop main 1")
        stage.processes.held.set()
        await stage.gone(2)
        await stage.asked("stop main 30", "stop main 1", "removed")


async def test_sidecars_end_after_the_others_the_first_of_them_last(stage: Stage):
    stage.processes.pods["u"] = Place("one", "main", "two")
    async with stage.link:
        stage.link.do(StopPod("u", 5.0, ("one", "two")))
        await stage.asked("stop main 5", "stop two 5", "stop one 5", "removed")


async def test_how_a_pod_ended_is_kept_until_it_is_stored(stage: Stage):
    async with stage.link:
        stage.stored = anyio.Event()
        stage.link.do(StopPod("u", 0.0))
        await stage.gone()
        await anyio.wait_all_tasks_blocked()
        assert stage.processes.asked == ["stop main 0"]
        stage.stored.set()
        await stage.asked("stop main 0", "removed")


async def test_a_pod_that_was_never_made_is_gone(stage: Stage):
    stage.processes.pods.clear()
    async with stage.link:
        stage.link.do(StopPod("u", 30.0))
        await stage.gone()
    assert stage.processes.asked == []


@pytest.mark.parametrize("error", [HostError("it waits for a disk"), KeyError("ours")])
async def test_what_does_not_end_is_tried_again_until_it_has(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    monkeypatch.setattr("podyard.node_agent.process_link.AGAIN_S", 0.0)
    stage.processes.failing = [error]
    async with stage.link:
        stage.link.do(StopPod("u", 0.0))
        await stage.asked("stop main 0", "stop main 0", "removed")
        await stage.gone()


@pytest.mark.parametrize(
    ("error", "why"), [(NotStarted("no such file"), "no such file"), (KeyError("ours"), "KeyError: 'ours'")]
)
async def test_a_start_that_fails_is_an_end(stage: Stage, error: Exception, why: str):
    stage.processes.failing = [error]
    async with stage.link:
        stage.start(3)
        await eventually("its end", lambda: len(stage.told) == 2)
    end = messages.RunEnd(128, 7.0, "StartError", why)
    assert stage.told[1] == messages.ContainerEnded("u", "main", 3, 7.0, end)


async def test_new_limits_are_those_of_the_containers_that_are_there(stage: Stage):
    async with stage.link:
        stage.link.do(LimitPod(ABOUT, {"": Bounds(), "main": Bounds(memory_bytes=5), "later": Bounds()}))
        await stage.asked("limit main 5")


async def test_of_what_is_over_nothing_is_kept(stage: Stage):
    async with stage.link:
        for attempt in range(3):
            stage.start(attempt)
            await eventually("it runs", lambda wanted=attempt: len(stage.told) == wanted + 2)
        stage.link.do(StopPod("u", 0.0))
        await stage.gone()
        await anyio.wait_all_tasks_blocked()
        assert stage.link._turns == {}
