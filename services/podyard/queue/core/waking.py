"""Which parked pods an event is for, and what the hints say of each. Moves nobody: the queue carries it out.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (movePodsToActiveOrBackoffQueue, isPodWorthRequeuing).
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from podyard.objects.core import Pod
from podyard.queue.core.effects import NotAsked, Skip
from podyard.queue.core.hints import Hints, Strategy, Verdict
from podyard.queue.core.messages import Incoming
from podyard.queue.core.parked import Parked, ParkedClass, Shelf
from podyard.queue.core.queued_pod import QueuedPod, Watcher

NAMED_SKIPS: Final = 256
"""Skipped pods that a record names; above that it counts by plugin and reason
(docs/rules.md, named-skips-are-bounded).
"""

Standing: TypeAlias = tuple[str, Watcher, Shelf]
"""Profile, who listens, and the pods that are parked for it."""


class Meant(NamedTuple):
    """Which parked pods an event is for: those of at most `max_priority` (`None`: any), but `except_uid`."""

    max_priority: int | None = None
    except_uid: str = ""

    def __contains__(self, pod: object) -> bool:
        return (
            isinstance(pod, QueuedPod)
            and pod.uid != self.except_uid
            and (self.max_priority is None or pod.priority <= self.max_priority)
        )


EVERYBODY: Final = Meant()


class Woken:
    """What an event does to parked pods."""

    __slots__ = ("moving", "not_asked", "skipped")

    def __init__(self, not_asked: tuple[NotAsked, ...] = ()) -> None:
        self.moving: list[tuple[QueuedPod, Verdict]] = []
        """Pods that go, in the order of their parking, and what decided it."""
        self.skipped: list[Skip] = []
        self.not_asked = not_asked

    def __bool__(self) -> bool:
        return bool(self.moving or self.skipped or self.not_asked)

    def add(self, pods: Sequence[QueuedPod], verdict: Verdict) -> None:
        """The hints say this of all these pods."""
        if verdict.strategy is not Strategy.SKIP:
            self.moving += [(pod, verdict) for pod in pods]
            return
        refs = [pod.ref for pod in pods] if len(pods) <= NAMED_SKIPS else ()
        self.skipped.append(Skip(pods=tuple(refs), count=len(pods), calls=verdict.calls))


def one_by_one(hints: Hints, pods: Iterable[QueuedPod], incoming: Incoming) -> Woken:
    """Ask about each of these pods for itself."""
    woken = Woken()
    for pod in pods:
        woken.add([pod], hints.verdict(pod, incoming))
    return woken


def by_wildcard(parked: Parked, hints: Hints, incoming: Incoming, meant: Meant) -> Woken:
    """An event that stands for all there are: for everybody but gated pods whose plugin does not listen to
    it."""
    listeners = hints.listeners(incoming.event, incoming.missed)
    pods = [pod for pod in parked if not pod.gating_plugin or pod.gating_plugin in listeners.get(pod.profile, ())]
    return one_by_one(hints, pods if meant == EVERYBODY else [pod for pod in pods if pod in meant], incoming)


def by_class(parked: Parked, hints: Hints, incoming: Incoming, meant: Meant) -> Woken:
    """Ask about each class of pods once, and about the pod that the event is about for itself."""
    itself = _about_itself(parked, incoming)
    concerned, not_asked = _concerned(parked, hints, incoming, itself)
    woken, everybody = Woken(not_asked), meant == EVERYBODY
    for one in concerned:
        pods = [pod for pod in one.pods.values() if pod is not itself and (everybody or pod in meant)]
        if itself is not None and itself.uid in one.pods and itself in meant:
            woken.add([itself], hints.verdict(itself, incoming))
        if pods:
            woken.add(pods, hints.verdict(pods[0], incoming))
    if len(concerned) > 1:
        woken.moving.sort(key=lambda entry: entry[0].park_order)
    return woken


def _about_itself(parked: Parked, incoming: Incoming) -> QueuedPod | None:
    """The parked pod that the event is about: hints may know it by its uid, which no class does."""
    old, new = incoming.objects
    changed = old if new is None else new
    return parked.get(changed.metadata.uid) if isinstance(changed, Pod) else None


def _concerned(
    parked: Parked, hints: Hints, incoming: Incoming, itself: QueuedPod | None
) -> tuple[list[ParkedClass], tuple[NotAsked, ...]]:
    """Classes that the event may move, and what the plugins' indexes leave out.

    While a record names every skipped pod, all are asked: people see each pod's own reason. An event without
    an object is nothing to look up.
    """
    shelves = parked.shelves(hints.watchers(incoming.event, incoming.missed))
    by_index = not incoming.missed and incoming.brings_object and _pods_on(shelves) > NAMED_SKIPS
    found: dict[Hashable, ParkedClass] = {}
    for profile, watcher, shelf in shelves:
        if by_index:
            matching = hints.matching(profile, watcher, incoming.event)
            found.update(shelf.candidates(matching, *incoming.objects))
        else:
            found.update(shelf.every())
    if by_index and itself is not None:
        own = parked.class_of(itself)
        if any(profile == own.profile and watcher in own.watchers for profile, watcher, _ in shelves):
            found[own.key] = own
    asked = list(found.values())
    return asked, _left_out(shelves, asked) if by_index else ()


def _pods_on(shelves: Iterable[Standing]) -> int:
    """How many pods stand on these shelves; one with several rejectors counts for each, own hints beside the
    reference's do not.
    """
    plain = own = 0
    for _, watcher, shelf in shelves:
        if watcher.own:
            own += shelf.pods
        else:
            plain += shelf.pods
    return max(plain, own)


def _left_out(shelves: Iterable[Standing], asked: Iterable[ParkedClass]) -> tuple[NotAsked, ...]:
    """Pods of these shelves that are in none of the classes asked, by plugin; own hints do not count beside
    the reference's.
    """
    left = {(profile, watcher): shelf.pods for profile, watcher, shelf in shelves}
    for profile, watcher, _ in shelves:
        if watcher.own and (profile, Watcher(watcher.plugin)) in left:
            del left[profile, watcher]
    for one in asked:
        for watcher in one.watchers:
            if (one.profile, watcher) in left:
                left[one.profile, watcher] -= len(one.pods)
    counts: dict[str, int] = {}
    for (_, watcher), pods in left.items():
        counts[watcher.plugin] = counts.get(watcher.plugin, 0) + pods
    return tuple([NotAsked(plugin=plugin, count=count) for plugin, count in counts.items() if count])
