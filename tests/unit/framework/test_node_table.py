"""The node table: whatever happened, its columns are what one would fill in from scratch."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podyard.cluster.changes import Change, Origin
from podyard.cluster.node_columns import ABSENT, ChangeLog
from podyard.cluster.node_table import CPU, MEMORY, NodeTable
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import from_binding
from podyard.proto import subjects
from podyard.proto.placement import BoundPod, Release, Usage
from tests.unit.framework import builders, clusters

NAMES = st.sampled_from(clusters.NAMES)
UIDS = st.sampled_from(["u1", "u2", "u3", "u4"])
RARE = st.dictionaries(
    st.sampled_from([f"example.com/r{number}" for number in range(6)]), st.integers(0, 3), max_size=3
)
"""Resources of which the table hears for the first time in the midst of things: each one adds a line to its columns."""


def usage(cpu: int, gpu: int = 0) -> Usage:
    requests = {"cpu": cpu, clusters.GPU: gpu} if gpu else {"cpu": cpu}
    return Usage(requests=requests, nonzero_cpu_milli=cpu or 100, nonzero_memory_bytes=7)


def placed(uid: str, node: str, cpu: int, gpu: int = 0) -> BoundPod:
    return BoundPod(namespace="default", name=uid, uid=uid, node=node, usage=usage(cpu, gpu))


class TableMachine(RuleBasedStateMachine):
    """Random changes against two dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeTable()
        self.nodes: dict[str, Any] = {}
        self.pods: dict[str, BoundPod] = {}
        self.seen = 0
        self.cells: dict[int, tuple[Any, ...]] = {}
        self.table.label_column("zone")

    @rule(data=st.data(), name=NAMES)
    def set_node(self, data: st.DataObject, name: str) -> None:
        node = data.draw(clusters.nodes(name))
        self.nodes[name] = node
        self.table.set_node(clusters.node_object(node))

    @rule(name=NAMES)
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.table.remove_node(name)

    @rule(uid=UIDS, name=NAMES, cpu=st.integers(0, 500), gpu=st.integers(0, 2))
    def place(self, uid: str, name: str, cpu: int, gpu: int) -> None:
        self.pods[uid] = placed(uid, name, cpu, gpu)
        self.table.place(self.pods[uid])

    @rule(uid=UIDS, name=NAMES, cpu=st.integers(0, 500), rare=RARE)
    def place_what_is_rare(self, uid: str, name: str, cpu: int, rare: dict[str, int]) -> None:
        requests = Usage(requests={"cpu": cpu, **rare}, nonzero_cpu_milli=cpu, nonzero_memory_bytes=3)
        self.pods[uid] = BoundPod(namespace="default", name=uid, uid=uid, node=name, usage=requests)
        self.table.place(self.pods[uid])

    @rule(uid=UIDS, name=NAMES, cpu=st.integers(0, 500), times=st.integers(1, 2))
    def see_it_bound(self, uid: str, name: str, cpu: int, times: int) -> None:
        self.pods[uid] = placed(uid, name, cpu)
        view = from_binding(self.pods[uid])
        for _ in range(times):
            self.table.apply(Change(subjects.PODS, uid, None, view, Origin(), bound=True))

    @rule(uid=UIDS)
    def see_it_released(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        release = Release(namespace="default", name=uid, uid=uid, node=pod.node if pod else "x", reason="terminated")
        self.table.apply(Change(subjects.PODS, uid, None, None, Origin(), release=release))

    @rule(data=st.data(), name=NAMES, times=st.integers(1, 2))
    def see_the_node_come_back(self, data: st.DataObject, name: str, times: int) -> None:
        """Gone and back, as a node that is registered anew; its bound pods stay."""
        node = data.draw(clusters.nodes(name))
        view = NodeView(clusters.node_object(node), name, name, 1)
        for _ in range(times):
            self.table.apply(Change(subjects.NODES, name, view, None, Origin()))
            self.table.apply(Change(subjects.NODES, name, None, view, Origin()))
        self.nodes[name] = node

    @rule(uid=UIDS)
    def remove(self, uid: str) -> None:
        assert self.table.remove(uid) == self.pods.pop(uid, None)

    @rule(extra=st.integers(1, 70))
    @precondition(lambda self: len(self.nodes) < 70)
    def grow(self, extra: int) -> None:
        for number in range(extra):
            node = {"name": f"x{number}", "labels": {"zone": "z"}, "taints": [], "unschedulable": False, "pods": 5}
            node["allocatable"] = {"cpu": 1000, "memory": 1000}
            self.nodes[node["name"]] = node
            self.table.set_node(clusters.node_object(node))

    @invariant()
    def rows_are_those_of_the_nodes(self) -> None:
        assert set(self.table.row_of) == set(self.nodes)
        assert len(self.table) == len(self.nodes)
        assert sorted(self.table.rows().tolist()) == sorted(self.table.row_of.values())
        order = self.table.order
        assert [self.table.names[row] for row in order.rows.tolist()] == sorted(self.nodes)
        assert [order.rank.item(row) for row in order.rows.tolist()] == list(range(len(self.nodes)))

    @invariant()
    def columns_are_sums_and_copies(self) -> None:
        table = self.table
        for name, row in table.row_of.items():
            node, mates = self.nodes[name], [pod for pod in self.pods.values() if pod.node == name]
            assert table.unschedulable[row] == node["unschedulable"]
            assert table.pod_limit[row] == node["pods"]
            assert table.pod_count[row] == len(mates)
            for resource, line in table.resource_of.items():
                assert table.allocatable[line, row] == node["allocatable"].get(resource, 0)
                assert table.requested[line, row] == sum(pod.usage.requests.get(resource, 0) for pod in mates)
            assert table.nonzero[CPU, row] == sum(pod.usage.nonzero_cpu_milli for pod in mates)
            assert table.nonzero[MEMORY, row] == sum(pod.usage.nonzero_memory_bytes for pod in mates)
            taints = table.taints.sets[table.taint_set[row]]
            assert [(t.key, t.value, t.effect) for t in taints] == [tuple(t) for t in node["taints"]]
            column = table.label_column("zone")
            cell = column.cells.item(row)
            assert (None if cell == ABSENT else column.values[cell]) == node["labels"].get("zone")
            assert set(table.pods_on(name)) == {pod.uid for pod in mates}

    @invariant()
    def free_rows_are_empty(self) -> None:
        free = ~self.table.live
        assert not self.table.requested[:, free].any()
        assert not self.table.allocatable[:, free].any()
        assert not self.table.pod_count[free].any()
        assert not self.table.taint_set[free].any()

    @invariant()
    def what_differs_has_a_new_generation(self) -> None:
        table = self.table
        changed = set(table.changed_since(self.seen))
        assert changed == set(np.flatnonzero(table.generation > self.seen).tolist())
        now = {
            row: (table.names[row], table.taint_set.item(row), table.requested[CPU, row], table.pod_count.item(row))
            for row in range(table.capacity)
        }
        assert {row for row, cells in now.items() if self.cells.get(row, ("", 0, 0, 0)) != cells} <= changed
        self.seen, self.cells = table.version, now


TableMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_columns_are_those_computed_from_scratch = TableMachine.TestCase


def test_the_fact_of_an_assumed_pod_changes_no_row() -> None:
    """PITFALLS 47: assumed and then seen counts once."""
    table = builders.table_of(builders.make_node("a"))
    table.place(placed("u", "a", 100))
    before = table.version
    table.place(BoundPod(namespace="default", name="u", uid="u", node="a", usage=usage(100), attempt="1-1"))
    assert table.changed_since(before) == []
    assert table.placed("u") is table.pods_on("a")["u"]
    assert table.requested[CPU, table.row_of["a"]] == 100


def test_a_pod_counts_from_when_its_node_comes() -> None:
    table = NodeTable()
    table.place(placed("u", "late", 300))
    row = table.set_node(builders.make_node("late"))
    assert table.requested[CPU, row] == 300
    table.remove_node("late")
    row = table.set_node(builders.make_node("late"))
    assert table.requested[CPU, row] == 300


def test_a_reader_behind_the_log_still_learns_which_rows_changed() -> None:
    log = ChangeLog()
    for row in [5, *range(100)] * 15:
        log.note(row % 8, capacity=1)
    assert log.since(0) is None
    assert log.since(log.version - 3) == {96 % 8 + 1, 98 % 8, 99 % 8}


def test_label_values_of_nodes_long_gone_are_forgotten() -> None:
    table = NodeTable()
    for number in range(1100):
        name = f"n{number}"
        table.set_node(builders.make_node(name, labels={"host": name}))
        table.label_column("host")
        table.remove_node(name)
    assert len(table.label_column("host").values) < 1100
