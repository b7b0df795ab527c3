"""Answers that come back: a plugin that names its situation is not asked again, and a wrong name would be
noticed."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from podyard.framework.cycle import Cycle
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import PreFilterResult
from podyard.framework.profile import Enabled, resolve
from podyard.framework.status import unschedulable
from podyard.plugins.node_name.plugin import NodeName
from podyard.plugins.node_unschedulable.plugin import NodeUnschedulable
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.framework.builders import make_node, make_pod, snapshot_of

CLOSED = StateKey[str]("closed")


class OneZoneClosed:
    """Rejects the nodes of the zone that is closed now."""

    name = "OneZoneClosed"
    scope = "row"

    def __init__(self) -> None:
        self.closed = "a"
        self.asked = 0

    def signature(self, pod: Any) -> Hashable:
        return None

    def filter_token(self, pod: Any, cluster: Any) -> Hashable:
        return self.closed

    def pre_filter(self, state: CycleState, pod: Any, cluster: Any) -> PreFilterResult:
        state.write(CLOSED, self.closed)
        return PreFilterResult()

    def filter_pattern(self, state: CycleState, cluster: Any) -> Hashable:
        return cluster.nodes.topology_version, state.read(CLOSED)

    def filter(self, state: CycleState, pod: Any, cluster: Any, rows: Any) -> Any:
        self.asked += 1
        return np.array([self.filter_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)

    def filter_one(self, state: CycleState, pod: Any, cluster: Any, row: int) -> int:
        return int(cluster.nodes.nodes[row].metadata.labels["zone"] == state.read(CLOSED))

    def verdict(self, state: CycleState, code: int) -> Any:
        return unschedulable("closed")


def test_a_situation_that_comes_back_is_not_judged_again() -> None:
    plugin = OneZoneClosed()
    zones = {"n1": "a", "n2": "b", "n3": "c"}
    cluster = snapshot_of(*(make_node(name, labels={"zone": zone}) for name, zone in zones.items()))
    enabled = [Enabled(plugin=one) for one in (PrioritySort(), NodeName(), plugin)]
    cycle = Cycle(resolve("p", enabled), cluster)
    for turn, closed in enumerate("abcabcab"):
        plugin.closed = closed
        result = cycle.run(make_pod(f"p{turn}"))
        assert zones[result.node] != closed
        assert [(one.nodes, *one.examples) for one in result.rejections] == [
            (1, next(name for name, zone in zones.items() if zone == closed))
        ]
    assert plugin.asked == 3
    cluster.nodes.set_node(make_node("n1", labels={"zone": "b"}))
    plugin.closed = "a"
    assert cycle.run(make_pod("after")).nodes_feasible == 3
    assert plugin.asked == 4


def test_an_answer_does_not_come_back_for_nodes_that_it_was_not_about() -> None:
    """While n2 was cordoned nobody asked about it; when the situation comes back, n2 is there again."""
    plugin = OneZoneClosed()
    cluster = snapshot_of(*(make_node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "b"))))
    enabled = [Enabled(plugin=one) for one in (PrioritySort(), NodeUnschedulable(), plugin)]
    cycle = Cycle(resolve("p", enabled), cluster)
    plugin.filter_pattern = lambda state, cluster: state.read(CLOSED)  # type: ignore[method-assign]
    cluster.nodes.set_node(make_node("n2", labels={"zone": "b"}, unschedulable=True))
    feasible = []
    for turn, (closed, cordoned) in enumerate([("a", True), ("c", True), ("c", False), ("a", False)]):
        plugin.closed = closed
        cluster.nodes.set_node(make_node("n2", labels={"zone": "b"}, unschedulable=cordoned))
        feasible.append(cycle.run(make_pod(f"p{turn}")).nodes_feasible)
    assert feasible == [0, 1, 2, 1]
