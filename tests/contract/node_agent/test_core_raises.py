"""An agent's core that raises on one message: the message is set aside, other pods run, the process lives."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.node_agent.core.agent import Agent
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeSignals, SignalValue
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support.buses import ConnectBus
from tests.support.raising import dead_letter, raise_on


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


def is_poison(agent: Agent, view: Any, *_: Any) -> bool:
    """A pod of that name whose object lives: a set-aside object is known by its binding alone."""
    return view.name == "poison" and not view.gone


async def test_a_pod_that_the_core_raises_on_is_set_aside_and_others_run(
    bus: Bus, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Agent, "_pod_seen", is_poison)
    await stage.node("n1")
    async with agent(bus, stage):
        first = await stage.pod("first", "n1")
        await stage.phase(first, "Running")
        await stage.pod("poison", "n1")
        letter = await dead_letter(bus, "node_agent")
        assert "Bug: nobody thought of this" in letter.reason
        await stage.phase(await stage.pod("second", "n1"), "Running")
        await stage.delete(first)
        await stage.phase(first, "Failed")
    assert 1 <= len(met) <= 2, "by its binding, then by its object"


async def test_signals_that_the_core_raises_on_are_ignored_for_a_while_and_pods_run(
    bus: Bus, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, Agent, "_observe", lambda agent, signals, now: signals.node == "n1")
    await stage.node("n1")
    async with agent(bus, stage):
        await stage.phase(await stage.pod("first", "n1"), "Running")
        for available in (1, 2, 3):
            value = SignalValue(available=available, capacity=8)
            signals = NodeSignals(node="n1", signals={"memory.available": value})
            stage.bus.send(subjects.signals("n1"), codec.encode(signals))
        assert (await dead_letter(bus, "node_agent")).subject == "signals.n1"
        await stage.phase(await stage.pod("second", "n1"), "Running")
    assert len(met) == 1
