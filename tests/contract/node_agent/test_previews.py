"""Asking agents whom a node would evict, through the command that people use."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from podyard.bus import Bus, RemoteError
from podyard.bus.errors import NoResponders, RequestTimeout
from podyard.cli.commands import eviction
from podyard.cli.errors import CliError, InputError
from podyard.proto import codec, subjects
from podyard.proto.agents_api import PreviewReply, PreviewRequest
from podyard.proto.operations import DeadLetter
from podyard.proto.signals import NodeUsage
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


async def ask(stage: Stage, node: str = "n1", **given: str) -> PreviewReply:
    texts = {signal.replace("_", "."): text for signal, text in given.items()}
    return await eviction.ask(stage.bus, PreviewRequest(node=node, signals=texts))


async def test_a_preview_tells_who_would_go_and_evicts_nobody(bus: Bus, stage: Stage):
    looks = await stage.collect("usage.n1", NodeUsage)
    await stage.node("n1")
    async with agent(bus, stage):
        pods = [await stage.pod("low", "n1", priority=-1), await stage.pod("web", "n1")]
        for pod in pods:
            await stage.phase(pod, "Running")
        before = dict(stage.facts)
        reply = await ask(stage, memory_available="50Mi")
        assert [(one.name, one.by) for one in reply.pods] == [("low", "priority"), ("web", "last")]
        assert reply.conditions == ("MemoryPressure",)
        assert (await ask(stage)).pods == ()
        await stage.phase(await stage.pod("late", "n1"), "Running")
        assert {subject: stage.facts[subject] for subject in before} == before
    assert {one.memory_bytes for one in looks} <= {0}
    assert [one for one in stage.news if one.reason in ("Evicted", "EvictionThresholdMet")] == []


async def test_what_the_agent_cannot_read_is_refused_in_the_kubelet_s_words(bus: Bus, stage: Stage):
    await stage.node("n1")
    async with agent(bus, stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        with pytest.raises(InputError, match=r"unsupported eviction signal memory\.free"):
            await ask(stage, memory_free="1Mi")


async def test_of_two_agents_the_one_that_plays_the_node_answers(bus: Bus, stage: Stage, connect_bus: ConnectBus):
    await stage.node("n1", metadata={"labels": {"zone": "a"}})
    await stage.node("n2", metadata={"labels": {"zone": "b"}})
    async with (
        agent(bus, stage, node_selector={"zone": "a"}),
        agent(await connect_bus("named"), stage, instance="agent-2", nodes=("n2",)),
    ):
        await eventually("facts about both", lambda: stage.node_fact("n1") and stage.node_fact("n2"))
        for node in ("n1", "n2", "n1", "n2"):
            assert (await ask(stage, node)).node == node


async def test_nobody_plays_the_node_and_that_is_said_within_a_second(bus: Bus, stage: Stage):
    async def refused() -> BaseException | None:
        with pytest.raises(CliError) as told:
            await ask(stage, "elsewhere")
        assert str(told.value) == "no agent that plays node elsewhere answers"
        return told.value.__cause__

    assert isinstance(await refused(), NoResponders)
    await stage.node("n1")
    async with agent(bus, stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        waited = await refused()
        assert isinstance(waited, RequestTimeout)
        assert waited.timeout_s < 1.0


async def test_a_request_about_another_node_than_its_subject_s_is_refused_and_kept(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    await stage.node("n1")
    dead = await stage.collect("dead.node_agent", DeadLetter)
    async with agent(await connect_bus("agent", service="node_agent"), stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        with pytest.raises(RemoteError, match="it is about node n2, but came on"):
            await stage.bus.request(subjects.preview("n1"), codec.encode(PreviewRequest(node="n2")))
        await eventually("a dead letter", lambda: dead)
