"""NodeResourcesFit against a plain reading, after any changes: room, and the three scoring strategies."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework import events
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import HintAnswer
from podyard.plugins.node_resources_fit.args import Args, UtilizationShapePoint
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.node_resources_fit.strategies import shape_score
from tests.support.known_objects import KnownObjects
from tests.unit.plugins import worlds
from tests.unit.plugins.node_resources_fit import plain, rooms

shapes = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=4, unique_by=lambda point: point[0]
).map(lambda points: [{"utilization": x, "score": y} for x, y in sorted(points)])


@st.composite
def strategies(draw: st.DrawFn) -> worlds.Manifest:
    kind = draw(st.sampled_from(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")))
    found: worlds.Manifest = {
        "type": kind,
        "resources": [{"name": name, "weight": draw(st.integers(1, 5))} for name in draw(rooms.resources)],
    }
    if kind == "RequestedToCapacityRatio":
        found["requestedToCapacityRatio"] = {"shape": draw(shapes)}
    return found


def plugin(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(msgspec.convert(args, Args))


@settings(max_examples=200, deadline=None)
@given(
    history=worlds.histories(rooms.nodes, rooms.pods),
    incoming=rooms.pods,
    ignored=st.sampled_from(({}, {"ignoredResources": [rooms.GPU]}, {"ignoredResourceGroups": ["ignored.io"]})),
)
def test_every_node_is_judged_as_the_plain_reading_says_after_every_change(
    history: list[Any], incoming: worlds.Manifest, ignored: dict[str, list[str]]
) -> None:
    world, fit = worlds.World(), plugin(**ignored)
    names = {name for listed in ignored.values() for name in listed}
    for step in history:
        world.carry_out(step)
        found = worlds.filtered(fit, worlds.view_of(incoming), world.snapshot)
        assert found is not None
        got = {name: None if one is None else (one.code.label, set(one.reasons)) for name, one in found.items()}
        assert got == {name: plain.verdict(node, incoming, world.on(name), names) for name, node in world.nodes.items()}


@settings(max_examples=300, deadline=None)
@given(history=worlds.histories(rooms.nodes, rooms.pods), incoming=rooms.pods, strategy=strategies())
def test_every_node_is_scored_as_the_plain_reading_says_after_every_change(
    history: list[Any], incoming: worlds.Manifest, strategy: worlds.Manifest
) -> None:
    world, fit = worlds.World(), plugin(scoringStrategy=strategy)
    for step in history:
        world.carry_out(step)
        expected = {
            name: plain.fit_score(node, incoming, world.on(name), strategy) for name, node in world.nodes.items()
        }
        assert worlds.scored(fit, worlds.view_of(incoming), world.snapshot) == expected


def test_without_prescore_the_score_is_the_same() -> None:
    world, fit = worlds.World(), plugin()
    world.set_node(worlds.node("n0", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}))
    view = worlds.view_of(worlds.pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}]))
    alone = fit.score(CycleState(), view, world.snapshot, world.snapshot.nodes.rows())
    assert {"n0": int(alone[0])} == worlds.scored(fit, view, world.snapshot) == {"n0": (75 + 97) // 2}


@pytest.mark.parametrize(
    ("percent", "score"), [(0, 100), (10, 100), (11, 99), (43, 67), (70, 40), (75, 20), (80, 0), (100, 0)]
)
def test_a_falling_shape_rounds_towards_the_point_before(percent: int, score: int) -> None:
    """Go divides towards zero: 100 - 60*1/60 = 99, and 100 - 60*33/60 = 67."""
    shape = [UtilizationShapePoint(utilization=x, score=y) for x, y in ((10, 10), (70, 4), (80, 0))]
    assert shape_score(shape, percent) == score


def known_classes(*classes: dict[str, Any]) -> KnownObjects:
    """Where device classes are found."""
    known = KnownObjects()
    for one in classes:
        known.put("deviceclasses", one)
    return known


@pytest.mark.parametrize(
    ("classes", "answer"),
    [
        pytest.param([], HintAnswer.SKIP, id="no-class"),
        pytest.param([{"metadata": {"name": "gpu"}}], HintAnswer.SKIP, id="stands-for-nothing"),
        pytest.param(
            [{"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": rooms.GPU}}], HintAnswer.QUEUE, id="named"
        ),
    ],
)
def test_a_node_without_a_resource_may_help_if_devices_stand_for_it(
    classes: list[dict[str, Any]], answer: HintAnswer
) -> None:
    fit, world = plugin(), worlds.World()
    fit.use_objects(known_classes(*classes))
    world.set_node(worlds.node("n0", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}))
    waiting = worlds.view_of(worlds.pod(containers=[{"name": "c", "resources": {"requests": {rooms.GPU: "1"}}}])).pod
    hint = next(one.hint for one in fit.events_to_register() if one.event.resource == events.NODE)
    assert hint is not None
    assert hint(waiting, None, world.snapshot.nodes.nodes[0]).answer == answer
