"""Counts of selected pods: the incremental state after any sequence of changes is the one made from
scratch."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from podyard.cluster import pod_columns, selector_counts
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pod_columns import PodSelection
from podyard.cluster.pods import PodView
from podyard.cluster.selector_counts import SelectorCounts
from podyard.objects import selectors
from podyard.objects.core import Node, Pod
from podyard.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from podyard.proto.placement import BoundPod, Usage

NAMES = [f"n{number}" for number in range(5)]
LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from("abc"), "tier": st.sampled_from("xy")})
NODE_LABELS = st.fixed_dictionaries(
    {}, optional={"zone": st.sampled_from(["z1", "z2", ""]), "host": st.sampled_from(NAMES)}
)
EXPRESSIONS = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(["app", "tier"]),
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(st.sampled_from("abxy"), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(["app", "tier"]),
        operator=st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
SELECTORS = st.one_of(
    st.none(),
    st.builds(LabelSelector, match_labels=LABELS, match_expressions=st.lists(EXPRESSIONS, max_size=2).map(tuple)),
)
SELECTIONS = st.builds(
    PodSelection,
    SELECTORS.map(selectors.compile_labels),
    st.one_of(st.none(), st.frozensets(st.sampled_from(["one", "two"]))),
    st.booleans(),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"),
            st.integers(0, 7),
            st.sampled_from(NAMES),
            st.sampled_from(["one", "two"]),
            LABELS,
            st.booleans(),
        ),
        st.tuples(st.just("remove"), st.integers(0, 7)),
        st.tuples(st.just("node"), st.sampled_from(NAMES), NODE_LABELS),
        st.tuples(st.just("no node"), st.sampled_from(NAMES)),
    ),
    max_size=30,
)
START = [("node", name, {"zone": f"z{1 + number % 2}", "host": name}) for number, name in enumerate(NAMES[:3])]
STEPS = CHANGES.map(lambda changes: [*START, *changes])


def placed(number: int, node: str, namespace: str, labels: dict[str, str], ending: bool) -> PodView:
    """A pod on a node."""
    metadata = ObjectMeta(
        name=f"p{number}",
        namespace=namespace,
        uid=f"u{number}",
        labels=labels,
        deletion_timestamp="2026-01-01T00:00:00Z" if ending else None,
    )
    bound = BoundPod(namespace=namespace, name=f"p{number}", uid=f"u{number}", node=node, labels=labels, usage=Usage())
    return PodView(Pod(metadata=metadata), (namespace, f"p{number}"), f"u{number}", 1, bound)


def do(table: NodeTable, step: tuple[Any, ...]) -> None:
    """One change of the table."""
    match step:
        case ("place", number, node, namespace, labels, ending):
            table.place(placed(number, node, namespace, labels, ending))
        case ("remove", number):
            table.remove(f"u{number}")
        case ("node", name, labels):
            table.set_node(Node(metadata=ObjectMeta(name=name, labels=labels)))
        case ("no node", name):
            table.remove_node(name)
        case _:
            raise AssertionError(step)


def plain(table: NodeTable, wanted: PodSelection) -> dict[str, int]:
    """Matching pods by node, counted one by one; nodes with none left out."""
    found: dict[str, int] = {}
    for name in table.row_of:
        for pod in table.pods_on(name).values():
            in_namespace = wanted.namespaces is None or pod.namespace in wanted.namespaces
            if in_namespace and (wanted.ending or not pod.deleting) and wanted.selector.matches(pod.labels):
                found[name] = found.get(name, 0) + 1
    return found


def by_name(table: NodeTable, rows: NDArray[np.int64]) -> dict[str, int]:
    """Counts by node; a count of a free row goes by the empty name."""
    return {table.names[row]: int(rows[row]) for row in np.flatnonzero(rows).tolist()}


class Zones:
    """Nodes of some names, as a choice for domain sums."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def __hash__(self) -> int:
        return hash(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zones) and other.names == self.names

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_]:
        return np.array([name in self.names for name in nodes.names])


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, asked=st.lists(SELECTIONS, max_size=2), unasked=st.lists(SELECTIONS, min_size=1, max_size=2))
def test_counts_kept_up_to_date_are_those_counted_one_by_one(
    steps: list[tuple[Any, ...]], asked: list[PodSelection], unasked: list[PodSelection]
) -> None:
    table = NodeTable()
    counts = table.index(SelectorCounts)
    for step in steps:
        do(table, step)
        for wanted in asked:
            assert by_name(table, counts.of(wanted).rows) == plain(table, wanted)
    for wanted in (*asked, *unasked):
        found = counts.of(wanted).rows
        assert by_name(table, found) == plain(table, wanted)
        assert found.tolist() == _fresh(table).of(wanted).rows.tolist()
        assert len(found) == table.capacity


