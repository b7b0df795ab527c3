"""Pods that kube-scheduler v1.36 would leave parked for five minutes are retried by plugins' own hints, which
a setting switches off.

Each play runs to its rest twice: with own hints the pod that waits must run, and its last attempt name who
woke it; without, it must stay.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest

from podyard.proto.decisions import WakeUp
from podyard.queue import assembly
from podyard.queue.core import waking
from podyard.queue.core.effects import AttemptEnded
from tests.support.objects import HOSTNAME, ZONE
from tests.unit.queue.small_world import queue_part
from tests.unit.queue.small_world.surroundings import profile_of
from tests.unit.queue.small_world.world import World

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT: Final = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
ALIKE: Final[dict[str, Any]] = {"cpu": "1"}


def term(app: str, key: str = ZONE) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    """What a pod with this required affinity wants, for the builder of pods."""
    return {"cpu": "1", "affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    """The same with required anti-affinity."""
    return {"cpu": "1", "affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


class Told(World):
    """Remembers what woke each pod for its last attempt, by name."""

    def __init__(self) -> None:
        self.woken_by: dict[str, WakeUp | None] = {}
        super().__init__(seed=1, schedulers=1)

    def attempt_ended(self, ended: AttemptEnded) -> None:
        super().attempt_ended(ended)
        self.woken_by[ended.pod.name] = ended.woken_by


Play = Callable[[Told], tuple[str, Callable[[], object]]]
"""Sets the stage; returns the pod that waits, and what helps it."""


def among_its_kind(world: Told, **spec: Any) -> tuple[str, str]:
    """A pod of a group that keeps together in zone a, on n1, which then takes no other; and one that waits,
    with room in zone b.
    """
    world.put_node("n1", {ZONE: "a"}, cpu=4)
    first = world.create(near(term("red")), {"app": "red"})
    world.rest()
    world.put_node("n1", {ZONE: "a"}, cpu=4, **spec)
    world.put_node("n2", {ZONE: "b"}, cpu=4)
    return first, world.create(near(term("red")), {"app": "red"})


def relabelled(world: Told, name: str, app: str) -> None:
    pod = world.log.documents["pods", name]
    world.log.put_object("pods", {**pod, "metadata": {**pod["metadata"], "labels": {"app": app}}})


def the_last_of_its_kind_is_drained(world: Told) -> tuple[str, Callable[[], object]]:
    first, waits = among_its_kind(world, unschedulable=True)
    return waits, lambda: world.delete(first, f"uid-{first}")


def the_last_of_its_kind_ends_on_a_tainted_node(world: Told) -> tuple[str, Callable[[], object]]:
    first, waits = among_its_kind(world, taints=[TAINT])
    return waits, lambda: world.finish(first)


def the_last_of_its_kind_is_relabelled(world: Told) -> tuple[str, Callable[[], object]]:
    first, waits = among_its_kind(world, taints=[TAINT])
    return waits, lambda: relabelled(world, first, "blue")


def the_node_of_its_kind_loses_the_topology_key(world: Told) -> tuple[str, Callable[[], object]]:
    _, waits = among_its_kind(world, taints=[TAINT])
    return waits, lambda: world.put_node("n1", {}, cpu=4, taints=[TAINT])


def the_node_of_its_kind_goes(world: Told) -> tuple[str, Callable[[], object]]:
    _, waits = among_its_kind(world, taints=[TAINT])
    return waits, lambda: world.log.remove("nodes", "n1")


def kept_out(world: Told) -> str:
    """A pod keeps the blue ones out of zone a, in which both nodes are; one of those waits."""
    world.put_node("n1", {ZONE: "a"}, cpu=4)
    world.create(apart(term("blue")), {"app": "red"})
    world.rest()
    world.put_node("n2", {ZONE: "a"}, cpu=4)
    return world.create(ALIKE, {"app": "blue"})


def a_node_comes(world: Told) -> tuple[str, Callable[[], object]]:
    return kept_out(world), lambda: world.put_node("n3", {ZONE: "b"}, cpu=4)


def a_node_changes_its_domain(world: Told) -> tuple[str, Callable[[], object]]:
    return kept_out(world), lambda: world.put_node("n2", {ZONE: "b"}, cpu=4)


def the_node_that_keeps_out_changes_its_domain(world: Told) -> tuple[str, Callable[[], object]]:
    return kept_out(world), lambda: world.put_node("n1", {ZONE: "b"}, cpu=4)


def the_node_that_keeps_out_loses_the_topology_key(world: Told) -> tuple[str, Callable[[], object]]:
    return kept_out(world), lambda: world.put_node("n1", {}, cpu=4)


def one_of_several_that_it_is_apart_from_goes(world: Told) -> tuple[str, Callable[[], object]]:
    world.put_node("n1", {ZONE: "a"}, cpu=4)
    first = world.create(ALIKE, {"app": "red"})
    world.rest()
    return world.create(apart(term("red", HOSTNAME), term("blue", HOSTNAME)), {}), lambda: world.finish(first)


def one_goes_that_is_apart_from_several(world: Told) -> tuple[str, Callable[[], object]]:
    world.put_node("n1", {ZONE: "a"}, cpu=4)
    first = world.create(apart(term("red", HOSTNAME), term("blue", HOSTNAME)), {})
    world.rest()
    return world.create(ALIKE, {"app": "red"}), lambda: world.finish(first)


def the_emptiest_zone_counts_no_more(world: Told) -> tuple[str, Callable[[], object]]:
    """Zone b has the fewest, and no room: it counts because its node is one that the pods choose."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "red"}},
    }
    spec = {"cpu": "1", "topologySpreadConstraints": [spread], "nodeSelector": {"disk": "ssd"}}
    world.put_node("n1", {ZONE: "a", "disk": "ssd"}, cpu=4)
    world.create(spec, {"app": "red"})
    world.rest()
    world.put_node("n2", {ZONE: "b", "disk": "ssd"}, cpu=1)
    world.create({"cpu": "1", "nodeSelector": {ZONE: "b"}}, {})
    world.rest()
    return world.create(spec, {"app": "red"}), lambda: world.put_node("n2", {ZONE: "b"}, cpu=1)


