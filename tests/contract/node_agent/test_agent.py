"""The agent: pods' lives, nodes' facts, evictions, restarts."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn, cast

import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus, Outgoing, StreamFull
from podyard.node_agent.core import nodes, virtual_node
from podyard.node_agent.term import FACTS_CHECK
from podyard.proto import codec, subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.operations import DeadLetter
from podyard.proto.signals import Failing, NodeHeartbeat, NodeSignals, NodeUsage, PodUsage, SignalValue
from podyard.shell import leading
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.holding import holding
from tests.support.leases import take_lease
from tests.support.waiting import eventually

MEBIBYTE = 1024 * 1024
FAILED = "EvictionRoundFailed"


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


def low_memory(node: str, *pods: PodUsage, available: int = 50 * MEBIBYTE, at: float = 0.0) -> NodeSignals:
    value = SignalValue(available=available, capacity=8192 * MEBIBYTE)
    return NodeSignals(node=node, signals={"memory.available": value}, pods=pods, at=at)


def stale(stage: Stage, node: str) -> bool:
    fact = stage.node_fact(node)
    return fact is not None and any(one.type == "ReadingsStale" and one.status == "True" for one in fact.conditions)


def used(pod: dict, mebibytes: int) -> PodUsage:
    return PodUsage(namespace="default", name=pod["metadata"]["name"], memory_bytes=mebibytes * MEBIBYTE)


def publish(stage: Stage, signals: NodeSignals) -> None:
    stage.bus.send(subjects.signals(signals.node), codec.encode(signals))


def under_pressure(stage: Stage, node: str) -> bool:
    fact = stage.node_fact(node)
    return fact is not None and any(one.type == "MemoryPressure" and one.status == "True" for one in fact.conditions)


async def test_a_bound_pod_runs_and_a_deleted_one_ends_and_its_fact_goes_with_its_object(bus: Bus, stage: Stage):
    await stage.node("n1")
    async with agent(bus, stage):
        pod = await stage.pod("web", "n1")
        fact = await stage.phase(pod, "Running")
        assert not fact.ended
        assert {one.type for one in fact.conditions if one.status == "True"} >= {"Ready", "ContainersReady"}
        await stage.delete(pod)
        fact = await stage.phase(pod, "Failed")
        assert fact.ended
        await stage.release(pod)
        await stage.remove("pods", pod)
        await eventually("the marker of its fact", lambda: stage.pod_fact(pod) is None)
    assert [one.deleted for one in stage.told(pod)] == [False, False, True]
    predecessors = [one.predecessor for one in stage.told(pod)]
    assert predecessors == [0, stage.told(pod)[0].sequence, stage.told(pod)[1].sequence]


async def test_a_pod_with_a_run_duration_succeeds(bus: Bus, stage: Stage):
    await stage.node("n1")
    async with agent(bus, stage):
        pod = await stage.pod("once", "n1", metadata={"annotations": {"podyard.io/run-duration": "50ms"}})
        assert (await stage.phase(pod, "Succeeded")).ended


async def test_pods_of_other_agents_nodes_are_left_alone(bus: Bus, stage: Stage):
    await stage.node("other", metadata={"annotations": {"podyard.io/agent": "external"}})
    await stage.node("mine")
    async with agent(bus, stage):
        foreign = await stage.pod("foreign", "other")
        own = await stage.pod("own", "mine")
        await stage.phase(own, "Running")
    assert stage.pod_fact(foreign) is None
    assert stage.node_fact("other") is None


async def test_many_pods_start_in_few_batches(bus: Bus, stage: Stage):
    await stage.node("n1")
    pods = [objects.pod(f"p{index}", node="n1") for index in range(200)]
    async with agent(bus, stage, start_delay_s=0.0):
        await asyncio.gather(*(stage.write("pods", pod) for pod in pods))
        await stage.bind(*pods)
        await eventually("facts about all pods", lambda: all(stage.pod_fact(pod) for pod in pods))
    sequences = sorted(one.sequence for one in stage.history if one.subject.startswith("cluster.podstatus."))
    gaps = sum(later - earlier > 1 for earlier, later in itertools.pairwise(sequences))
    assert gaps < 10, "facts that come together are stored together"


async def test_a_node_reports_itself_ready_and_beats(bus: Bus, stage: Stage):
    beats = await stage.collect("heartbeat.>", NodeHeartbeat)
    await stage.node("rack-1.example")
    async with agent(bus, stage):
        await eventually("a fact about the node", lambda: stage.node_fact("rack-1.example"))
        await eventually("three heartbeats", lambda: len(beats) >= 3)
    assert {beat.node for beat in beats} == {"rack-1.example"}
    fact = stage.node_fact("rack-1.example")
    assert fact is not None
    assert {one.type: one.status for one in fact.conditions} == {
        "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"
    }  # fmt: skip


async def test_memory_pressure_evicts_the_pod_that_uses_most_over_its_request(bus: Bus, stage: Stage):
    usages = await stage.collect("usage.>", NodeUsage)
    await stage.node("n1")
    async with agent(bus, stage, eviction_pressure_transition_period_s=0.3):
        modest = await stage.pod("modest", "n1", memory="1Gi")
        greedy = objects.pod("greedy", node="n1", memory="1Gi")
        await stage.write("pods", greedy)
        bind_trace = f"00-{'a' * 32}-{'b' * 16}-01"
        await stage.bind(greedy, trace=bind_trace)
        await stage.phase(modest, "Running")
        await stage.phase(greedy, "Running")
        publish(stage, low_memory("n1", used(modest, 100), used(greedy, 2048)))
        fact = await stage.phase(greedy, "Failed")
        assert under_pressure(stage, "n1")
        node_fact = stage.node_fact("n1")
        assert node_fact is not None
        assert [(one.key, one.effect) for one in node_fact.taints] == [
            ("node.kubernetes.io/memory-pressure", "NoSchedule")
        ]
        await eventually(
            "an event that tells of the eviction", lambda: any(one.reason == "Evicted" for one in stage.news)
        )
        plenty = low_memory("n1", available=4096 * MEBIBYTE)
        publish(stage, msgspec.structs.replace(plenty, standing=True))
        await eventually("the pressure's end", lambda: not under_pressure(stage, "n1"))
    assert (fact.reason, fact.ended) == ("Evicted", True)
    assert fact.message == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container main was using 2Gi, request is 1Gi, has larger consumption of memory. "
    )
    running = stage.pod_fact(modest)
    assert running is not None
    assert running.phase == "Running"
    kubelet_says(stage, fact.message)
    (span,) = stage.spans.named("evict pod")
    assert span.attributes["k8s.pod.name"] == "greedy"
    assert [str(link.ids) for link in span.links] == [bind_trace]
    (start,) = stage.spans.named("start pod")
    assert stage.spans.links_of(start) == [f"follows {bind_trace[3:52]}"]
    (end,) = stage.spans.named("end pod")
    assert stage.spans.links_of(end) == [f"follows {str(span.ids)[3:52]}", f"ends {bind_trace[3:52]}"]
    assert end.ids.trace_id == span.ids.trace_id, "the end of the pod is told in the trace of its eviction"
    assert end.attributes["podyard.reason"] == "Evicted"
    evicted = next(one for one in stage.told(greedy) if b'"Evicted"' in one.payload)
    assert evicted.trace == str(span.ids)
    assert next(one for one in usages if one.pods).pods[0].name == "modest"


def kubelet_says(stage: Stage, why: str) -> None:
    """The events are those of the kubelet of the node, in its words."""
    assert {(one.controller, one.instance, one.reporter) for one in stage.news} == {("kubelet", "n1", "node_agent")}
    assert [(one.type, one.reason, one.message) for one in stage.news] == [
        ("Normal", "NodeHasInsufficientMemory", "Node n1 status is now: NodeHasInsufficientMemory"),
        ("Warning", "EvictionThresholdMet", "Attempting to reclaim memory"),
        ("Warning", "Evicted", why),
        ("Normal", "Killing", "Stopping container main"),
        ("Normal", "NodeHasSufficientMemory", "Node n1 status is now: NodeHasSufficientMemory"),
    ]
    assert stage.news[2].annotations["starved_resource"] == "memory"
    assert stage.news[3].field_path == "spec.containers{main}"


async def test_a_pod_that_is_hurried_is_evicted_once(bus: Bus, stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """docs/rules.md, hard-hurries-soft; the wait for its cleanup is shorter here."""
    monkeypatch.setattr(virtual_node, "CLEANUP_TIMEOUT_S", 0.1)
    monkeypatch.setattr(nodes, "CLEANUP_POLL_S", 0.05)
    soft = {"eviction_soft": {"memory.available": "500Mi"}, "eviction_soft_grace_period": {"memory.available": "1ms"}}
    await stage.node("n1")
    async with agent(bus, stage, **soft, eviction_max_pod_grace_period=600) as service:
        slow = await stage.pod(
            "slow", "n1", terminationGracePeriodSeconds=600, metadata={"annotations": {"podyard.io/stop-delay": "10m"}}
        )
        await stage.phase(slow, "Running")
        for number in range(2):
            publish(stage, low_memory("n1", used(slow, 100), available=300 * MEBIBYTE, at=1000.0 + number))
            await eventually("pressure", lambda: under_pressure(stage, "n1"))
        await eventually("the eviction", lambda: any(one.reason == "Evicted" for one in stage.news))
        publish(stage, low_memory("n1", used(slow, 100), at=1002.0))
        assert "available: 300Mi. " in (await stage.phase(slow, "Failed")).message
        await eventually("word of the haste", lambda: any(one.reason == "EvictionHastened" for one in stage.news))
        labels = {"signal": "memory.available"}
        assert service.metrics.get_sample_value("podyard_node_agent_evictions_total", labels) == 1
        by_signal = {"eviction_signal": "memory.available"}
        assert service.metrics.get_sample_value("kubelet_evictions", by_signal) == 1
        assert service.metrics.get_sample_value("kubelet_eviction_stats_age_seconds_count", by_signal) == 2
    told = [one for one in stage.news if one.regarding.name == "slow"]
    assert [one.reason for one in told] == ["Evicted", "Killing", "EvictionHastened"]
    assert "available: 50Mi. " in told[2].message
    assert told[2].message.endswith("The pod is being evicted already, and has 1 s left. ")
    assert len(stage.spans.named("evict pod")) == 1


async def test_what_a_round_finds_wrong_is_an_event_and_a_line_of_the_log_once(
    bus: Bus, stage: Stage, capsys: pytest.CaptureFixture[str]
):
    await stage.node("n1")
    async with agent(bus, stage):
        pod = await stage.pod("web", "n1")
        await stage.phase(pod, "Running")
        blind = NodeSignals(node="n1", failing=(Failing(what="reading", why="no answer"),))
        publish(stage, blind)
        publish(stage, blind)
        await eventually("the condition", lambda: stale(stage, "n1"))
        publish(stage, msgspec.structs.replace(low_memory("n1"), failing=(Failing(what="kill", why="no runtime"),)))
        await eventually("the second event", lambda: len([one for one in stage.news if one.reason == FAILED]) == 1)
        await eventually("a reading again", lambda: not stale(stage, "n1"))
        assert stage.pod_fact(pod).phase == "Running"  # type: ignore[union-attr]
    told = [one for one in stage.news if one.reason in (FAILED, "ReadingsStale")][:2]
    assert {(one.type, one.regarding.resource, one.regarding.name) for one in told} == {("Warning", "nodes", "n1")}
    assert [one.message for one in told] == [
        "eviction manager: failed to get summary stats: no answer",
        "default/web could not be killed: no runtime",
    ]
    assert not [one for one in stage.news if one.reason == "Evicted"]
    assert capsys.readouterr().out.count("no answer") == 1


async def test_one_reading_evicts_one_pod_and_a_later_one_the_next(bus: Bus, stage: Stage):
    """docs/rules.md, an-observation-is-acted-on-once. The manager looks every 0.1 s here."""
    await stage.node("n1")
    async with agent(bus, stage):
        pods = [await stage.pod(f"p{index}", "n1") for index in range(3)]
        for pod in pods:
            await stage.phase(pod, "Running")
        publish(stage, low_memory("n1", *(used(pod, 100 * (index + 1)) for index, pod in enumerate(pods)), at=1000.0))
        await stage.phase(pods[2], "Failed")
        await eventually("a look that finds it old", lambda: stale(stage, "n1"))
        assert [stage.pod_fact(pod).phase for pod in pods] == ["Running", "Running", "Failed"]  # type: ignore[union-attr]
        publish(stage, low_memory("n1", *(used(pod, 100) for pod in pods), at=1001.0))
        await eventually("a second eviction", lambda: sum(stage.pod_fact(pod).phase == "Failed" for pod in pods) == 2)  # type: ignore[union-attr]


async def test_a_node_under_memory_pressure_refuses_best_effort_pods_only(bus: Bus, stage: Stage):
    await stage.node("n1")
    async with agent(bus, stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        publish(stage, low_memory("n1"))
        await eventually("pressure", lambda: under_pressure(stage, "n1"))
        best_effort = await stage.pod("best-effort", "n1")
        burstable = await stage.pod("burstable", "n1", cpu="100m")
        fact = await stage.phase(best_effort, "Failed")
        await stage.phase(burstable, "Running")
    assert (fact.reason, fact.message, fact.ended) == (
        "Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. ", True
    )  # fmt: skip


async def test_a_node_without_room_refuses_a_pod_and_says_why(bus: Bus, stage: Stage):
    await stage.node("n1")
    async with agent(bus, stage) as service:
        runs = await stage.pod("runs", "n1", cpu="60")
        await stage.phase(runs, "Running")
        late = await stage.pod("late", "n1", cpu="5")
        fact = await stage.phase(late, "Failed")
        (told,) = await eventually("an event", lambda: [one for one in stage.news if one.regarding.name == "late"])
        counted = service.metrics.get_sample_value("podyard_node_agent_refusals_total", {"reason": "OutOfcpu"})
    lacks = "Node didn't have enough resource: cpu, requested: 5000, used: 60000, capacity: 64000"
    assert (fact.reason, fact.message, fact.ended) == ("OutOfcpu", f"Pod was rejected: {lacks}", True)
    assert (told.type, told.reason, told.message) == ("Warning", "OutOfcpu", lacks)
    assert counted == 1


async def test_a_restarted_agent_goes_on_where_it_stopped(bus: Bus, stage: Stage, connect_bus: ConnectBus):
    await stage.node("n1")
    async with agent(bus, stage):
        runs = await stage.pod("runs", "n1")
        ends = await stage.pod("ends", "n1")
        goes = await stage.pod("goes", "n1")
        for pod in (runs, ends, goes):
            await stage.phase(pod, "Running")
        publish(stage, low_memory("n1", available=1))
        await eventually("pressure", lambda: under_pressure(stage, "n1"))
        await eventually(
            "an eviction", lambda: any(stage.pod_fact(one).phase == "Failed" for one in (runs, ends, goes))
        )  # type: ignore[union-attr]
    survivors = [one for one in (runs, ends, goes) if stage.pod_fact(one).phase == "Running"]  # type: ignore[union-attr]
    first, second = survivors
    before = len(stage.told(first))
    # while nobody plays the node: one pod's object goes, another is asked to end, a third is bound
    await stage.remove("pods", first)
    await stage.release(first)
    await stage.delete(second)
    late = await stage.pod("late", "n1", cpu="1")
    async with agent(await connect_bus("again"), stage):
        await eventually("the marker of its fact", lambda: stage.pod_fact(first) is None)
        assert (await stage.phase(second, "Failed")).ended
        await stage.phase(late, "Running")
        assert under_pressure(stage, "n1"), "a restart does not wipe it (docs/rules.md, restart-keeps-the-pressure)"
    told = stage.told(first)
    assert len(told) == before + 1
    assert told[-1].deleted
    assert len(stage.told(second)) == 2, "no second fact for the same transition"


async def test_what_was_said_of_a_node_that_went_while_nobody_looked_goes_too(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    kept, gone = await stage.node("kept"), await stage.node("gone")
    async with agent(bus, stage):
        await eventually("facts about both nodes", lambda: stage.node_fact("kept") and stage.node_fact("gone"))
    await stage.remove("nodes", gone)
    async with agent(await connect_bus("again"), stage):
        await eventually("the marker of its fact", lambda: stage.node_fact("gone") is None)
        assert stage.node_fact(kept["metadata"]["name"]) is not None


async def test_a_standby_takes_over_when_the_agent_ends(bus: Bus, stage: Stage, connect_bus: ConnectBus):
    await stage.node("n1")
    async with holding() as hold:
        async with agent(bus, stage, instance="agent-1") as first:
            await eventually("a fact about the node", lambda: stage.node_fact("n1"))
            second = await hold(agent(await connect_bus("second"), stage, instance="agent-2"))
            await stage.phase(one := await stage.pod("one", "n1"), "Running")
            assert first.health.checks[leading.CHECK].reason.startswith("leads, ")
            assert second.health.checks[leading.CHECK].reason == leading.STANDS_BY
        await stage.phase(two := await stage.pod("two", "n1"), "Running")
        assert second.health.checks[leading.CHECK].reason.startswith("leads, ")
    for pod in (one, two):
        assert len(stage.told(pod)) == 1, "only one of them plays the node"


class FullBus:
    """A connection on which no facts about pods can be stored."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish_batch(self, messages: Sequence[Outgoing]) -> NoReturn:
        raise StreamFull(messages[0].subject, "said by the test")

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[object]:
        if any(message.subject.startswith("cluster.podstatus.") for message in messages):
            return [StreamFull(message.subject, "said by the test") for message in messages]
        return await self._bus.publish_many(messages)