@settings(max_examples=200, deadline=None)
@given(
    steps=STEPS,
    wanted=SELECTIONS,
    key=st.sampled_from(["zone", "host"]),
    among=st.one_of(st.none(), st.frozensets(st.sampled_from(NAMES)).map(Zones)),
)
def test_sums_by_domain_are_those_added_up_one_by_one(
    steps: list[tuple[Any, ...]], wanted: PodSelection, key: str, among: Zones | None
) -> None:
    table = NodeTable()
    for step in steps:
        do(table, step)
        found = table.index(SelectorCounts).sums(wanted, key, among)
        counted, expected = plain(table, wanted), dict[str, int]()
        for name, row in table.row_of.items():
            node = table.nodes[row]
            assert node is not None
            if key in node.metadata.labels and (among is None or name in among.names):
                value = node.metadata.labels[key]
                expected[value] = expected.get(value, 0) + counted.get(name, 0)
        values = found.domains.column.values
        present = np.flatnonzero(found.domains.present).tolist()
        assert {values[domain]: int(found.sums[domain]) for domain in present} == expected
        assert found.domains.number == len(expected)
        assert found.lowest == min(expected.values(), default=2**31 - 1)
        assert not found.sums[~found.domains.present].any()


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, first=SELECTIONS, second=SELECTIONS)
def test_a_version_changes_with_its_own_count_only_and_tells_what_changed(
    steps: list[tuple[Any, ...]], first: PodSelection, second: PodSelection
) -> None:
    table = NodeTable()
    counts = table.index(SelectorCounts)
    for step in steps:
        before = [(counts.of(one), counts.of(one).version, counts.of(one).rows.copy()) for one in (first, second)]
        do(table, step)
        for count, version, rows in before:
            told = counts.of(count.wanted).since(version)
            assert told is not None
            assert (count.version == version) == (not told)
            for row, more in told:
                rows[row] += more
            assert rows.tolist() == count.rows.tolist()
    assert first == second or counts.of(first).version != counts.of(second).version


def test_counts_not_asked_for_go_and_come_back_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_counts, "LEAST", 2)
    monkeypatch.setattr(selector_counts, "MEMORY_BYTES", 0)
    monkeypatch.setattr(pod_columns, "LABEL_KEYS", 1)
    table = NodeTable()
    table.set_node(Node(metadata=ObjectMeta(name="n0", labels={"zone": "z1"})))
    table.place(placed(0, "n0", "one", {"app": "a", "tier": "x"}, False))
    counts = table.index(SelectorCounts)
    chosen = [
        PodSelection(selectors.compile_map(labels), None)
        for labels in ({"app": "a"}, {"tier": "x"}, {"app": "b"}, {"app": "a", "tier": "x"})
    ]
    dropped = counts.of(chosen[0])
    old = counts.sums(chosen[0], "zone")
    for wanted in chosen[1:]:
        counts.of(wanted)
    table.place(placed(1, "n0", "one", {"app": "a", "tier": "x"}, False))
    again = counts.of(chosen[0])
    assert int(again.rows.sum()) == 2
    assert int(dropped.rows.sum()) == 1, "a dropped count is not followed any more"
    assert again.version != dropped.version
    assert again.since(dropped.version) is None
    assert int(counts.sums(chosen[0], "zone").sums.sum()) == 2
    assert old is not None
    assert [int(counts.of(wanted).rows.sum()) for wanted in chosen] == [2, 2, 0, 2]


