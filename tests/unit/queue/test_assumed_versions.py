"""Others are told of a pod as it was assumed: by labels that it has lost since, it kept them out until its
binding or its end there.
"""

import msgspec
import pytest

from podyard.cluster.pods import PodView
from podyard.objects.core import Pod
from podyard.proto.placement import BoundPod
from podyard.queue.core.effects import Judged
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import KEPT_VERSIONS, QueuedPod
from tests.support import objects
from tests.unit.queue.test_changes import Play

POPPED_AT = 10
"""Sequence of the version that is handed out."""


class Relabelled(Play):
    """Pod `a` was popped with label `old`; `waiting`, named so, is kept out by that label of it."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = self.parked("old")
        self.other = self.parked("other")
        self.last = self.seen("old", sequence=POPPED_AT)
        self.apply(None, self.last)
        self.popped = self.take()

    def parked(self, name: str) -> QueuedPod:
        self.apply(None, objects.view(objects.pod(name, uid=f"uid-{name}"), 1))
        self.done(self.take(), "unschedulable", unschedulable_plugins=("OnPods",))
        self.now += 60  # no backoff holds who is woken
        self.queue.take_effects()
        return self.queue.pods[f"uid-{name}"]

    def seen(self, *labels: str, sequence: int, bound: BoundPod | None = None) -> PodView:
        document = objects.pod("a", uid="uid-a", labels=dict.fromkeys(labels, ""))
        return objects.view(document, sequence, bound=bound)

    def relabel(self, *labels: str, sequence: int, gap: bool = False) -> None:
        old, self.last = self.last, self.seen(*labels, sequence=sequence)
        self.apply(old, self.last, gap=gap)

    def bind(self, *, decided_at: int, attempt: str = "") -> None:
        bound = BoundPod(
            namespace="default", name="a", uid="uid-a", node="n1", attempt=attempt or self.popped.attempt, decided_at=decided_at
        )  # fmt: skip
        self.queue.take_effects()
        labels = tuple(self.last.labels)
        self.apply(self.last, self.seen(*labels, sequence=self.last.sequence, bound=bound), bound=True)

    def told(self) -> list[Incoming]:
        return [one.incoming for one in self.queue.take_effects() if isinstance(one, Judged)]


@pytest.fixture
def play() -> Relabelled:
    return Relabelled()


def labels_of(one: object) -> list[str]:
    assert isinstance(one, Pod)
    assert one.spec.node_name == "n1", "hints see the pod where it was assumed"
    return sorted(one.metadata.labels)


# -- bindings


@pytest.mark.parametrize("known", [False, True], ids=["before the queue hears of the assumption", "after it"])
def test_a_binding_with_other_labels_is_told_as_a_change_from_those_that_were_assumed(
    play: Relabelled, known: bool
) -> None:
    if known:
        play.done(play.popped, "scheduled", node="n1")
    play.relabel("new", sequence=20)
    play.bind(decided_at=15)
    added, changed = play.told()
    assert (added.event.label, changed.event.label) == ("AssignedPodAdd", "AssignedPodUpdatePodLabel")
    assert (labels_of(changed.old), labels_of(changed.new)) == (["old"], ["new"])
    assert not changed.missed


def test_a_binding_by_the_latest_version_is_an_addition_and_nothing_else(play: Relabelled) -> None:
    play.relabel("new", sequence=20)
    play.bind(decided_at=20)
    assert [one.event.label for one in play.told()] == ["AssignedPodAdd"]


def test_of_several_versions_the_one_that_was_decided_counts(play: Relabelled) -> None:
    for sequence, label in ((20, "between"), (30, "new")):
        play.relabel(label, sequence=sequence)
    play.bind(decided_at=25)
    assert labels_of(play.told()[-1].old) == ["between"]


def test_an_update_that_changes_nothing_for_others_is_a_general_one(play: Relabelled) -> None:
    play.relabel("old", sequence=20)
    play.bind(decided_at=15)
    assert [one.event.label for one in play.told()] == ["AssignedPodAdd", "AssignedPodUpdate"]


@pytest.mark.parametrize(
    "how", ["versions were missed", "it was given up and popped again", "it changed too often", "its attempt failed"]
)
def test_a_binding_by_a_version_that_is_not_known_counts_as_a_change_that_was_missed(
    play: Relabelled, how: str
) -> None:
    last = 20
    match how:
        case "versions were missed":
            play.relabel("new", sequence=last, gap=True)
        case "it was given up and popped again":
            play.done(play.popped, "error")
            play.relabel("new", sequence=last)
            play.now += 5
            play.leader.tick(play.now)
            play.take()
        case "it changed too often":
            for last in range(20, 22 + KEPT_VERSIONS):
                play.relabel(f"new{last}", sequence=last)
        case _:
            play.done(play.popped, "error")
            play.relabel("new", sequence=last)
    play.bind(decided_at=15)
    changed = play.told()[-1]
    assert (changed.event.label, changed.missed, changed.old) == ("AssignedPodUpdate", True, None)
    assert play.other.pool != "unschedulable", "no hint can look at it: all say Queue"


def test_nobody_had_assumed_a_pod_that_somebody_else_placed(play: Relabelled) -> None:
    play.relabel("new", sequence=20)
    bound = BoundPod(namespace="default", name="a", uid="uid-a", node="n1", forced=True)
    play.queue.take_effects()
    play.apply(play.last, play.seen("new", sequence=20, bound=bound), bound=True)
    assert [one.event.label for one in play.told()] == ["AssignedPodAdd"]


# -- assumptions that are dropped


def drop(play: Relabelled, *, version: int, again: bool = False) -> None:
    """:param again: the decision is made again within the attempt"""
    popped = play.popped
    if again:
        popped = msgspec.structs.replace(popped, attempt=f"{popped.attempt}/1")
    play.queue.take_effects()
    play.done(popped, "bindError", assumed="n1", version=version)


@pytest.mark.parametrize("again", [False, True], ids=["for good", "to be decided again"])
def test_a_dropped_assumption_is_told_with_the_labels_that_were_assumed(play: Relabelled, again: bool) -> None:
    play.done(play.popped, "scheduled", node="n1")
    play.relabel("new", sequence=20)
    drop(play, version=POPPED_AT, again=again)
    (told,) = play.told()
    assert (told.event.label, labels_of(told.old), told.missed) == ("AssignedPodDelete", ["old"], False)
    assert play.waiting.pool == "activeQ"
    assert play.other.pool == "unschedulable", "it is nothing to one that waits for something else"


def test_a_conflict_of_a_decision_that_is_made_again_wakes_nobody_for_an_untrue_reason(play: Relabelled) -> None:
    play.done(play.popped, "scheduled", node="n1")
    drop(play, version=POPPED_AT, again=True)
    (told,) = play.told()
    assert not told.missed
    assert play.other.pool == "unschedulable"


@pytest.mark.parametrize("version", [0, 30], ids=["its scheduler does not say", "the queue has not read so far"])
def test_a_dropped_assumption_of_a_version_that_is_not_known_wakes_whoever_listens(
    play: Relabelled, version: int
) -> None:
    drop(play, version=version)
    (told,) = play.told()
    assert (told.missed, told.old) == (True, None)
    assert play.other.pool != "unschedulable"