async def test_a_standby_is_ready_and_plays_nothing_though_it_could_not_store_facts_while_it_led(
    bus: Bus, stage: Stage, connect_bus: ConnectBus
):
    await stage.node("n1")
    await stage.pod("web", "n1")
    async with agent(cast("Bus", FullBus(await connect_bus("full"))), stage, nodes=("n1",)) as service:
        health = service.health

        def shown(name: str) -> float | None:
            return service.metrics.get_sample_value(f"podyard_node_agent_{name}")

        await eventually("the trouble", lambda: (check := health.checks.get(FACTS_CHECK)) is not None and not check.ok)
        assert (shown("leading"), shown("nodes")) == (1, 1)
        await take_lease(bus, service.settings.lease())
        await eventually("the end of the term", lambda: health.checks[leading.CHECK].reason == leading.STANDS_BY)
        assert health.ready, health.checks
        assert (shown("leading"), shown("nodes")) == (0, 0)


async def test_a_fact_written_by_a_former_agent_is_not_lost_by_a_conflict(bus: Bus, stage: Stage):
    """The pod has ended by another agent's word: the running fact must not bring it back."""
    await stage.node("n1")
    async with agent(bus, stage, start_delay_s=0.5):
        pod = await stage.pod("web", "n1")
        metadata = pod["metadata"]
        ended = PodStatusFact(
            namespace="default", name="web", uid=metadata["uid"], node="n1", phase="Succeeded", ended=True
        )
        await stage.status(ended)
        other = await stage.pod("other", "n1", metadata={"annotations": {"podyard.io/start-delay": "1s"}})
        await stage.phase(other, "Running")
    assert stage.pod_fact(pod) == ended


