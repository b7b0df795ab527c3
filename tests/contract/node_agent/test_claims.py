"""Two agents that are to play the same node: one does."""

from collections.abc import AsyncIterator

import anyio
import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.node_agent.core import claims
from podyard.runtime.service import Service
from podyard.shell import leading
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support.buses import ConnectBus
from tests.support.holding import holding
from tests.support.waiting import eventually

SILENCE_S = 1.5
STALLED_S = 0.3
"""All agents share one event loop: when it stands still nobody is silent, however short the silence."""


@pytest.fixture(autouse=True)
def stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that stands still is noticed well before the time of silence is over."""
    monkeypatch.setattr(claims, "STALLED_S", STALLED_S)


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


def plays(service: Service) -> tuple[float | None, float | None]:
    """How many nodes it plays, and for how many it waits."""
    shown = service.metrics.get_sample_value
    return shown("podyard_node_agent_nodes"), shown("podyard_node_agent_awaited_nodes")


def player(stage: Stage) -> str:
    fact = stage.node_fact("n1")
    return "" if fact is None else fact.session


async def test_the_second_waits_until_the_first_is_silent_and_goes_on_where_it_stopped(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    await stage.node("n1")
    async with holding() as hold:
        async with agent(bus, stage, instance="agent-a") as first:
            await eventually("that the first plays", lambda: plays(first) == (1, 0))
            one = await stage.pod("one", "n1")
            await stage.phase(one, "Running")
            chosen = {"nodes": ("n1",), "take_over_after_s": SILENCE_S}
            second = await hold(agent(await connect_bus("b"), stage, instance="agent-b", **chosen))
            await eventually("that the second waits", lambda: plays(second) == (0, 1))
            two = await stage.pod("two", "n1")
            await stage.phase(two, "Running")
            await anyio.sleep(2 * SILENCE_S)
            assert (plays(first), plays(second)) == ((1, 0), (0, 1)), "the first beats"
            assert player(stage) == first.session
        await eventually("that the second plays", lambda: plays(second) == (1, 0))
        assert player(stage) == second.session
        await stage.phase(three := await stage.pod("three", "n1"), "Running")
    for pod in (one, two, three):
        assert len(stage.told(pod)) == 1, "nothing was started twice: the second has read what the first said"


async def test_one_that_is_told_to_takes_a_node_at_once_and_the_first_lets_it_go(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    await stage.node("n1")
    await stage.node("n2")
    async with agent(bus, stage, instance="agent-a", take_over_after_s=SILENCE_S) as first:
        await stage.phase(await stage.pod("one", "n1"), "Running")
        chosen = {"nodes": ("n1",), "take_over": True, "take_over_after_s": 3600.0}
        async with agent(await connect_bus("b"), stage, instance="agent-b", **chosen) as second:
            await eventually("that each plays one", lambda: (plays(first), plays(second)) == ((1, 1), (1, 0)))
            assert player(stage) == second.session
            await anyio.sleep(2 * SILENCE_S)
            assert plays(first) == (1, 1), "the second beats"
        await eventually("that the first plays both again", lambda: plays(first) == (2, 0))


async def test_one_that_is_told_to_takes_the_lease_of_the_same_nodes_too(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    await stage.node("n1")
    async with agent(bus, stage, instance="agent-a") as first:
        await eventually("that the first plays", lambda: plays(first) == (1, 0))
        async with agent(await connect_bus("b"), stage, instance="agent-b", take_over=True) as second:
            await eventually("that the second plays", lambda: plays(second) == (1, 0))
            await eventually("that the first stands by", lambda: plays(first) == (0, 0), within_s=20.0)
            assert first.health.checks[leading.CHECK].reason == leading.STANDS_BY
            assert plays(second) == (1, 0)
