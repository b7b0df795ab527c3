"""Classes and indexes of parked pods never change an answer: the same play on a queue that asks every pod's
hints.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent, HintResult, OwnRegistration, Registration
from podyard.objects.core import Node, Pod
from podyard.plugins.hint_indexes import KeyIndex, only_itself
from podyard.proto.actions import ActionType
from podyard.queue import records
from podyard.queue.core import waking
from podyard.queue.core.effects import Judged
from podyard.queue.core.gates import Gates, NamedGate
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import NO_OBSTACLES, QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.support.objects import typed_node, typed_pod

NODES = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
GONE_TOO = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.DELETE)
SHAPES = ("red", "blue", "")
asked: list[str] = []
"""Pods whose hint was called."""


def shape_of(pod: Pod) -> str:
    return pod.metadata.labels.get("shape", "")


def colours(old: object | None, new: object | None) -> set[str]:
    return {key for one in (old, new) if isinstance(one, Node | Pod) for key in one.metadata.labels}


def shape_hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
    asked.append(pod.metadata.name)
    wanted = shape_of(pod)
    if not wanted:
        raise ValueError("a pod without a shape is more than this hint can bear")
    return events.queue("its colour") if wanted in colours(old, new) else events.skip("another colour")


def name_hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
    return events.queue("named") if pod.metadata.name in colours(old, new) else events.skip("not named")


def own_hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """As hints that know the pod itself by its uid."""
    assert isinstance(new, Pod)
    return events.queue("itself") if new.metadata.uid == pod.metadata.uid else events.skip("another pod")


def shape_index() -> KeyIndex[Any]:
    def keys_of(signature: str) -> Iterable[Hashable] | None:
        return [signature] if signature else None  # where the hint raises, which counts as Queue

    return KeyIndex(keys_of, colours)


def obstacle_hint(pod: Pod, obstacles: tuple[str, ...], old: object | None, new: object | None) -> HintResult:
    """One of a plugin's own, which knows what it said to stand in the pod's way."""
    asked.append(pod.metadata.name)
    found = colours(old, new).intersection(obstacles)
    return events.queue(f"no longer {min(found)}") if found else events.skip(f"still {shape_of(pod)}")


def obstacle_index() -> KeyIndex[Any]:
    return KeyIndex(lambda read: read.obstacles, colours)


class FaultyIndex:
    """Whose author was careless: it fails on some pods, or on some events."""

    def __init__(self) -> None:
        self._kept: set[Hashable] = set()

    def add(self, signature: Hashable) -> None:
        if signature == "blue":
            raise ValueError("it cannot bear blue")
        self._kept.add(signature)

    def remove(self, signature: Hashable) -> None:
        self._kept.remove(signature)

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        if "a" in colours(old, new):
            raise ValueError("it cannot bear a")
        return [one for one in self._kept if not one or one in colours(old, new)]


REGISTRY = EventRegistry(
    {
        "Shape": (Registration(NODES, shape_hint, shape_index),),
        "Plain": (Registration(ClusterEvent(events.NODE, ActionType.ADD), shape_hint),),
        "Name": (Registration(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL), name_hint),),
        "Own": (Registration(ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL), own_hint, only_itself),),
        "Faulty": (Registration(NODES, shape_hint, FaultyIndex),),
        "Gate": (Registration(NODES, shape_hint, shape_index),),
    },
    own={
        "Shape": (OwnRegistration(GONE_TOO, obstacle_hint, obstacle_index),),
        "Name": (OwnRegistration(GONE_TOO, obstacle_hint),),
    },
)
SIGNERS: dict[str, dict[str, Callable[[Pod], Hashable]]] = {
    "p": {"Shape": shape_of, "Plain": shape_of, "Gate": shape_of, "Faulty": shape_of, "Own": lambda pod: None}
}


def is_gated(pod: Pod) -> str | None:
    return "gated" if "gate" in pod.metadata.labels else None


def new_queue(signers: Any) -> SchedulingQueue:
    return SchedulingQueue({"p": REGISTRY}, Gates({"p": [NamedGate("Gate", is_gated)]}), signers=signers)


@cache
def pod_of(name: str, shape: str, *labels: str) -> Pod:
    own = {"shape": shape} | dict.fromkeys(labels, "")
    return typed_pod(name, labels=own)


@cache
def node_with(*labels: str) -> Node:
    return typed_node("n", labels=dict.fromkeys(labels, ""))


NAMES = st.sampled_from(["a", "b", "c"])
SHAPE = st.sampled_from(SHAPES)
PLUGINS = st.one_of(
    st.just({"Shape"}),
    st.sets(st.sampled_from(["Shape", "Plain", "Name", "Own", "Faulty", "Gate"]), min_size=1, max_size=2),
)
LABELS = st.one_of(st.sampled_from([{"red"}, {"blue"}]), st.sets(st.sampled_from(["red", "blue", "a", "b"])))
OBSTACLES = st.dictionaries(
    st.sampled_from(["Shape", "Name", "Plain"]),
    st.lists(st.sampled_from(["red", "blue", "a"]), min_size=1, max_size=2, unique=True).map(tuple),
)
PARK = st.tuples(st.just("park"), NAMES, SHAPE, PLUGINS, st.booleans(), OBSTACLES)
STEPS = st.one_of(
    PARK,
    PARK,
    st.tuples(st.just("relabel"), NAMES, SHAPE, st.booleans()),
    st.tuples(
        st.just("node"), LABELS, st.sampled_from([ActionType.ADD, ActionType.UPDATE_NODE_LABEL, ActionType.DELETE])
    ),
    st.tuples(st.just("node"), LABELS, st.just(ActionType.ADD)),
    st.tuples(st.just("pod"), NAMES, LABELS),
    st.tuples(st.just("missed"), LABELS),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("activate"), NAMES),
)


class Play:
    """One queue and what happens to it."""

    def __init__(self, signers: Any) -> None:
        self.queue = new_queue(signers)
        self.now = 0.0

    def step(self, step: tuple[Any, ...]) -> dict[str, Any]:
        self.now += 20.0
        getattr(self, step[0])(*step[1:])
        effects = [one for one in self.queue.take_effects() if isinstance(one, Judged)]
        while self.queue.has_ready():
            popped = self.queue.pop()
            assert popped is not None
            self.queue.delete(popped.uid)
            self.queue.done(popped.uid)
        return {
            "pools": {uid: (pod.pool, pod.gating_plugin) for uid, pod in self.queue.pods.items()},
            "moved": [
                [(m.uid, m.to, m.plugin, m.own, [(c.reason, c.own) for c in m.hints]) for m in one.moved]
                for one in effects
            ],
        }

    def park(
        self,
        name: str,
        shape: str,
        plugins: set[str],
        pending: bool,
        obstacles: Mapping[str, tuple[str, ...]] = NO_OBSTACLES,
    ) -> None:
        if f"uid-{name}" in self.queue.pods:
            return
        pod = pod_of(name, shape)
        queued = QueuedPod(pod, key=pod.key, uid=pod.metadata.uid, priority=0, profile="p", timestamp=self.now)
        self.queue.add(queued, self.now)
        assert self.queue.pop() is queued
        first = sorted(plugins)[:1] if pending else []
        named = {plugin: obstacles[plugin] for plugin in plugins & obstacles.keys()}
        self.queue.fail(queued.uid, self.now, unschedulable=plugins - set(first), pending=first, obstacles=named)

    def relabel(self, name: str, shape: str, gate: bool) -> None:
        queued = self.queue.pods.get(f"uid-{name}")
        if queued is None:
            return
        old, new = queued.pod, pod_of(name, shape, *(["gate"] if gate else []))
        event = ClusterEvent(events.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
        self.queue.update(queued.uid, old, new, [Incoming(event=event, old=old, new=new)], self.now, priority=0)

    def node(self, labels: set[str], action: ActionType) -> None:
        node = node_with(*sorted(labels))
        self.queue.move_all(Incoming(event=ClusterEvent(events.NODE, action), new=node), self.now)

    def pod(self, name: str, labels: set[str]) -> None:
        event = ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
        pod = pod_of(name, "", *sorted(labels))
        self.queue.move_all(Incoming(event=event, old=pod, new=pod), self.now)

    def missed(self, labels: set[str]) -> None:
        node = node_with()
        event = ClusterEvent(events.NODE, ActionType.ALL)
        self.queue.move_all(Incoming(event=event, new=node, missed=True), self.now)

    def delete(self, name: str) -> None:
        self.queue.delete(f"uid-{name}")

    def activate(self, name: str) -> None:
        self.queue.activate(f"uid-{name}", self.now)


@settings(max_examples=1000, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=30), st.sampled_from([0, 0, 1, 256]))
def test_an_index_never_changes_an_answer(steps: list[tuple[Any, ...]], named: int) -> None:
    shared, plain = Play(SIGNERS), Play({})
    with pytest.MonkeyPatch.context() as patch:
        for step in steps:
            patch.setattr(waking, "NAMED_SKIPS", named)
            found = shared.step(step)
            patch.setattr(waking, "NAMED_SKIPS", 10**6)
            assert found == plain.step(step)


def parked(count: int, shapes: int) -> Play:
    play = Play(SIGNERS)
    for number in range(count):
        play.park(f"p{number}", f"shape{number % shapes}", {"Shape"}, pending=False)
    play.queue.take_effects()
    asked.clear()
    return play


def test_pods_of_one_shape_are_asked_once() -> None:
    play = parked(200, shapes=4)
    play.node({"none of them"}, ActionType.ADD)
    assert len(asked) == 4
    judged = play.queue.take_effects()[0]
    assert isinstance(judged, Judged)
    record = records.requeue_record(judged)
    assert len(record.skipped) == 200
    assert {skip.hints[0].reason for skip in record.skipped} == {"another colour"}


def test_above_what_a_record_names_the_index_says_who_is_asked() -> None:
    play = parked(1000, shapes=100)
    play.node({"shape7", "else"}, ActionType.ADD)
    assert len(asked) == 1
    judged = play.queue.take_effects()[0]
    assert isinstance(judged, Judged)
    assert {play.queue.pods[move.uid].pod.metadata.labels["shape"] for move in judged.moved} == {"shape7"}
    assert len(judged.moved) == 10
    record = records.requeue_record(judged)
    assert [(one.plugin, one.reason, one.pods) for one in record.skipped_counts] == [("Shape", records.NOT_ASKED, 990)]


def test_an_index_follows_what_is_parked_after_its_first_use() -> None:
    play = parked(300, shapes=3)
    play.node({"none of them"}, ActionType.ADD)
    play.park("late", "violet", {"Shape"}, pending=False)
    play.queue.take_effects()
    asked.clear()
    play.node({"violet"}, ActionType.ADD)
    assert asked == ["late"]
    play.delete("late")
    play.node({"violet"}, ActionType.ADD)
    assert asked == ["late"]


def test_the_pod_that_an_event_is_about_is_asked_whatever_the_index_says() -> None:
    play = Play(SIGNERS)
    for number in range(300):
        play.park(f"p{number}", "red", {"Own"}, pending=False)
    play.queue.take_effects()
    play.pod("p7", {"red"})
    judged = play.queue.take_effects()[0]
    assert isinstance(judged, Judged)
    assert [move.uid for move in judged.moved] == ["uid-p7"]


def of_obstacles(count: int, obstacle: Callable[[int], str]) -> Play:
    """Pods of one shape, each with one obstacle."""
    play = Play(SIGNERS)
    for number in range(count):
        play.park(f"p{number}", "red", {"Shape"}, pending=False, obstacles={"Shape": (obstacle(number),)})
    play.queue.take_effects()
    asked.clear()
    return play


def test_own_hints_are_asked_once_for_pods_alike_and_after_those_of_the_reference() -> None:
    play = of_obstacles(200, lambda number: "blue" if number % 2 else "violet")
    play.node({"blue"}, ActionType.ADD)
    assert len(asked) == 4, "of each obstacle one pod, by both hints"
    record = records.requeue_record(cast("Judged", play.queue.take_effects()[0]))
    assert {(move.plugin, move.own) for move in record.moved} == {("Shape", True)}
    assert [(hint.answer, hint.own) for hint in record.moved[0].hints] == [("QueueSkip", False), ("Queue", True)]
    assert len(record.moved) == len(record.skipped) == 100
    moved = play.queue.pods["uid-p1"].woken_by
    assert moved is not None
    assert (moved.plugin, moved.own, moved.reason) == ("Shape", True, "no longer blue")


def test_an_own_hint_is_not_asked_where_one_of_the_reference_helps() -> None:
    play = of_obstacles(1, lambda _: "red")
    play.node({"red"}, ActionType.ADD)
    assert asked == ["p0"]
    (move,) = records.requeue_record(cast("Judged", play.queue.take_effects()[0])).moved
    assert (move.plugin, move.own) == ("Shape", False)


def test_own_hints_have_indexes_of_their_own() -> None:
    play = of_obstacles(1000, lambda number: f"colour{number % 100}")
    play.node({"colour7"}, ActionType.DELETE)
    assert len(asked) == 1
    record = records.requeue_record(cast("Judged", play.queue.take_effects()[0]))
    assert len(record.moved) == 10


def test_what_stood_in_a_pods_way_is_forgotten_with_its_rejectors() -> None:
    play = of_obstacles(1, lambda _: "blue")
    play.activate("p0")
    popped = play.queue.pop()
    assert popped is not None
    play.queue.fail(popped.uid, play.now, unschedulable=["Shape"])
    play.now += 20.0
    play.node({"blue"}, ActionType.DELETE)
    assert popped.pool == "unschedulable"


def test_an_event_that_only_own_hints_know_is_kept_for_a_pod_in_flight() -> None:
    play = of_obstacles(1, lambda _: "blue")
    play.activate("p0")
    popped = play.queue.pop()
    assert popped is not None
    play.node({"blue"}, ActionType.DELETE)
    play.queue.fail(popped.uid, play.now, unschedulable=["Shape"], obstacles={"Shape": ("blue",)})
    assert popped.pool == "backoffQ"
    assert popped.woken_by is not None
    assert popped.woken_by.own
