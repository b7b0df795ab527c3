"""When a node is better for the plugin that wants a pod to go, and when the pod stays."""

from typing import Any

import pytest

from podyard.configuration.model import load
from podyard.descheduler.core import registry
from tests.support import objects
from tests.unit.descheduler.make import policy
from tests.unit.descheduler.world import Document, Play, pod, view_of

PLUGINS = registry.by_name()
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
"""On the pod's own node: it never comes back."""
SLOW = {"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}


def play(
    plugin: str, args: dict[str, Any], nodes: list[Document], placed: dict[str, list[Document]], **more: Any
) -> Play:
    return Play(policy(PLUGINS[plugin], args={plugin: args}), view_of(nodes, placed), **more)


def no_better(node: str, plugin: str, why: str) -> str:
    return f"{node}, where it would go, is no better for {plugin}: {why}"


def test_high_node_utilization_moves_nothing_to_a_node_that_is_to_become_free():
    nodes = [objects.node("n1", taints=[GPU]), objects.node("n2"), objects.node("n3")]
    placed = {"n1": [pod("a", cpu="100m")], "n2": [pod("b", "other", cpu="100m")], "n3": [pod("c", "", cpu="3")]}
    plugin = "HighNodeUtilization"
    kept = play(plugin, {"thresholds": {"cpu": 20}}, nodes, placed).kept
    assert kept["a"] == no_better("n2", plugin, "that node is to become free itself")


def test_low_node_utilization_fills_no_node_beyond_its_target():
    """Two pods of 1.5 CPUs would be 75 % of the other node; 60 % are the target."""
    nodes = [objects.node("n1", cpu="8", taints=[GPU]), objects.node("n2")]
    plugin = "LowNodeUtilization"
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}
    found = play(plugin, args, nodes, {"n1": [pod(name, cpu="1500m") for name in "abcde"]})
    assert list(found.moved.values()) == ["n2"]
    assert set(found.kept.values()) == {
        no_better("n2", plugin, "more would be used there than the target thresholds say")
    }


@pytest.mark.parametrize(("free", "moved"), [("4", {"b": "n3"}), ("100m", {})])
def test_remove_duplicates_makes_no_duplicates_elsewhere(free: str, moved: dict[str, str]):
    nodes = [objects.node("n1"), objects.node("n2"), objects.node("n3", cpu=free)]
    like = [pod(name, cpu="500m") for name in "abc"]
    placed = {"n1": [*like[:2], pod("x", "", cpu="2")], "n2": like[2:]}
    found = play("RemoveDuplicates", {}, nodes, placed)
    assert found.moved == moved
    why = no_better("n2", "RemoveDuplicates", "it has its share of 1 of the like already")
    assert found.kept == ({} if moved else {"b": why})


def test_spreading_moves_nothing_to_a_domain_that_would_have_as_many():
    """Zone c has none and no room; zone b would have four as zone a has."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    names = [f"p{at}" for at in range(7)]
    like = [pod(name, cpu="200m", topologySpreadConstraints=[constraint]) for name in names]
    nodes = [
        objects.node("n1", labels={"zone": "a"}, taints=[GPU]),
        objects.node("n2", labels={"zone": "b"}),
        objects.node("n3", cpu="100m", labels={"zone": "c"}),
    ]
    plugin = "RemovePodsViolatingTopologySpreadConstraint"
    args = {"constraints": ["ScheduleAnyway"], "topologyBalanceNodeFit": False}
    found = play(plugin, args, nodes, {"n1": like[:4], "n2": like[4:]})
    kept = found.kept
    assert not found.moved.keys() & set(names[:4])
    why = no_better("n2", plugin, "its domain of zone would have as many pods")
    assert {why} == {kept[name] for name in kept if name in names[:4]}
    assert kept
    nodes[2] = objects.node("n3", labels={"zone": "c"})
    assert set(play(plugin, args, nodes, {"n1": like[:4], "n2": like[4:]}).moved.values()) == {"n3"}


@pytest.mark.parametrize("tainted", [True, False])
def test_taints_that_are_looked_at_count_there_too(tainted: bool):
    nodes = [objects.node("n1", taints=[SLOW]), objects.node("n2", taints=[SLOW] if tainted else [])]
    plugin = "RemovePodsViolatingNodeTaints"
    placed = {"n1": [pod("a", cpu="500m"), pod("x", "", cpu="3")]}
    found = play(plugin, {"includePreferNoSchedule": True}, nodes, placed)
    if tainted:
        why = "it does not tolerate its taint slow=yes:PreferNoSchedule"
        assert found.kept == {"a": no_better("n2", plugin, why)}
    else:
        assert found.moved == {"a": "n2"}


@pytest.mark.parametrize("other", ["foe", "friend"])
def test_anti_affinity_counts_there_too(other: str):
    """Also where the scheduling profile does not look at it."""
    configuration = load(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: InterPodAffinity}]}}
"""
    )
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "foe"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [objects.node("n1", taints=[GPU]), objects.node("n2")]
    placed = {"n1": [pod("a", affinity=affinity), pod("b", "foe")], "n2": [pod("c", other)]}
    plugin = "RemovePodsViolatingInterPodAntiAffinity"
    found = play(plugin, {}, nodes, placed, configuration=configuration)
    if other == "foe":
        assert found.kept == {"a": no_better("n2", plugin, "its anti-affinity keeps c away, which is there")}
    else:
        assert found.moved == {"a": "n2"}