async def test_signals_that_are_none_become_dead_letters(bus: Bus, stage: Stage, connect_bus: ConnectBus):
    await stage.node("n1")
    dead = await stage.collect("dead.node_agent", DeadLetter)
    async with agent(await connect_bus("agent", service="node_agent"), stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        stage.bus.send("signals.n1", b'{"node": 7}')
        stage.bus.send("signals.n1", codec.encode(NodeSignals(node="n2")))
        await eventually("two dead letters", lambda: len(dead) == 2)
        await stage.phase(await stage.pod("web", "n1"), "Running")
    assert [one.subject for one in dead] == ["signals.n1", "signals.n1"]
    assert "$.node" in dead[0].reason
    assert "about node n2" in dead[1].reason


BEYOND = [
    pytest.param(b'{"node":"n1","signals":{"memory.available":{"available":%d,"capacity":1}}}' % 10**30, id="10^30"),
    pytest.param(b'{"node":"n1","signals":{"memory.available":{"available":NaN,"capacity":1}}}', id="NaN"),
    pytest.param(b'{"node":"n1","signals":{"memory.available":{"available":"1","capacity":1}}}', id="wrong type"),
    pytest.param(b'{"node":"n1","pods":%b}' % (b"[" * 50_000 + b"]" * 50_000), id="nested"),
    pytest.param(b'{"node":"n1","who":"\xff"}', id="no utf-8"),
    pytest.param(b"", id="empty"),
    pytest.param(b'{"node":"n1","at":1e300}', id="far future"),
]


@pytest.mark.parametrize("payload", BEYOND)
async def test_signals_beyond_the_bounds_become_dead_letters(
    bus: Bus, stage: Stage, connect_bus: ConnectBus, payload: bytes
):
    await stage.node("n1")
    dead = await stage.collect("dead.node_agent", DeadLetter)
    async with agent(await connect_bus("agent", service="node_agent"), stage):
        await eventually("a fact about the node", lambda: stage.node_fact("n1"))
        stage.bus.send("signals.n1", payload)
        await eventually("a dead letter", lambda: len(dead) == 1)
        await stage.phase(await stage.pod("web", "n1"), "Running")


async def test_signals_at_the_bounds_are_taken(bus: Bus, stage: Stage, connect_bus: ConnectBus):
    """More available than there is, nothing of nothing, the largest numbers: the agent goes on, whatever it
    makes of them."""
    await stage.node("n1")
    await stage.node("n2")
    dead = await stage.collect("dead.node_agent", DeadLetter)
    largest = 2**63 - 1
    async with agent(await connect_bus("agent", service="node_agent"), stage):
        pod = await stage.pod("web", "n1")
        await stage.phase(pod, "Running")
        for available, capacity in ((largest, 1), (0, 0), (largest, largest), (0, largest)):
            signal = SignalValue(available=available, capacity=capacity)
            for name in ("nodefs.available", "memory.available", "nothing.known"):
                used = PodUsage(namespace="default", name="web", memory_bytes=largest, disk_bytes=largest)
                publish(stage, NodeSignals(node="n1", signals={name: signal}, pods=(used,)))
        await stage.phase(await stage.pod("later", "n2"), "Running")
    assert not dead
