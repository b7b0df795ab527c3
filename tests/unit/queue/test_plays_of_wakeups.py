"""Plays in which a wake-up was lost once, each by itself: whoever fits somewhere in the end is bound, without the safety flush."""

import pytest

from tests.support.objects import ZONE
from tests.unit.queue.small_world.kinds import spec_of
from tests.unit.queue.small_world.world import LONGEST_LAG_S, World

SEEDS = range(20)
"""They decide who is faster: not every seed plays what the test is about, but many do."""


def world_of(seed: int, *, schedulers: int = 1) -> World:
    """One node of two CPUs in zone a."""
    world = World(seed, schedulers)
    world.put_node("n0", {ZONE: "a"}, cpu=2)
    world.rest()
    return world


def attempts(world: World, name: str) -> int:
    """How many attempts for a pod did not bind."""
    record = world.last_records.get(f"uid-{name}")
    return 0 if record is None else record.number


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_relabelled_between_its_pop_and_its_binding_wakes_whom_its_labels_kept_out(seed: int) -> None:
    world = world_of(seed)
    world.queue.reader.lag_s = world.schedulers[0].reader.lag_s = 0.0
    world.binder.reader.lag_s = LONGEST_LAG_S
    red = world.create(spec_of("plain", "red", 1, tolerates=False), {"app": "red"})
    apart = world.create(spec_of("apart", "red", 1, tolerates=False), {"app": "blue"})
    while not attempts(world, apart):
        world.clock.run(0.01)
    assert not world.node_of(red), "its scheduler has only assumed it"
    world.relabel(red, "blue")
    world.rest()
    assert world.node_of(apart) == "n0"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_that_was_bound_and_has_ended_while_the_queue_heard_nothing_leaves_it(seed: int) -> None:
    world = world_of(seed)
    pod = world.create(spec_of("plain", "red", 1, tolerates=False), {"app": "red"})
    while not world.handed:
        world.clock.run(0.01)
    world.queue.cut_off(3.0)
    world.clock.run(1.5)
    assert world.node_of(pod) == "n0"
    world.finish(pod)
    world.clock.run(1.0)
    assert not world.node_of(pod), "its binding is released before the queue lists"
    world.rest()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_whose_binding_is_lost_with_the_last_writes_is_bound_again(seed: int) -> None:
    world = world_of(seed)
    pod = world.create(spec_of("plain", "red", 1, tolerates=False), {"app": "red"})
    world.rest()
    world.lose_binding(pod)
    assert not world.node_of(pod)
    world.rest()
    assert world.node_of(pod) == "n0"
