"""Points worked out by domain are those worked out node by node, whatever was kept of the time before."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows
from podyard.plugins.inter_pod_affinity import scoring
from podyard.plugins.inter_pod_affinity.domain_places import Places
from tests.unit.framework.builders import make_node

KEY = "zone"
NODES = tuple(f"n{number}" for number in range(24))
"""More than four times as many as there are domains, also if nodes are left out."""
zones = st.sampled_from((None, "z1", "z2", "z3"))
two_zones = st.sampled_from(("z2", "z3"))
steps = st.one_of(
    st.just(("again",)),
    st.tuples(st.just("worth"), st.lists(st.integers(-3, 3), min_size=4, max_size=4)),
    st.tuples(st.just("worth"), st.lists(st.sampled_from((0, 300)), min_size=4, max_size=4)),
    st.tuples(st.just("node"), st.sampled_from(NODES), zones),
    st.tuples(st.just("gone"), st.sampled_from(NODES)),
    st.tuples(st.just("rows"), st.sets(st.sampled_from(range(len(NODES))), max_size=7)),
)


def set_node(table: NodeTable, name: str, zone: str | None) -> None:
    table.set_node(make_node(name, labels={} if zone is None else {KEY: zone}))


def the_same(before: Rows, now: Rows) -> Rows:
    """The array of before, as Filter keeps it as long as it finds the same nodes."""
    return before if np.array_equal(before, now) else now


@given(
    first=st.one_of([st.lists(some, min_size=len(NODES), max_size=len(NODES)) for some in (zones, two_zones)]),
    changes=st.lists(steps, min_size=1, max_size=12),
)
def test_points_by_domain_are_those_by_node(first: list[str | None], changes: list[tuple[Any, ...]]) -> None:
    table, places = NodeTable(), Places()
    for name, zone in zip(NODES, first, strict=True):
        set_node(table, name, zone)
    for zone in ("z1", "z2", "z3"):  # so that all domains have a number
        set_node(table, NODES[0], zone)
        table.label_column(KEY)
    set_node(table, NODES[0], first[0])
    worth, rows = np.array((0, 1, 2, 2)), table.rows()
    for change in changes:
        match change:
            case ("worth", values):
                worth = np.array(values)
            case ("node", name, zone):
                set_node(table, name, zone)
                rows = the_same(rows, table.rows())
            case ("gone", name):
                table.remove_node(name)
                rows = the_same(rows, table.rows())
            case ("rows", left_out):
                rows = np.array([row for row in table.rows().tolist() if row not in left_out], dtype=np.intp)
            case _:
                pass
        raw = scoring.scores(((KEY, worth),), table, places, rows)
        assert raw.tolist() == [scoring.score_one(((KEY, worth),), table, row) for row in rows.tolist()]
        found = scoring.normalized_by_domain((KEY, worth), table, places, rows)
        if len(rows) < scoring.FEW_DOMAINS * len(worth):
            assert found is None
        else:
            assert found is not None
            assert found.tolist() == scoring.normalized(raw).tolist()


def test_the_same_points_are_the_same_array() -> None:
    """So that nobody has to compare them."""
    table, places = NodeTable(), Places()
    for number, name in enumerate(NODES):
        set_node(table, name, f"z{number % 2}")
    rows = table.rows()
    before = scoring.normalized_by_domain((KEY, np.array((0, 1, 2))), table, places, rows)
    again = scoring.normalized_by_domain((KEY, np.array((0, 3, 8))), table, places, rows)
    other = scoring.normalized_by_domain((KEY, np.array((0, 8, 3))), table, places, rows)
    assert before is again
    assert before is not None
    assert other is not None
    assert before.tolist() == [0, 100] * 12
    assert other.tolist() == [100, 0] * 12
