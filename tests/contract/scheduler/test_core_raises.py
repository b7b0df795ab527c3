"""A core that raises on one message: it is set aside, others' pods are bound meanwhile, the process lives."""

from collections import Counter

import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.cluster.changes import Change
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.own_nominations import OwnNominations
from podyard.scheduler.core.placing import Placing
from podyard.shell import boundary
from tests.contract.scheduler.stage import Stage, pod
from tests.support.buses import ConnectBus
from tests.support.raising import dead_letter, raise_on
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> Stage:
    return Stage(await connect_bus("scheduler", request_timeout_s=0.5), bus)


def is_poison(nominations: OwnNominations, change: Change) -> bool:
    """A pod of that name."""
    return change.key.name == "poison" and change.new is not None


def is_poison_popped(placing: Placing, popped: PoppedPod, *_: object) -> bool:
    """The same, popped."""
    return popped.name == "poison"


def sessions(stage: Stage) -> list[int]:
    """How many pops each session has asked for: the queue gives back what a session held that is heard no
    more."""
    return list(Counter(request.session for request in stage.queue.pops).values())


async def pops_anew(stage: Stage) -> None:
    """Wait until the next term asks for pods in a session of its own."""
    await eventually("pops of a session of its own", lambda: len(sessions(stage)) == 2 and sessions(stage)[1] > 1)


@pytest.mark.parametrize("when", ["while it runs", "before it runs"])
async def test_a_stored_message_that_the_core_raises_on_is_set_aside(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    met = raise_on(monkeypatch, OwnNominations, "apply", is_poison)
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("first"), pod("second"))
    if when == "before it runs":
        await stage.cluster.pods(pod("poison"))
    async with stage.running():
        await stage.queue.offer("first")
        await eventually("bound", lambda: "uid-first" in stage.cluster.bound)
        if when == "while it runs":
            await stage.cluster.pods(pod("poison"))
        assert (await dead_letter(stage.bus, "scheduler")).subject == "cluster.pods.default.poison"
        if when == "while it runs":
            await pops_anew(stage)
        await stage.queue.offer("second")
        await eventually("others are bound", lambda: "uid-second" in stage.cluster.bound)
        assert len(met) == 1
        assert stage.service.health.ready


async def test_a_pod_whose_attempt_the_core_raises_on_is_given_back_and_others_are_bound(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Placing, "attempt", is_poison_popped)
    await stage.cluster.nodes(2)
    await stage.cluster.pods(pod("first"), pod("poison"))
    async with stage.running():
        await stage.queue.offer("poison")
        letter = await dead_letter(stage.bus, "scheduler")
        assert letter.subject == "cluster.pods.default.poison"
        assert "Bug: nobody thought of this" in letter.reason
        await pops_anew(stage)
        await stage.queue.offer("first")
        await eventually("others are bound", lambda: "uid-first" in stage.cluster.bound)
        await stage.queue.offer("poison")
        await eventually("its answer", lambda: stage.queue.of("poison"))
        assert [(one.outcome, one.message) for one in stage.queue.of("poison")] == [("error", "the pod is gone")]
        assert len(met) == 1
        assert boundary.CHECK not in stage.service.health.checks
    overs = [beat.session for beat in stage.queue.beats if beat.over]
    assert overs == [stage.queue.pops[-1].session], "a session whose core raised dies, so that its pods back off"
