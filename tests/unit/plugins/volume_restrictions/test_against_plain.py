"""VolumeRestrictions says of each node what a plain reading of its rules says."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.plugins.volume_restrictions.plugin import VolumeRestrictions
from tests.unit.plugins.volume_binding import storage_worlds
from tests.unit.plugins.volume_binding.storage_worlds import Asked, Manifest, World
from tests.unit.plugins.volume_restrictions import plain

PLUGIN = VolumeRestrictions()
incoming = storage_worlds.pods().map(lambda pod: storage_worlds.named(pod, "pod"))


def check(world: World, pod: Manifest) -> None:
    asked = Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)
    assert asked.pre_filter == plain.pre_filter(world, pod)
    if asked.pre_filter is None:
        in_use = plain.conflicts(world, pod)
        wanted = {name: plain.verdict(world, pod, name, in_use, world.on(name)) for name in world.nodes}
        assert asked.one_by_one == wanted
        assert asked.at_once == wanted


@storage_worlds.LARGE
@given(storage_worlds.worlds(), incoming)
def test_a_cluster(world: World, pod: Manifest) -> None:
    check(world, pod)


@settings(storage_worlds.LARGE, max_examples=50)
@given(storage_worlds.worlds(), incoming, st.lists(storage_worlds.steps(), min_size=1, max_size=8))
def test_after_any_sequence_of_changes(world: World, pod: Manifest, changes: list[tuple[Any, ...]]) -> None:
    Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)  # the indexes are there before the changes
    for change in changes:
        before = PLUGIN.filter_token(storage_worlds.view(pod), world.snapshot), plain.pre_filter(world, pod)
        world.carry_out(change)
        after = PLUGIN.filter_token(storage_worlds.view(pod), world.snapshot), plain.pre_filter(world, pod)
        assert before[0] != after[0] or before[1] == after[1]
    check(world, pod)


@settings(storage_worlds.LARGE, max_examples=50)
@given(storage_worlds.worlds(), incoming, st.data())
def test_a_trial_with_pods_more_and_less(world: World, pod: Manifest, data: st.DataObject) -> None:
    view, snapshot = storage_worlds.view(pod), world.snapshot
    state = CycleState()
    assume(PLUGIN.pre_filter(state, view, snapshot).status.ok)
    name = data.draw(st.sampled_from(tuple(world.nodes)))
    row, in_use = snapshot.nodes.row_of[name], plain.conflicts(world, pod)
    mates = {uid: mate for uid, (mate, where) in world.placed.items() if where == name}
    names = plain.one_pod_claims(world, pod)
    assert not isinstance(names, str)
    trial_state = state.clone()
    with snapshot.nodes.trial(row) as trial:
        for uid in data.draw(st.sets(st.sampled_from(tuple(mates)))) if mates else ():
            PLUGIN.remove_pod(trial_state, view, trial.remove(uid), row, snapshot)
            in_use -= sum(name in names for name in plain.claim_names(mates.pop(uid)))  # by name alone: the quirk
        for number in range(data.draw(st.integers(0, 2))):
            more = storage_worlds.named(data.draw(storage_worlds.pods(other_space=True)), f"more{number}")
            added = storage_worlds.view(more)
            trial.add(added)
            PLUGIN.add_pod(trial_state, view, added, row, snapshot)
            mates[added.uid] = more
            in_use += sum(name in names for name in plain.claim_names(more))
        code = PLUGIN.filter_one(trial_state, view, snapshot, row)
        got = storage_worlds.spelled(PLUGIN.verdict(trial_state, code)) if code else None
        assert got == plain.verdict(world, pod, name, in_use, list(mates.values()))
    check(world, pod)


def test_the_kept_state_is_not_touched_by_a_trial() -> None:
    world = World()
    world.carry_out(("node", "n0", {"metadata": {"name": "n0"}, "spec": {}, "status": {}}))
    claim = {"metadata": {"name": "c0", "namespace": "default"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    world.carry_out(("object", "persistentvolumeclaims", ("default", "c0"), claim))
    user = {
        "metadata": {"namespace": "default"},
        "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c0"}}]},
    }
    world.carry_out(("pod", "p0", user, "n0"))
    view, state = storage_worlds.view(storage_worlds.named(user, "pod")), CycleState()
    assert PLUGIN.pre_filter(state, view, world.snapshot).status.ok
    clone = state.clone()
    PLUGIN.remove_pod(clone, view, storage_worlds.view(world.placed["p0"][0], "n0"), 0, world.snapshot)
    assert PLUGIN.filter_one(clone, view, world.snapshot, 0) == 0
    assert PLUGIN.filter_one(state, view, world.snapshot, 0) != 0
