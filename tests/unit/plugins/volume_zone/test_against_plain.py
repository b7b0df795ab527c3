"""VolumeZone says of each node what a plain reading of its rules says."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.plugins.volume_zone.plugin import VolumeZone
from tests.unit.plugins.volume_binding import storage_worlds
from tests.unit.plugins.volume_binding.storage_worlds import Answer, Asked, Manifest, World
from tests.unit.plugins.volume_zone import plain

PLUGIN = VolumeZone()
incoming = storage_worlds.pods().map(lambda pod: storage_worlds.named(pod, "pod"))


def wanted(world: World, pod: Manifest) -> tuple[Answer, dict[str, Answer]]:
    first = plain.pre_filter(world, pod)
    return first, {name: plain.verdict(world, pod, name) for name in world.nodes} if first is None else {}


def check(world: World, pod: Manifest) -> None:
    asked = Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)
    assert (asked.pre_filter, asked.one_by_one) == wanted(world, pod)
    assert asked.at_once == asked.one_by_one


@storage_worlds.LARGE
@given(storage_worlds.bound_worlds(), incoming)
def test_bound_claims(world: World, pod: Manifest) -> None:
    check(world, pod)


@storage_worlds.LARGE
@given(storage_worlds.worlds(), incoming)
def test_a_cluster(world: World, pod: Manifest) -> None:
    check(world, pod)


@storage_worlds.LARGE
@given(storage_worlds.worlds(), incoming)
def test_without_its_pre_filter_the_filter_finds_out_itself(world: World, pod: Manifest) -> None:
    state, view, snapshot = CycleState(), storage_worlds.view(pod), world.snapshot
    first, verdicts = wanted(world, pod)
    codes = PLUGIN.filter(state, view, snapshot, snapshot.nodes.rows())
    for name, row in snapshot.nodes.row_of.items():
        code = PLUGIN.filter_one(state, view, snapshot, row)
        assert code == codes[snapshot.nodes.rows().tolist().index(row)]
        got = storage_worlds.spelled(PLUGIN.verdict(state, code)) if code else None
        assert got == (verdicts[name] if first is None else None if first[0] == "Skip" else first)


@settings(storage_worlds.LARGE, max_examples=50)
@given(storage_worlds.worlds(), incoming, st.lists(storage_worlds.steps(), min_size=1, max_size=6))
def test_the_token_tells_when_the_answer_may_be_another(
    world: World, pod: Manifest, changes: list[tuple[Any, ...]]
) -> None:
    view = storage_worlds.view(pod)
    for change in changes:
        token, before = PLUGIN.filter_token(view, world.snapshot), wanted(world, pod)
        world.carry_out(change)
        after = wanted(world, pod)
        if PLUGIN.filter_token(view, world.snapshot) == token:
            assert before[0] == after[0]
            assert change[0] == "node" or before[1] == after[1]
    check(world, pod)
