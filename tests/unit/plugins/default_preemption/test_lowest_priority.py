"""The lowest priority on each node: as from scratch after any sequence of changes."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.plugins.default_preemption.lowest_priority import NOBODY, LowestPriority
from tests.unit.framework.builders import make_node, make_pod, table_of
from tests.unit.plugins.default_preemption.scenes import Scene, placed

NODES = ("a", "b", "c")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(0, 8), st.sampled_from(NODES), st.sampled_from((-3, 0, 0, 7))),
        st.tuples(st.just("remove"), st.integers(0, 8)),
        st.tuples(st.just("node"), st.sampled_from(NODES)),
        st.tuples(st.just("no node"), st.sampled_from(NODES)),
        st.tuples(st.just("many nodes"), st.integers(60, 140)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_the_column_is_the_one_from_scratch(steps: list[tuple[Any, ...]]) -> None:
    table = table_of(*map(make_node, NODES))
    index = table.index(LowestPriority)
    for step in steps:
        match step:
            case ("place", number, node, priority):
                table.place(placed(f"p{number}", node, priority=priority))
            case ("remove", number):
                table.remove(f"uid-p{number}")
            case ("node", node):
                table.set_node(make_node(node))
            case ("no node", node):
                table.remove_node(node)
            case ("many nodes", count):
                for number in range(count):
                    table.set_node(make_node(f"more-{number}"))
            case _:
                raise AssertionError(step)
        rows = table.rows()
        names: list[str] = [table.names[row] for row in rows.tolist()]
        expected = [min((pod.priority for pod in table.pods_on(name).values()), default=NOBODY) for name in names]
        for limit in (-3, 0, 7, 8):
            below = [row for row, lowest in zip(rows.tolist(), expected, strict=True) if lowest < limit]
            assert index.below(rows, limit).tolist() == below
    assert len(index.below(np.zeros(0, dtype=np.intp), 0)) == 0


def test_nodes_without_lower_priority_are_told_without_a_trial() -> None:
    pods = [placed(f"on-{node}", node, cpu="4", priority=10) for node in "ab"] + [placed("low", "c", cpu="1")]
    scene = Scene([make_node(node) for node in "abc"], [*pods, placed("high", "c", cpu="3", priority=10)])
    result = scene.run(make_pod("me", cpu="2", priority=10))
    assert result.message.endswith(
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 2 No preemption victims found for incoming pod."
    )
    equal = scene.run(make_pod("low-too", cpu="2", priority=0))
    assert equal.message.endswith(
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
