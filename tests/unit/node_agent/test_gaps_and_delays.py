"""What happens between an observation and its consequences."""

import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.proto.signals import PodUsage
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, Playing, agent, general, node, pod, signals, view

LOW, SOMEWHAT_LOW = 50 * MEBIBYTE, 300 * MEBIBYTE
CLEANUP_S = 30
USAGE = tuple(
    PodUsage(namespace="default", name=name, memory_bytes=size * GIBIBYTE) for name, size in (("quick", 1), ("slow", 2))
)


def softly_evicting() -> Playing:
    """Soft below 500 MiB at once, hard below 100 MiB; two pods run on n1, of which `slow` uses most and takes
    10 min to end."""
    thresholds = parse_thresholds(
        hard={"memory.available": "100Mi"},
        soft={"memory.available": "500Mi"},
        soft_grace={"memory.available": "1s"},
        enforce_allocatable=(),
    )
    found = Playing(Selection(), general(EvictionConfig(thresholds=thresholds, max_pod_grace_s=600)), NodeRhythm())
    found.node_seen(node(), (), 0.0)
    found.pod_seen(view(pod("slow", grace_s=600, annotations={"podyard.io/stop-delay": "10m"})), 0.0, 0.0)
    found.pod_seen(view(pod("quick", grace_s=600)), 0.0, 0.0)
    found.tick(1.0)
    return found


def evicted(found: list[effects.Effect]) -> list[tuple[str, int]]:
    return [(one.name, one.grace_s) for one in found if isinstance(one, effects.PodEvicted)]


def test_a_slow_soft_eviction_holds_up_a_hard_one_for_the_cleanup_at_most() -> None:
    """docs/rules.md, slow-eviction-delays-by-the-cleanup.

    Then the hard one acts, and takes the pod that still ends at leisure: it goes within a second, not after
    10 minutes.
    """
    playing = softly_evicting()
    assert evicted(playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=100.0), 100.0)) == []
    assert evicted(playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=101.0), 101.0)) == [("slow", 600)]
    playing.observe(signals(LOW, *USAGE, at=102.0), 102.0)
    told: dict[int, list[tuple[str, int]]] = {}
    ended: dict[int, list[str]] = {}
    for second in range(103, 200):
        found = playing.tick(float(second))
        told |= {second: evicted(found)} if evicted(found) else {}
        gone = [one.fact.name for one in found if isinstance(one, effects.PutPodStatus) and one.fact.ended]
        ended |= {second: gone} if gone else {}
    assert told == {101 + CLEANUP_S: [("slow", 1)]}
    assert ended == {101 + CLEANUP_S + 1: ["slow"]}


def test_a_pod_that_ends_slowly_is_not_evicted_again() -> None:
    """Nor is another one for the same soft threshold, as long as it has time: 600 s and half of it."""
    playing = softly_evicting()
    playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=100.0), 100.0)
    assert evicted(playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=101.0), 101.0)) == [("slow", 600)]
    for second in range(102, 700):
        found = playing.tick(float(second))
        found += playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=float(second)), float(second))
        assert evicted(found) == []


def test_other_nodes_do_not_wait_for_a_slow_eviction() -> None:
    playing = softly_evicting()
    playing.node_seen(node("n2"), (), 0.0)
    playing.pod_seen(view(pod("elsewhere"), "n2"), 0.0, 0.0)
    playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=100.0), 100.0)
    playing.observe(signals(SOMEWHAT_LOW, *USAGE, at=101.0), 101.0)
    assert evicted(playing.observe(signals(LOW, node="n2", at=102.0), 102.0)) == [("elsewhere", 1)]


@pytest.fixture
def under_pressure() -> Playing:
    """n1 has just observed that it is low on memory; the taint that says so is not stored yet."""
    found = agent(hard={"memory.available": "100Mi"})
    found.node_seen(node(), (), 0.0)
    told = found.observe(signals(LOW, at=100.0), 100.0)
    assert [type(one) for one in told if isinstance(one, effects.PutNodeStatus)] == [effects.PutNodeStatus]
    return found


def test_pressure_is_told_with_the_observation_not_at_the_next_look(under_pressure: Playing) -> None:
    again = under_pressure.observe(signals(LOW, at=100.1), 100.1)
    assert not [one for one in again if isinstance(one, effects.PutNodeStatus)], "and once"


def test_a_pod_that_lands_between_observation_and_taint_is_refused(under_pressure: Playing) -> None:
    """Scheduled on what was known before the taint; the node knows better, and the pod's room is given
    back."""
    (put,) = [
        one for one in under_pressure.pod_seen(view(pod("late")), 100.0, 100.0) if isinstance(one, effects.PutPodStatus)
    ]
    assert (put.fact.name, put.fact.phase, put.fact.reason, put.fact.ended) == ("late", "Failed", "Evicted", True)
    assert put.fact.message == "Pod was rejected: The node had condition: [MemoryPressure]. "


def test_a_pod_that_pressure_does_not_concern_is_taken(under_pressure: Playing) -> None:
    assert under_pressure.pod_seen(view(pod("burstable", requests={"cpu": "1"})), 100.0, 100.0) == []
    told = [one.fact for one in under_pressure.tick(101.0) if isinstance(one, effects.PutPodStatus)]
    assert [(one.name, one.phase) for one in told] == [("burstable", "Running")]


def test_a_pod_that_comes_back_to_the_node_is_refused_at_the_door_and_evicts_nobody(under_pressure: Playing) -> None:
    """As a DaemonSet's or a pinned pod does again and again: no eviction is spent on it, and nothing of it
    ever runs (docs/rules.md, returning-pod-evicts-nobody)."""
    under_pressure.pod_seen(view(pod("resident", requests={"memory": "1Gi"})), 50.0, 100.0)
    for number in range(20):
        found = under_pressure.pod_seen(view(pod(f"again-{number}")), 100.0, 100.0 + number)
        found += under_pressure.tick(100.9 + number)
        assert evicted(found) == []
        told = [one.fact for one in found if isinstance(one, effects.PutPodStatus) and one.fact.name != "resident"]
        assert [(one.phase, one.ended) for one in told] == [("Failed", True)]
