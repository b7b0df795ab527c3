"""Plays in which a wake-up was lost once, each by itself: whoever fits somewhere in the end is bound, without
the safety flush."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.objects import ZONE
from tests.unit.queue.small_world.kinds import TAINT, spec_of, term
from tests.unit.queue.small_world.world import LONGEST_LAG_S, World

SEEDS = range(20)
"""They decide who is faster."""


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


# -- the last pod of a kind that must stand together: whoever is of that kind may go anywhere once it is none
# any more


CHANGES: dict[str, Callable[[World, str], None]] = {
    "relabelled": lambda world, last: world.relabel(last, "red"),
    "deleted": lambda world, last: world.delete(last, f"uid-{last}"),
    "on a node that leaves the zone": lambda world, _: world.put_node("n0", {}, cpu=2),
}


@pytest.mark.parametrize(
    ("change", "closed"),
    [
        pytest.param("relabelled", {}, id="relabelled"),
        pytest.param("on a node that leaves the zone", {}, id="on a node that leaves the zone"),
        pytest.param("deleted", {"unschedulable": True}, id="drained from a cordoned node"),
        pytest.param("deleted", {"taints": [TAINT]}, id="drained from a tainted node"),
    ],
)
def test_the_end_of_the_last_of_its_kind_wakes_a_pod_that_must_stand_with_its_kind(
    change: str, closed: dict[str, Any]
) -> None:
    world = world_of(1)
    last = world.create(spec_of("plain", "blue", 2, tolerates=False), {"app": "blue"})
    world.rest()
    world.put_node("n0", {ZONE: "a"}, cpu=2, **closed)
    world.put_node("n1", {ZONE: "b"}, cpu=1)
    together = world.create(spec_of("together", "blue", 1, tolerates=False), {"app": "blue"})
    world.rest()
    assert (world.node_of(last), world.node_of(together)) == ("n0", "")
    CHANGES[change](world, last)
    world.rest()
    assert world.node_of(together) == "n1"


# -- a pod that placed pods keep out by their own anti-affinity: another node, or another zone of one, may
# take it


ARRIVALS: dict[str, Callable[[World], None]] = {
    "a node comes": lambda world: world.put_node("n2", {ZONE: "b"}, cpu=2),
    "a node goes to another zone": lambda world: world.put_node("n1", {ZONE: "b"}, cpu=2),
    "a node leaves its zone": lambda world: world.put_node("n1", {}, cpu=2),
}


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_a_node_out_of_reach_wakes_a_pod_that_placed_pods_keep_out_of_their_zone(arrival: str) -> None:
    world = world_of(1)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    alone = {"cpu": "1", "affinity": {"podAntiAffinity": {required: term("red", ZONE)}}}
    world.create(alone, {"app": "blue"})
    world.rest()
    world.put_node("n1", {ZONE: "a"}, cpu=2)
    red = world.create(spec_of("plain", "red", 1, tolerates=False), {"app": "red"})
    world.rest()
    assert not world.node_of(red)
    ARRIVALS[arrival](world)
    world.rest()
    assert world.node_of(red)
