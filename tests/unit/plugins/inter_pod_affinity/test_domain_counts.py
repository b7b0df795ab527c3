"""Counts by domain follow the table, and their versions tell of every difference and of nothing else."""

import weakref
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.cluster import selector_counts
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.pod_columns import PodSelection
from podyard.cluster.selector_counts import SelectorCounts
from podyard.objects import selectors
from podyard.plugins.inter_pod_affinity.domain_counts import DomainStamps, GroupCounts, SelectedCounts
from tests.unit.plugins.inter_pod_affinity import cases

NODES = ("n0", "n1", "n2")
ZONES = st.one_of(st.just({}), st.sampled_from(({"zone": "z1"}, {"zone": "z2"})))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from("abcd"), st.sampled_from(NODES)),
        st.tuples(st.just("place"), st.sampled_from("abcd"), st.sampled_from(NODES)),
        st.tuples(st.just("remove"), st.sampled_from("abcd"), st.none()),
        st.tuples(st.just("node"), st.sampled_from(NODES), ZONES),
        st.tuples(st.just("no node"), st.sampled_from(NODES), st.none()),
    ),
    min_size=6,
    max_size=25,
)


class Told:
    """An index of all pods, as counts of one group."""

    def __init__(self, table: NodeTable, *, edges: bool) -> None:
        clock = count()
        self.domains = DomainStamps(table, clock)
        self.counts = GroupCounts(self.domains, "zone", clock, edges=edges)

    def add(self, pod: PlacedPod, row: int) -> None:
        self.counts.add(row, 1)

    def remove(self, pod: PlacedPod, row: int) -> None:
        self.counts.add(row, -1)


def take(table: NodeTable, step: tuple[str, str, Any]) -> None:
    match step:
        case ("place", uid, name):
            pod = {"metadata": {"name": uid, "namespace": "one", "uid": uid, "labels": {}}, "spec": {}}
            table.place(cases.view(pod, name))
        case ("remove", uid, _):
            table.remove(uid)
        case ("node", name, labels):
            table.set_node(cases.node(name, labels))
        case (_, name, _):
            table.remove_node(name)


def plain(table: NodeTable) -> dict[str, int]:
    """Pods by zone, zeros left out."""
    found: dict[str, int] = {}
    for node in table.nodes:
        if node is not None and "zone" in node.metadata.labels and table.pods_on(node.metadata.name):
            zone = node.metadata.labels["zone"]
            found[zone] = found.get(zone, 0) + len(table.pods_on(node.metadata.name))
    return found


def zones(table: NodeTable) -> dict[int, str]:
    """The zone of every row that has one."""
    listed = enumerate(table.nodes)
    return {row: node.metadata.labels["zone"] for row, node in listed if node and "zone" in node.metadata.labels}


def by_value(table: NodeTable, counts: GroupCounts | SelectedCounts) -> dict[str, int]:
    column, by_domain = table.label_column("zone"), counts.by_domain()
    assert by_domain[0] == 0
    assert counts.occupied == np.count_nonzero(by_domain)
    return {column.values[domain]: int(by_domain[domain]) for domain in np.flatnonzero(by_domain)}


@given(data=st.data(), steps=STEPS, edges=st.booleans())
def test_counts_of_a_group(data: st.DataObject, steps: list[tuple[str, str, Any]], edges: bool) -> None:
    table = NodeTable()
    told = Told(table, edges=edges)
    table.index(lambda _: told)
    known: dict[tuple[int, int], Any] = {}
    for step in steps:
        take(table, step)
        now = plain(table)
        if data.draw(st.booleans()):
            assert by_value(table, told.counts) == now
        token = told.counts.version, told.domains.stamp("zone")
        seen = known.setdefault(token, (set(now) if edges else now, zones(table)))
        assert seen == (set(now) if edges else now, zones(table))


@given(steps=STEPS)
def test_counts_of_a_selection(steps: list[tuple[str, str, Any]]) -> None:
    table = NodeTable()
    counts = SelectedCounts(table, PodSelection(selectors.EVERYTHING, frozenset(("one",))), "zone", count())
    by_counted: dict[int, Any] = {}
    by_edged: dict[int, Any] = {}
    for step in steps:
        take(table, step)
        now = plain(table)
        assert by_value(table, counts) == now
        assert by_counted.setdefault(counts.counted, now) == now
        assert by_edged.setdefault(counts.edged, set(now)) == set(now)


@pytest.fixture
def table() -> NodeTable:
    """Two nodes in z1, one in z2; a pod on n0."""
    made = NodeTable()
    for name, zone in zip(NODES, ("z1", "z1", "z2"), strict=True):
        made.set_node(cases.node(name, {"zone": zone}))
    take(made, ("place", "a", "n0"))
    return made


@pytest.mark.parametrize(
    ("step", "counted", "edged"),
    [
        pytest.param(("place", "b", "n1"), True, False, id="one more in a domain that has one"),
        pytest.param(("place", "b", "n2"), True, True, id="the first of a domain"),
        pytest.param(("remove", "a", None), True, True, id="the last of a domain"),
        pytest.param(("place", "a", "n1"), False, False, id="moved within a domain"),
        pytest.param(("node", "n3", {}), False, False, id="a node outside all domains"),
    ],
)
def test_versions_change_only_with_the_counts(
    table: NodeTable, step: tuple[str, str, Any], counted: bool, edged: bool
) -> None:
    group = table.index(lambda made: Told(made, edges=True))
    selected = SelectedCounts(table, PodSelection(selectors.EVERYTHING, None), "zone", count())
    group.counts.by_domain()
    selected.refresh()
    before = group.counts.version, selected.counted, selected.edged
    take(table, step)
    selected.refresh()
    if step[:2] != ("place", "a"):  # a group hears of a move as of an end and a beginning
        assert (group.counts.version != before[0]) == edged
        assert (selected.counted != before[1]) == counted
    assert (selected.edged != before[2]) == edged


def test_a_taint_is_no_other_domain(table: NodeTable) -> None:
    domains = DomainStamps(table, count())
    before = domains.stamp("zone")
    tainted = cases.node("n0", {"zone": "z1", "other": "label"})
    table.set_node(tainted)
    assert domains.stamp("zone") == before
    table.set_node(cases.node("n0", {"zone": "z2"}))
    assert domains.stamp("zone") != before


def test_sums_that_the_index_gave_up_are_kept_by_nobody(table: NodeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of incoming terms are remembered; the index bounds what their counts take."""
    monkeypatch.setattr(selector_counts, "LEAST", 2)
    monkeypatch.setattr(selector_counts, "MEMORY_BYTES", 0)
    kept = SelectedCounts(table, PodSelection(selectors.EVERYTHING, None), "zone", count())
    assert by_value(table, kept) == {"z1": 1}
    index, before = table.index(SelectorCounts), kept.counted
    source = weakref.ref(index.sums(kept.selection, "zone"))
    for number in range(8):
        index.sums(PodSelection(selectors.compile_map({"app": f"a{number}"}), None), "zone")
    assert source() is None
    assert by_value(table, kept) == {"z1": 1}
    assert kept.counted > before, "whoever remembers an answer asks again: how the sums came about is not known"
