"""VolumeBinding says of each node what a plain reading of its rules says."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.plugins.volume_binding.args import Args
from podyard.plugins.volume_binding.plugin import VolumeBinding
from tests.unit.plugins.volume_binding import plain, storage_worlds
from tests.unit.plugins.volume_binding.storage_worlds import Answer, Asked, Manifest, World

PLUGIN = VolumeBinding(Args())
incoming = storage_worlds.pods().map(lambda pod: storage_worlds.named(pod, "pod"))


def wanted(world: World, pod: Manifest) -> tuple[Answer, dict[str, Answer]]:
    first = plain.pre_filter(world, pod)
    return first, {name: plain.verdict(world, pod, name) for name in world.nodes} if first is None else {}


def check(world: World, pod: Manifest) -> None:
    asked = Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)
    assert (asked.pre_filter, asked.one_by_one) == wanted(world, pod)
    assert asked.at_once == asked.one_by_one


@storage_worlds.LARGE
@given(storage_worlds.worlds(), incoming)
def test_a_cluster(world: World, pod: Manifest) -> None:
    check(world, pod)


@storage_worlds.LARGE
@given(storage_worlds.bound_worlds(), incoming)
def test_bound_claims(world: World, pod: Manifest) -> None:
    check(world, pod)


@st.composite
def disk_worlds(draw: st.DrawFn) -> tuple[World, Manifest]:
    """Many volumes of one class for a pod with several unbound claims: they compete."""
    world = World()
    for name in storage_worlds.NODES:
        world.carry_out(("node", name, draw(storage_worlds.nodes(name))))
    for name in storage_worlds.CLASSES:
        world.carry_out(("object", "storageclasses", ("", name), draw(storage_worlds.classes(name))))
    for number in range(draw(st.integers(2, 8))):
        volume = draw(storage_worlds.volumes(f"v{number}"))
        volume["spec"]["storageClassName"] = "static"
        world.carry_out(("object", "persistentvolumes", ("", f"v{number}"), volume))
    names = storage_worlds.CLAIMS[: draw(st.integers(1, 4))]
    for name in names:
        claim = draw(storage_worlds.claims(name))
        claim["spec"] |= {"storageClassName": "static", "accessModes": ["ReadWriteOnce"]}
        claim["spec"].pop("volumeName", None)
        world.carry_out(("object", "persistentvolumeclaims", ("default", name), claim))
    used = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    volumes = [{"name": f"x{at}", "persistentVolumeClaim": {"claimName": name}} for at, name in enumerate(used)]
    return world, {"metadata": {"namespace": "default", "name": "pod", "uid": "pod"}, "spec": {"volumes": volumes}}


@storage_worlds.LARGE
@given(disk_worlds())
def test_claims_that_compete_for_volumes(case: tuple[World, Manifest]) -> None:
    check(*case)


@settings(storage_worlds.LARGE, max_examples=50)
@given(storage_worlds.worlds(), incoming, st.lists(storage_worlds.steps(), min_size=1, max_size=8))
def test_after_any_sequence_of_changes(world: World, pod: Manifest, changes: list[tuple[Any, ...]]) -> None:
    view = storage_worlds.view(pod)
    Asked(PLUGIN, view, world.snapshot)  # what is kept by version is there before the changes
    for change in changes:
        token, before = PLUGIN.filter_token(view, world.snapshot), wanted(world, pod)
        world.carry_out(change)
        after = wanted(world, pod)
        if PLUGIN.filter_token(view, world.snapshot) == token and change[0] != "node":
            assert before == after
        check(world, pod)
