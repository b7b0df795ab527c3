"""Which configuration a node goes by, and what becomes of it when its labels change."""

from typing import Any

import msgspec
import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.node_config import LabelledConfig, NodeConfig, NodeConfigs
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.node_agent.core.virtual_node import VirtualNode
from podyard.proto.signals import NodeSignals, PodUsage, SignalValue
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, Playing, node, pod, signals, view

PATIENT = NodeConfig(eviction=EvictionConfig(thresholds=parse_thresholds(hard={"memory.available": "100Mi"})))
EAGER = NodeConfig(
    eviction=EvictionConfig(thresholds=parse_thresholds(hard={"memory.available": "2Gi"}), transition_s=60.0)
)
FEW = NodeConfig(max_pods=2)


def soft(text: str) -> NodeConfig:
    """An eviction 60 s after memory is below that, within 600 s."""
    name = "memory.available"
    thresholds = parse_thresholds(hard={}, soft={name: text}, soft_grace={name: "60s"})
    return NodeConfig(eviction=EvictionConfig(thresholds=thresholds, max_pod_grace_s=600))


def playing(general: NodeConfig = PATIENT, **labelled: NodeConfig) -> Playing:
    """By the label `pool`, in this order."""
    by = tuple(LabelledConfig({"pool": pool}, config) for pool, config in labelled.items())
    return Playing(Selection(), NodeConfigs(general, by), NodeRhythm())


def see(found: Playing, now: float, **labels: str) -> list[effects.Effect]:
    """The node with these labels, and with what was said of it."""
    known = found.known.nodes.get("n1")
    return found.node_seen(node(status=known and known.status, labels=labels), (), now)


def with_pods(found: Playing, *names: str, **labels: str) -> Playing:
    see(found, 0.0, **labels)
    for name in names:
        found.pod_seen(view(pod(name, grace_s=600, annotations={"podyard.io/stop-delay": "10m"})), 0.0, 0.0)
    found.tick(1.0)
    return found


def low(available: int, at: float) -> NodeSignals:
    """Pod a uses most."""
    used = (PodUsage(namespace="default", name=name, memory_bytes=size) for name, size in (("a", 9), ("b", 5)))
    return signals(available, *used, at=at)


def evicted(found: list[effects.Effect]) -> list[str]:
    return [one.name for one in found if isinstance(one, effects.PodEvicted)]


def refused(found: list[effects.Effect]) -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in found if isinstance(one, effects.PodRefused)]


def held(found: Playing) -> VirtualNode:
    node = found.nodes.get("n1")
    assert node is not None
    return node


def test_the_first_selector_that_matches_counts_and_else_the_general_one():
    configs = NodeConfigs(
        PATIENT, (LabelledConfig({"pool": "small", "zone": "a"}, EAGER), LabelledConfig({"pool": "small"}, FEW))
    )
    assert configs.of({"pool": "small", "zone": "a", "x": "y"}) is EAGER
    assert configs.of({"pool": "small", "zone": "b"}) is FEW
    assert configs.of({"zone": "a"}) is PATIENT
    assert configs.of({}) is PATIENT


def test_nodes_evict_as_the_configuration_of_their_labels_says():
    for labels, gone in (({}, []), ({"pool": "eager"}, ["a"])):
        found = with_pods(playing(eager=EAGER), "a", "b", **labels)
        assert evicted(found.observe(low(GIBIBYTE, 10.0), 10.0)) == gone


def test_a_node_that_gets_another_label_goes_by_another_configuration_and_looks_at_once():
    found = with_pods(playing(eager=EAGER), "a", "b")
    assert evicted(found.observe(low(GIBIBYTE, 10.0), 10.0)) == []
    see(found, 12.0, pool="eager")
    assert evicted(found.tick(12.0)) == ["a"]


def test_a_change_of_other_labels_changes_nothing():
    found = with_pods(playing(soft("2Gi"), eager=EAGER), "a", "b")
    found.observe(low(GIBIBYTE, 10.0), 10.0)
    before = held(found).manager
    see(found, 12.0, zone="b")
    assert held(found).manager is before
    assert len(before.first_observed) == 1


def test_conditions_outlive_the_change_and_pass_after_the_new_transition_period():
    found = with_pods(playing(EAGER, patient=PATIENT), "a")
    found.observe(low(GIBIBYTE, 10.0), 10.0)
    see(found, 20.0, pool="patient")
    found.observe(msgspec.structs.replace(low(4 * GIBIBYTE, 25.0), standing=True), 25.0)
    assert held(found).manager.conditions == {"MemoryPressure"}
    for second in range(26, 320):
        found.tick(float(second))
    assert held(found).manager.conditions == {"MemoryPressure"}, "20 + 300 s, at the next look"
    for second in range(320, 331):
        found.tick(float(second))
    assert held(found).manager.conditions == set()


def test_grace_periods_begin_anew_with_another_configuration():
    found = with_pods(playing(soft("2Gi"), other=soft("3Gi")), "a", "b")
    found.observe(low(GIBIBYTE, 0.0), 10.0)
    see(found, 60.0, pool="other")
    ticks = [(second, name) for second in range(60, 131, 10) for name in evicted(fresh(found, float(second)))]
    assert ticks == [(120, "a")], "a minute after it was seen first, under this configuration"


def fresh(found: Playing, now: float) -> list[effects.Effect]:
    return [*found.tick(now), *found.observe(low(GIBIBYTE, now), now)]


def test_a_pod_that_is_being_evicted_is_not_evicted_again():
    found = with_pods(playing(soft("2Gi"), other=soft("3Gi")), "a", "b")
    gone = [(second, name) for second in range(10, 80, 10) for name in evicted(fresh(found, float(second)))]
    assert gone == [(70, "a")]
    see(found, 110.0, pool="other")
    assert held(found).manager.ending == {"uid-a"}
    gone = [(second, name) for second in range(110, 700, 10) for name in evicted(fresh(found, float(second)))]
    assert gone == [(670, "b")], "the soft threshold waits for it, whose ten minutes are over then"


@pytest.mark.parametrize(("most", "pods"), [(2, "110"), (3, "2"), (None, "2")])
def test_a_node_takes_no_more_pods_than_the_smaller_of_its_object_and_its_configuration(most: Any, pods: str):
    found = playing(NodeConfig(max_pods=most))
    found.node_seen(node(pods=pods), (), 0.0)
    told = [one for name in ("a", "b", "c") for one in refused(found.pod_seen(view(pod(name)), 0.0, 0.0))]
    assert told == [("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2")], (
        "as the kubelet says it"
    )


def test_a_node_whose_labels_change_takes_as_many_pods_as_it_is_configured_to_then():
    found = playing(small=FEW)
    see(found, 0.0, pool="small")
    for name in ("a", "b"):
        assert refused(found.pod_seen(view(pod(name)), 0.0, 0.0)) == []
    assert len(refused(found.pod_seen(view(pod("c")), 0.0, 0.0))) == 1
    see(found, 1.0)
    assert refused(found.pod_seen(view(pod("d")), 1.0, 1.0)) == []


def test_a_preview_goes_by_the_nodes_own_configuration():
    found = with_pods(playing(eager=EAGER), "a", "b", pool="eager")
    value = SignalValue(available=1500 * MEBIBYTE, capacity=8 * GIBIBYTE)
    imagined = held(found).imagined({"memory.available": value}, found.pods.active_on("n1"), 10.0)
    assert [kill.pod.metadata.name for kill in imagined.synchronize(found.pods.active_on("n1"), 10.0).kills] == ["a"]