PLAYS: Final[tuple[Play, ...]] = (
    the_last_of_its_kind_is_drained,
    the_last_of_its_kind_ends_on_a_tainted_node,
    the_last_of_its_kind_is_relabelled,
    the_node_of_its_kind_loses_the_topology_key,
    the_node_of_its_kind_goes,
    a_node_comes,
    a_node_changes_its_domain,
    the_node_that_keeps_out_changes_its_domain,
    the_node_that_keeps_out_loses_the_topology_key,
    one_of_several_that_it_is_apart_from_goes,
    one_goes_that_is_apart_from_several,
    the_emptiest_zone_counts_no_more,
)


@pytest.mark.parametrize("play", PLAYS, ids=[play.__name__ for play in PLAYS])
@pytest.mark.parametrize("by_index", [False, True], ids=["each pod asked", "by index"])
def test_who_waits_is_woken(play: Play, by_index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_index:  # as with so many parked pods that a record does not name them
        monkeypatch.setattr(waking, "NAMED_SKIPS", 0)
    world = Told()
    waits, helps = play(world)
    world.rest()
    assert not world.node_of(waits)
    helps()
    world.rest()
    assert world.node_of(waits)
    woken_by = world.woken_by[waits]
    assert woken_by is not None
    spreads = play is the_emptiest_zone_counts_no_more
    assert (woken_by.plugin, woken_by.own) == ("PodTopologySpread" if spreads else "InterPodAffinity", True)
    assert woken_by.reason


@pytest.mark.parametrize("play", PLAYS, ids=[play.__name__ for play in PLAYS])
def test_without_own_hints_who_waits_stays_parked_as_in_the_reference(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profile_of("queue")
    monkeypatch.setattr(queue_part, "_registered", assembly.registries([profile], own_hints=False))
    world = Told()
    waits, helps = play(world)
    world.rest()
    helps()
    with pytest.raises(AssertionError, match=f"uid-{waits} fits .* and stays"):
        world.rest()