def test_a_count_follows_the_growth_of_the_table() -> None:
    table = NodeTable()
    counts = table.index(SelectorCounts)
    wanted = PodSelection(selectors.EVERYTHING, None)
    counts.of(wanted)
    for number in range(table.capacity + 1):
        table.place(placed(number, f"node-{number}", "one", {}, False))
        table.set_node(Node(metadata=ObjectMeta(name=f"node-{number}")))
    assert counts.of(wanted).rows[table.rows()].tolist() == [1] * len(table)
    assert len(counts.of(wanted).rows) == table.capacity


def test_the_lowest_sum_follows_pods_that_come_and_go() -> None:
    table, wanted = NodeTable(), PodSelection(selectors.EVERYTHING, None)
    for number in range(2):
        table.set_node(Node(metadata=ObjectMeta(name=f"n{number}", labels={"zone": f"z{number}"})))
    lowest = [table.index(SelectorCounts).sums(wanted, "zone").lowest]
    for number in range(4):
        table.place(placed(number, f"n{number % 2}", "one", {}, False))
        lowest.append(table.index(SelectorCounts).sums(wanted, "zone").lowest)
    table.remove("u0")
    lowest.append(table.index(SelectorCounts).sums(wanted, "zone").lowest)
    assert lowest == [0, 0, 1, 1, 2, 1]


def test_a_log_that_does_not_go_back_so_far_says_so() -> None:
    table = NodeTable()
    table.set_node(Node(metadata=ObjectMeta(name="n0", labels={"zone": "z1"})))
    wanted = PodSelection(selectors.EVERYTHING, None)
    counts = table.index(SelectorCounts)
    sums, count = counts.sums(wanted, "zone"), counts.of(wanted)
    version = count.version
    for number in range(len(count.rows) + 1100):
        table.place(placed(number, "n0", "one", {}, False))
    assert count.since(version) is None
    assert len(count.since(count.version - 1) or ()) == 1
    assert count.since(count.version + 1) is None
    assert counts.sums(wanted, "zone") is sums
    assert int(sums.sums.sum()) == len(count.rows) + 1100


def _fresh(table: NodeTable) -> SelectorCounts:
    """The counts of a table that nobody has asked before."""
    found = SelectorCounts(table)
    for name, row in table.row_of.items():
        for pod in table.pods_on(name).values():
            found.add(pod, row)
    return found


def zoned(*zones: str) -> NodeTable:
    table = NodeTable()
    for zone in zones:
        table.set_node(Node(metadata=ObjectMeta(name=f"n-{zone}", labels={"zone": zone})))
    return table


def app(value: str) -> PodSelection:
    return PodSelection(selectors.compile_map({"app": value}), None)


def test_sums_go_with_the_count_that_they_were_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_counts, "LEAST", 2)
    monkeypatch.setattr(selector_counts, "MEMORY_BYTES", 0)
    counts = zoned("z1").index(SelectorCounts)
    monkeypatch.setattr(counts, "_most_sums", lambda: 100)
    gone = weakref.ref(counts.sums(app("a"), "zone"))
    for number in range(4):
        counts.of(app(f"other-{number}"))
    assert gone() is None
    assert not counts._sums


def test_sums_outlive_neither_their_bound_nor_keep_a_dropped_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_counts, "LEAST", 2)
    monkeypatch.setattr(selector_counts, "MEMORY_BYTES", 0)
    counts = zoned("z1").index(SelectorCounts)
    monkeypatch.setattr(counts, "_bound", lambda: 100)
    made = [weakref.ref(counts.sums(app(f"a{number}"), "zone")) for number in range(50)]
    assert [found() is not None for found in made] == [False] * 48 + [True] * 2
    held, dropped = counts.sums(app("a49"), "zone"), counts.of(app("a49")).rows
    assert not any(one is dropped for one in gc.get_referents(held))
    assert not any(isinstance(one, selector_counts.SelectorCount) for one in gc.get_referents(held))


def test_selectors_of_counts_are_bounded_in_bytes() -> None:
    counts = zoned("z1").index(SelectorCounts)
    for number in range(40):
        counts.of(app(f"{number}" + "x" * 1_000_000))
    assert 1 <= len(counts._counts) <= selector_counts.SELECTORS_BYTES // 1_000_000
    assert counts._selector_bytes <= selector_counts.SELECTORS_BYTES
    assert counts._selector_bytes == sum(count.selector_bytes for count in counts._counts.values())
