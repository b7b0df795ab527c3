"""The node table: whatever happened, its columns are what one would fill in from scratch."""

import copy
from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podyard.cluster.changes import Change, Origin
from podyard.cluster.node_columns import ABSENT, ChangeLog
from podyard.cluster.node_table import NodeTable
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, from_binding
from podyard.cluster.room import CPU, MEMORY, cell
from podyard.objects.core import Node
from podyard.proto import subjects
from podyard.proto.placement import BoundPod, Release, Usage
from tests.unit.framework import builders, clusters

NAMES = st.sampled_from(clusters.NAMES)
UIDS = st.sampled_from(["u1", "u2", "u3", "u4"])
RARE = st.dictionaries(
    st.sampled_from([f"example.com/r{number}" for number in range(6)]), st.integers(0, 3), max_size=3
)
"""Resources of which the table hears for the first time in the midst of things: each one adds a line to its
columns."""


def usage(cpu: int, gpu: int = 0) -> Usage:
    requests = {"cpu": cpu, clusters.GPU: gpu} if gpu else {"cpu": cpu}
    return Usage(requests=requests, nonzero_cpu_milli=cpu or 100, nonzero_memory_bytes=7)


def placed(uid: str, node: str, cpu: int, gpu: int = 0) -> BoundPod:
    return BoundPod(namespace="default", name=uid, uid=uid, node=node, usage=usage(cpu, gpu))


class Held:
    """An index of nothing but who is where."""

    def __init__(self, table: NodeTable) -> None:
        self.rows: dict[str, int] = {}

    def add(self, pod: PodView, row: int) -> None:
        assert pod.uid not in self.rows
        self.rows[pod.uid] = row

    def remove(self, pod: PodView, row: int) -> None:
        assert self.rows.pop(pod.uid) == row


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
        self.table.index(Held)
        self.topology: tuple[int, Any] = (0, {})

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
        self.table.place(from_binding(self.pods[uid]))

    @rule(uid=UIDS, name=NAMES, cpu=st.integers(0, 500), rare=RARE)
    def place_what_is_rare(self, uid: str, name: str, cpu: int, rare: dict[str, int]) -> None:
        requests = Usage(requests={"cpu": cpu, **rare}, nonzero_cpu_milli=cpu, nonzero_memory_bytes=3)
        self.pods[uid] = BoundPod(namespace="default", name=uid, uid=uid, node=name, usage=requests)
        self.table.place(from_binding(self.pods[uid]))

    @rule(uid=UIDS, name=NAMES, cpu=st.sampled_from((2**63 - 1, 2**62)), gpu=st.sampled_from((0, 2**63 - 1)))
    def place_what_is_huge(self, uid: str, name: str, cpu: int, gpu: int) -> None:
        self.place(uid, name, cpu, gpu)

    @rule(name=NAMES)
    def ask_for_lines(self, name: str) -> None:
        """Whoever judges asks for what pods and nodes have; of what nobody has there is no line."""
        row = self.table.row_of.get(name)
        room = self.table.room
        there = set() if row is None else {*room.whole(row), *room.taken(row).requests}
        assert all(room.line(resource) is not None for resource in there)
        assert room.line("example.com/nobody-has-it") is None

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
        removed = self.table.remove(uid)
        assert (removed and removed.bound) == self.pods.pop(uid, None)

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
            for resource, line in table.room.line_of.items():
                assert table.room.allocatable[line, row] == node["allocatable"].get(resource, 0)
                there = sum(pod.usage.requests.get(resource, 0) for pod in mates)
                assert table.room.requested[line, row] == cell(there)
                assert table.room.taken(row).requests.get(resource, 0) == there
            assert table.room.nonzero[CPU, row] == cell(sum(pod.usage.nonzero_cpu_milli for pod in mates))
            assert table.room.nonzero[MEMORY, row] == sum(pod.usage.nonzero_memory_bytes for pod in mates)
            taints = table.taints.sets[table.taint_set[row]]
            assert [(t.key, t.value, t.effect) for t in taints] == [tuple(t) for t in node["taints"]]
            column = table.label_column("zone")
            found = column.cells.item(row)
            assert (None if found == ABSENT else column.values[found]) == node["labels"].get("zone")
            assert set(table.pods_on(name)) == {pod.uid for pod in mates}

    @rule(name=NAMES, uid=UIDS, cpu=st.integers(0, 500), rare=RARE)
    def try_something(self, name: str, uid: str, cpu: int, rare: dict[str, int]) -> None:
        """Within a trial the node has other pods; afterwards nothing has happened."""
        row = self.table.row_of.get(name)
        if row is None:
            return
        before, version = dict(self.table.pods_on(name)), self.table.version
        more = Usage(requests={"cpu": cpu, **rare}, nonzero_cpu_milli=cpu)
        tried = from_binding(BoundPod(namespace="default", name="new", uid="new", node=name, usage=more))
        with self.table.trial(row) as trial:
            if uid in before:
                assert trial.remove(uid) is before[uid]
            trial.add(tried)
            mates = self.table.pods_on(name)
            assert list(mates) == [*(one for one in before if one != uid), "new"]
            for resource, line in self.table.room.line_of.items():
                there = sum(pod.usage.requests.get(resource, 0) for pod in mates.values())
                assert self.table.room.requested[line, row] == cell(there)
            assert self.table.pod_count[row] == len(mates)
        assert self.table.pods_on(name) == before
        assert self.table.version == version

    @invariant()
    def an_index_is_told_of_what_is_on_nodes(self) -> None:
        pods = {uid: self.table.row_of[pod.node] for uid, pod in self.pods.items() if pod.node in self.table.row_of}
        assert self.table.index(Held).rows == pods

    @invariant()
    def another_topology_has_another_version(self) -> None:
        now = {name: (node["labels"], node["taints"], node["unschedulable"]) for name, node in self.nodes.items()}
        version, before = self.topology
        assert now == before or self.table.topology_version > version
        self.topology = (self.table.topology_version, copy.deepcopy(now))

    @invariant()
    def free_rows_are_empty(self) -> None:
        free = ~self.table.live
        assert not self.table.room.requested[:, free].any()
        assert not self.table.room.allocatable[:, free].any()
        assert not self.table.pod_count[free].any()
        assert not self.table.taint_set[free].any()

    @invariant()
    def what_differs_has_a_new_generation(self) -> None:
        table = self.table
        changed = set(table.changed_since(self.seen))
        assert changed == set(np.flatnonzero(table.generation > self.seen).tolist())
        now = {
            row: (
                table.names[row],
                table.taint_set.item(row),
                table.room.requested[CPU, row],
                table.pod_count.item(row),
            )
            for row in range(table.capacity)
        }
        assert {row for row, cells in now.items() if self.cells.get(row, ("", 0, 0, 0)) != cells} <= changed
        self.seen, self.cells = table.version, now


TableMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_columns_are_those_computed_from_scratch = TableMachine.TestCase


def test_the_fact_of_an_assumed_pod_changes_no_row() -> None:
    """docs/rules.md, decided-counts-at-once: assumed and then seen counts once."""
    table = builders.table_of(builders.make_node("a"))
    pod = builders.on(builders.make_pod("u", cpu="100m"), "a")
    table.place(pod)
    before = table.version
    table.place(pod.with_placement(msgspec.structs.replace(pod.bound, attempt="1-1"), None))
    assert table.changed_since(before) == []
    assert table.placed(pod.uid) is table.pods_on("a")[pod.uid]
    assert table.room.requested[CPU, table.row_of["a"]] == 100


def test_a_pod_with_other_labels_is_news_for_indexes_and_readers() -> None:
    table = builders.table_of(builders.make_node("a"))
    table.place(builders.on(builders.make_pod("u"), "a"))
    seen = table.index(Held)
    seen.rows.clear()
    before = table.version
    seen.rows["uid-u"] = table.row_of["a"]
    other = builders.on(builders.make_pod("u", labels={"app": "b"}), "a")
    table.place(other)
    assert table.placed("uid-u") is other
    assert table.changed_since(before) == [table.row_of["a"]]


def test_an_index_first_used_within_a_trial_knows_of_placed_pods_alone() -> None:
    """Found by exploring NodeVolumeLimits: victims of a trial were missing from the index for ever after."""
    table = builders.table_of(builders.make_node("a"))
    row = table.row_of["a"]
    for name in ("victim", "mate"):
        table.place(builders.on(builders.make_pod(name), "a"))
    with table.trial(row) as trial:
        trial.remove("uid-victim")
        trial.add(builders.make_pod("nominated"))
        assert table.index(Held).rows == {"uid-victim": row, "uid-mate": row}
    table.remove("uid-victim")
    assert table.index(Held).rows == {"uid-mate": row}


def test_a_pod_counts_from_when_its_node_comes() -> None:
    table = NodeTable()
    table.place(from_binding(placed("u", "late", 300)))
    row = table.set_node(builders.make_node("late"))
    assert table.room.requested[CPU, row] == 300
    table.remove_node("late")
    row = table.set_node(builders.make_node("late"))
    assert table.room.requested[CPU, row] == 300


def test_a_reader_behind_the_log_still_learns_which_rows_changed() -> None:
    log, version = ChangeLog(), 0
    for row in [5, *range(100)] * 15:
        version = log.note(row % 8, capacity=1)
    assert log.since(0) is None
    assert log.since(version - 3) == [97 % 8, 98 % 8, 99 % 8]
    assert log.since(version - 9) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert log.since(version - 1) == [99 % 8]


def test_label_values_of_nodes_long_gone_are_forgotten() -> None:
    table = NodeTable()
    for number in range(1100):
        name = f"n{number}"
        table.set_node(builders.make_node(name, labels={"host": name}))
        table.label_column("host")
        table.remove_node(name)
    assert len(table.label_column("host").values) < 1100


class Names:
    """A column of node names."""

    def __init__(self) -> None:
        self.capacity = 0
        self.names: dict[int, str] = {}

    def set(self, row: int, node: Node) -> None:
        assert row < self.capacity
        self.names[row] = node.metadata.name

    def clear(self, row: int) -> None:
        del self.names[row]

    def grow(self, capacity: int) -> None:
        self.capacity = capacity


def test_a_column_is_told_of_every_node_before_and_after_its_first_use() -> None:
    table = builders.table_of(*[builders.make_node(f"early{number}") for number in range(3)])
    column = table.column(Names)
    for number in range(200):
        table.set_node(builders.make_node(f"late{number}"))
    table.remove_node("early1")
    table.set_node(builders.make_node("again"))
    assert table.column(Names) is column
    assert column.names == {row: name for name, row in table.row_of.items()}
    assert column.capacity == table.capacity > 200
