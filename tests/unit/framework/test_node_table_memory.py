"""What a node table learns from nodes that change their labels and taints all the time stays within its
bounds."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podyard.cluster import node_columns
from podyard.cluster.node_columns import ABSENT, LabelColumn, LabelColumns
from podyard.cluster.node_table import NodeTable
from podyard.framework.cycle_state import CycleState
from podyard.framework.snapshot import Snapshot
from podyard.plugins.taint_toleration.plugin import TaintToleration
from tests.unit.framework.builders import make_node, make_pod, on, table_of

MEBIBYTE = 1024 * 1024


def taken(work: Callable[[], Any]) -> int:
    """Bytes that are still held when `work` is done."""
    gc.collect()
    tracemalloc.start()
    try:
        held = work()
        gc.collect()
        found, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del held
    return found


def test_a_node_whose_taints_tell_times_leaves_no_old_ones_behind() -> None:
    table = table_of(*(make_node(f"n{number}") for number in range(10)))

    def work() -> None:
        for second in range(20_000):
            value = "x" * 200 + str(second)
            table.set_node(make_node(f"n{second % 10}", taints=[("deletion-candidate", value, "PreferNoSchedule")]))

    assert taken(work) < 3 * node_columns.TAINTS_BYTES
    assert table.taints.bytes < 3 * node_columns.TAINTS_BYTES


def test_what_plugins_hold_for_each_combination_of_taints_does_not_grow_with_old_ones() -> None:
    table = table_of(*(make_node(f"n{number}") for number in range(10)))
    most = 0
    for second in range(1000):
        table.set_node(make_node(f"n{second % 10}", taints=[("time", str(second), "PreferNoSchedule")]))
        most = max(most, len(table.taints.sets))
    assert most <= 2 * 11 + node_columns.STALE_SETS + table.capacity // 8 + 1


def test_numbers_of_taints_that_were_given_anew_mean_what_nodes_have() -> None:
    table = table_of(make_node("hard", taints=[("a", "b", "NoSchedule")]), make_node("soft"), make_node("free"))
    plugin, cluster, pod, state = TaintToleration(), Snapshot(table), make_pod("p"), CycleState()
    rows = table.rows()
    before = plugin.filter(state, pod, cluster, rows).tolist()
    sets = table.taints.sets
    for second in range(20_000):
        table.set_node(make_node("soft", taints=[("time", "x" * 200 + str(second), "PreferNoSchedule")]))
        if table.taints.sets is not sets:
            break
    table.set_node(make_node("free", taints=[("c", "d", "NoSchedule")]))
    assert table.taints.sets is not sets
    after = plugin.filter(state, pod, cluster, rows)
    verdicts = {table.names[row]: bool(code) for row, code in zip(rows, after, strict=True)}
    assert (before.count(0), verdicts) == (2, {"hard": True, "soft": False, "free": True})


def test_a_label_whose_values_are_ever_new_leaves_no_old_ones_behind() -> None:
    table = table_of(*(make_node(f"n{number}") for number in range(10)))
    table.label_column("round")
    for number in range(10_000):
        table.set_node(make_node(f"n{number % 10}", labels={"round": f"value-{number}"}))
        table.label_column("round")
    column = table.label_column("round")
    assert len(column.values) <= 2 * 10 + node_columns.STALE_VALUES + 1
    assert {column.values[cell] for cell in column.cells[:10]} == {f"value-{number}" for number in range(9990, 10_000)}


def test_columns_of_labels_that_nobody_asks_for_any_more_go() -> None:
    table = table_of(*(make_node(f"n{number}", labels={"zone": "a"}) for number in range(10)))
    pod = on(make_pod("p"), "n1")

    def work() -> None:
        for number in range(60_000):
            table.label_column(f"key-{number}.example.com/has")
            table.label_column("zone")
            table.place(pod)

    labels: Any = table._labels
    labels.most_bytes = 4 * MEBIBYTE
    assert taken(work) < 5 * MEBIBYTE
    assert labels.get("zone") is not None
    assert labels.get("key-1.example.com/has") is None


def test_a_column_that_went_is_seen_to_be_another() -> None:
    table = table_of(make_node("n1", labels={"zone": "a"}))
    first, version = table.label_column("zone"), table.topology_version
    table._labels.most_bytes = 0
    table.label_column("other")
    assert table.label_column("zone") is first, "nothing goes while somebody may work with it"
    table.label_column("other")
    table.place(on(make_pod("p"), "n1"))
    assert table.label_column("zone") is not first
    assert table.topology_version > version


def test_a_nodes_labels_cost_what_they_are_not_what_columns_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(make_node("n1", labels={"zone": "a", "old": "x"}))
    for number in range(1000):
        table.label_column(f"of-pod-{number}")
    columns = {key: table.label_column(key) for key in ("zone", "old", "new")}
    written: list[str] = []
    set_label = LabelColumn.set
    monkeypatch.setattr(LabelColumn, "set", lambda one, *to: written.append(one.key) or set_label(one, *to))
    table.set_node(make_node("n1", labels={"zone": "b", "new": "y"}))
    assert sorted(written) == ["new", "old", "zone"]
    row = table.row_of["n1"]
    assert {key: one.values[one.cells[row]] for key, one in columns.items()} == {"zone": "b", "old": "", "new": "y"}
    table.remove_node("n1")
    assert [int(one.cells[row]) for one in columns.values()] == [ABSENT] * 3


def test_a_column_takes_no_more_than_it_says() -> None:
    values = [f"{'v' * 56}{number:06}" for number in range(20_000)]
    nodes = [make_node("n", labels={"key": value}) for value in values[:1]]

    def work() -> LabelColumn:
        column = LabelColumn("key", nodes, 64)
        for value in values:
            column._intern("x" + value)
        return column

    column = work()
    assert 0.5 * column.bytes < taken(work) < column.bytes
    columns = LabelColumns()
    columns.add(column)
    assert isinstance(column.cells, np.ndarray)
    assert columns.get("key") is column


def test_an_empty_table_has_no_columns() -> None:
    assert len(NodeTable()._labels) == 0
