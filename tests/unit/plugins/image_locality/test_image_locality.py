"""ImageLocality against a plain reading, after any changes; names; tokens."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.plugins.image_locality.images import ImageStates
from podyard.plugins.image_locality.plugin import ImageLocality, normalized
from tests.unit.plugins import worlds
from tests.unit.plugins.image_locality import plain

MIB = plain.MIB
NAMES = ("web:1", "web:latest", "registry:5000/tools/agent:latest", "edge@sha256:ab", "huge:2")
ASKED = ("web:1", "web", "registry:5000/tools/agent", "edge@sha256:ab", "huge:2", "unknown")
PLUGIN = ImageLocality()

images = st.builds(
    lambda names, size: {"names": names, "sizeBytes": size * MIB + 1},
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    st.sampled_from((1, 30, 400, 900, 5000)),
)
nodes = st.builds(
    lambda name, found: worlds.node(name, images=found), st.sampled_from(worlds.NAMES), st.lists(images, max_size=3)
)
containers = st.sampled_from(ASKED).map(lambda image: {"name": "c", "image": image})


@st.composite
def pods(draw: st.DrawFn) -> worlds.Manifest:
    spec: dict[str, Any] = {"containers": draw(st.lists(containers, min_size=1, max_size=3))}
    if draw(st.booleans()):
        spec["initContainers"] = draw(st.lists(containers, min_size=1, max_size=2))
    if draw(st.booleans()):
        spec["volumes"] = [{"name": "v", "image": {"reference": draw(st.sampled_from(ASKED))}}, {"name": "w"}]
    return worlds.pod(**spec)


def follow(cache: plain.Cache, step: Any) -> None:
    match step:
        case ("node", manifest):
            cache.set_node(manifest)
        case ("gone", name):
            cache.remove_node(name)
        case _:
            pass


@settings(max_examples=300, deadline=None)
@given(history=worlds.histories(nodes, pods()), incoming=pods())
def test_every_node_is_scored_as_the_plain_reading_says_after_every_change(
    history: list[Any], incoming: worlds.Manifest
) -> None:
    world, cache = worlds.World(), plain.Cache()
    world.snapshot.nodes.column(ImageStates)
    for step in history:
        world.carry_out(step)
        follow(cache, step)
        expected = {name: cache.score(name, incoming) for name in world.nodes}
        assert worlds.scored(PLUGIN, worlds.view_of(incoming), world.snapshot) == expected


@settings(max_examples=200, deadline=None)
@given(history=worlds.histories(nodes, pods()), incoming=pods())
def test_points_of_unchanged_nodes_change_only_with_the_token(history: list[Any], incoming: worlds.Manifest) -> None:
    world, view = worlds.World(), worlds.view_of(incoming)
    token, points = PLUGIN.score_token(view, world.snapshot), {}
    version = 0
    for step in history:
        world.carry_out(step)
        table = world.snapshot.nodes
        changed = {table.names[row] for row in table.changed_since(version)}
        version = table.version
        after, now = PLUGIN.score_token(view, world.snapshot), worlds.scored(PLUGIN, view, world.snapshot)
        assert now is not None
        if after == token:
            assert {name: points[name] for name in now if name not in changed} == {
                name: now[name] for name in now if name not in changed
            }
        token, points = after, now


@settings(max_examples=50, deadline=None)
@given(history=worlds.histories(nodes, pods()))
def test_a_column_made_late_knows_the_same_images_in_the_same_rows(history: list[Any]) -> None:
    early, late = worlds.World(), worlds.World()
    early.snapshot.nodes.column(ImageStates)
    for step in history:
        early.carry_out(step)
        late.carry_out(step)
    found = [
        {name: one.rows for name, one in world.snapshot.nodes.column(ImageStates).states.items()}
        for world in (early, late)
    ]
    assert found[0] == found[1]


@settings(max_examples=100, deadline=None)
@given(history=worlds.histories(nodes, pods()))
def test_images_that_no_node_has_any_more_are_forgotten(history: list[Any]) -> None:
    world, cache = worlds.World(), plain.Cache()
    states = world.snapshot.nodes.column(ImageStates).states
    for step in history:
        world.carry_out(step)
        follow(cache, step)
        names = world.snapshot.nodes.names
        found = {name: (one.size_bytes, {names[row] for row in one.rows}) for name, one in states.items()}
        assert found == cache.states


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("web", "web:latest"),
        ("web:1.0", "web:1.0"),
        ("registry:5000/web", "registry:5000/web:latest"),
        ("registry:5000/web:1.0", "registry:5000/web:1.0"),
        ("web@sha256:abab", "web@sha256:abab"),
        ("", ":latest"),
    ],
)
def test_a_name_without_a_tag_means_latest(image: str, name: str) -> None:
    assert normalized(image) == name
