"""NodeResourcesBalancedAllocation against a plain reading, after any changes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from podyard.framework.cycle_state import CycleState
from podyard.plugins.node_resources_balanced_allocation.args import Args
from podyard.plugins.node_resources_balanced_allocation.plugin import NodeResourcesBalancedAllocation
from tests.unit.plugins import worlds
from tests.unit.plugins.node_resources_fit import plain, rooms


def plugin(*names: str) -> NodeResourcesBalancedAllocation:
    given = {"resources": [{"name": name, "weight": 1} for name in names]} if names else {}
    return NodeResourcesBalancedAllocation(msgspec.convert(given, Args))


@settings(max_examples=400, deadline=None)
@given(history=worlds.histories(rooms.nodes, rooms.pods), incoming=rooms.pods, names=rooms.resources)
def test_every_node_is_scored_as_the_plain_reading_says_after_every_change(
    history: list[Any], incoming: worlds.Manifest, names: list[str]
) -> None:
    world = worlds.World()
    for step in history:
        world.carry_out(step)
        found = worlds.scored(plugin(*names), worlds.view_of(incoming), world.snapshot)
        expected = {name: plain.balance(node, incoming, world.on(name), names) for name, node in world.nodes.items()}
        if not expected:
            continue
        assert (found is None) == (None in expected.values())
        assert found is None or found == expected


def one_node(requests: dict[str, str]) -> tuple[worlds.World, Any]:
    world = worlds.World()
    world.set_node(worlds.node("n0", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}))
    return world, worlds.view_of(worlds.pod(containers=[{"name": "c", "resources": {"requests": requests}}]))


@pytest.mark.parametrize(
    ("requests", "score"),
    [
        pytest.param({"cpu": "1", "memory": "2Gi"}, 75, id="even"),
        pytest.param({"cpu": "4"}, 50, id="as-uneven-as-can-be"),
        pytest.param({"cpu": "1"}, 68, id="one-sided"),
    ],
)
def test_the_score_falls_with_what_the_pod_makes_uneven(requests: dict[str, str], score: int) -> None:
    world, view = one_node(requests)
    assert worlds.scored(plugin(), view, world.snapshot) == {"n0": score}


def test_a_pod_that_requests_nothing_is_not_scored() -> None:
    world, view = one_node({})
    assert worlds.scored(plugin(), view, world.snapshot) is None
    rows = world.snapshot.nodes.rows()
    assert plugin().score(CycleState(), view, world.snapshot, rows).tolist() == [0], "with PreScore disabled"


def test_without_prescore_the_score_is_the_same() -> None:
    world, view = one_node({"cpu": "1"})
    alone = plugin().score(CycleState(), view, world.snapshot, world.snapshot.nodes.rows())
    assert {"n0": int(alone[0])} == worlds.scored(plugin(), view, world.snapshot)
