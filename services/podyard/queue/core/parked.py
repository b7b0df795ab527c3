"""Unschedulable and gated pods, indexed by the plugins that may wake them and by what those plugins' hints
read.

The index keeps an event's cost proportional to the answers that it may need: an unschedulable pod is found by
each of its rejectors, a gated one by its gating plugin alone (docs/rules.md, gated-pod-hears-its-gate), and
pods that all hints answer alike stand together in one class.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from podyard.framework.events import HintIndex, OwnRegistration, Registration
from podyard.framework.faults import Faults
from podyard.framework.hint_sharing import HintSigner, OwnRead
from podyard.framework.status import PluginError
from podyard.proto.pools import Pool
from podyard.queue.core.queued_pod import QueuedPod, Watcher

Signers: TypeAlias = Mapping[str, Mapping[str, HintSigner]]
"""Profile -> plugin -> what its hints read of a pod."""

NOT_SHARED: Signers = {}
NONE_OF_THEM: Mapping[Hashable, "ParkedClass"] = {}


class ParkedClass:
    """Parked pods of one profile with the same rejectors, of which all rejectors' hints read the same: one
    verdict for all.
    """

    __slots__ = ("key", "pods", "profile", "signatures", "watchers")

    def __init__(
        self, key: Hashable, profile: str, watchers: tuple[Watcher, ...], signatures: dict[Watcher, Hashable]
    ) -> None:
        self.key = key
        self.profile = profile
        self.watchers = watchers
        """Whose events reach it: its rejectors', or its gating plugin's."""
        self.signatures = signatures
        """By rejector, for its own hints apart."""
        self.pods: dict[str, QueuedPod] = {}
        """By uid, in the order of their parking."""


class Shelf:
    """The classes of one profile that one plugin's hints (those of the reference, or its own) may wake."""

    def __init__(self, plugin: str, faults: Faults) -> None:
        self.pods = 0
        """How many pods stand here."""
        self._all: dict[Hashable, ParkedClass] = {}
        self._always: dict[Hashable, ParkedClass] = {}
        """Gated ones: their other rejectors' hints count too, so that one plugin's index cannot leave them
        out.
        """
        self._by_signature: dict[Hashable, dict[Hashable, ParkedClass]] = {}
        self._indexes: dict[int, tuple[Registration | OwnRegistration, HintIndex | None]] = {}
        """By registration, which is held so that its id stays its own; `None`: the index failed, everybody is
        asked.
        """
        self._plugin = plugin
        self._faults = faults

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, one: ParkedClass, watcher: Watcher, gated: bool) -> None:
        """A class has its first pod."""
        self._all[one.key] = one
        if gated:
            self._always[one.key] = one
            return
        signature = one.signatures[watcher]
        mates = self._by_signature.get(signature)
        if mates is None:
            mates = self._by_signature[signature] = {}
            for at, (_, index) in self._indexes.items():
                if index is not None:
                    self._tell(at, "add", index.add, signature)
        mates[one.key] = one

    def remove(self, one: ParkedClass, watcher: Watcher) -> None:
        """It has none any more."""
        del self._all[one.key]
        if self._always.pop(one.key, None) is not None:
            return
        signature = one.signatures[watcher]
        mates = self._by_signature[signature]
        del mates[one.key]
        if not mates:
            del self._by_signature[signature]
            for at, (_, index) in self._indexes.items():
                if index is not None:
                    self._tell(at, "remove", index.remove, signature)

    def _tell(self, at: int, what: str, said: Callable[[Hashable], None], signature: Hashable) -> None:
        try:
            said(signature)
        except Exception as error:  # boundary: a plugin's fault costs it the index, nothing else
            self._throw_away(at, what, error)

    def _throw_away(self, at: int, what: str, error: Exception) -> None:
        """An index that failed half way knows nothing for sure."""
        self._indexes[at] = self._indexes[at][0], None
        self._faults.note(PluginError.wrapping(self._plugin, f"index.{what}", error))

    def every(self) -> Mapping[Hashable, ParkedClass]:
        """All classes by key."""
        return self._all

    def candidates(
        self, registrations: Iterable[Registration | OwnRegistration], old: object | None, new: object | None
    ) -> Mapping[Hashable, ParkedClass]:
        """Classes for which one of these registrations may not say Skip, by key."""
        classes: dict[Hashable, ParkedClass] = {}
        for registration in registrations:
            signatures = self._asked(registration, old, new)
            if signatures is None:
                return self._all
            for signature in signatures:
                classes.update(self._by_signature.get(signature, NONE_OF_THEM))
        classes.update(self._always)
        return classes

    def _asked(
        self, registration: Registration | OwnRegistration, old: object | None, new: object | None
    ) -> Iterable[Hashable] | None:
        index = self._index(registration)
        if index is None:
            return None
        try:
            candidates = index.candidates(old, new)
            if candidates is None:
                return None
            signatures = tuple(candidates)
            hash(signatures)
            return signatures
        except Exception as error:  # boundary: as hints that fail, it leaves nobody out
            self._throw_away(id(registration), "candidates", error)
            return None

    def _index(self, registration: Registration | OwnRegistration) -> HintIndex | None:
        """The registration's index, filled at its first use."""
        if registration.new_index is None:
            return None
        at = id(registration)
        entry = self._indexes.get(at)
        if entry is None:
            self._indexes[at] = registration, None
            try:
                index = registration.new_index()
                for signature in self._by_signature:
                    index.add(signature)
                self._indexes[at] = registration, index
            except Exception as error:  # boundary: as when it is told of others later
                self._throw_away(at, "new", error)
            entry = self._indexes[at]
        return entry[1]


class Parked:
    """Pods that wait for an event.

    Invariant: every parked pod is in exactly one class; a class stands on the shelves of exactly its
    watchers, and is not empty.

    :param signers: plugins that are not named share no answers
    :param faults: told of plugins that fail
    """

    def __init__(self, signers: Signers = NOT_SHARED, faults: Faults | None = None) -> None:
        self._signers = signers
        self._faults = Faults() if faults is None else faults
        self._pods: dict[str, QueuedPod] = {}
        self._class_of: dict[str, ParkedClass] = {}
        self._classes: dict[Hashable, ParkedClass] = {}
        self._shelves: dict[str, dict[Watcher, Shelf]] = {}
        self._order = 0
        self.gated = 0
        """How many of them are gated."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(tuple(self._pods.values()))

    def __contains__(self, pod: QueuedPod) -> bool:
        return pod.uid in self._pods

    def get(self, uid: str) -> QueuedPod | None:
        """The parked pod of this uid."""
        return self._pods.get(uid)

    def add(self, pod: QueuedPod) -> None:
        """Park `pod`, gated if it has a gating plugin; or index it anew if it is parked already."""
        self._leave_class(pod)
        if pod.uid not in self._pods:
            self._order += 1
            pod.park_order = self._order
            self._pods[pod.uid] = pod
        pod.enter(Pool.GATED if pod.gating_plugin else Pool.UNSCHEDULABLE)
        self.gated += pod.pool is Pool.GATED
        self._join_class(pod)

    def remove(self, pod: QueuedPod) -> bool:
        """Take `pod` out, before it enters another pool; whether it was in."""
        if self._pods.pop(pod.uid, None) is None:
            return False
        self._leave_class(pod)
        return True

    def class_of(self, pod: QueuedPod) -> ParkedClass:
        """The class that a parked pod is in."""
        return self._class_of[pod.uid]

    def shelves(self, listeners: Mapping[str, Iterable[Watcher]]) -> list[tuple[str, Watcher, Shelf]]:
        """The shelves of these listeners (by profile) that are not empty: profile, listener, shelf."""
        shelves: list[tuple[str, Watcher, Shelf]] = []
        for profile, watchers in listeners.items():
            there = self._shelves.get(profile)
            if there:
                shelves += [(profile, watcher, there[watcher]) for watcher in watchers if watcher in there]
        return shelves

    def _join_class(self, pod: QueuedPod) -> None:
        watchers, signatures = pod.watchers, self._signatures(pod)
        key = (
            pod.profile,
            pod.gating_plugin,
            pod.unschedulable_plugins,
            pod.pending_plugins,
            tuple(signatures.values()),
        )
        joined = self._classes.get(key)
        if joined is None:
            joined = self._classes[key] = ParkedClass(key, pod.profile, watchers, signatures)
            shelves = self._shelves.setdefault(pod.profile, {})
            for watcher in watchers:
                if watcher not in shelves:
                    shelves[watcher] = Shelf(watcher.plugin, self._faults)
                shelves[watcher].add(joined, watcher, bool(pod.gating_plugin))
        joined.pods[pod.uid] = pod
        self._class_of[pod.uid] = joined
        self._count(joined, 1)

    def _leave_class(self, pod: QueuedPod) -> None:
        left = self._class_of.pop(pod.uid, None)
        if left is None:
            return
        self.gated -= pod.pool is Pool.GATED
        del left.pods[pod.uid]
        self._count(left, -1)
        if left.pods:
            return
        del self._classes[left.key]
        shelves = self._shelves[left.profile]
        for watcher in left.watchers:
            shelves[watcher].remove(left, watcher)
            if not shelves[watcher]:
                del shelves[watcher]

    def _count(self, one: ParkedClass, pods: int) -> None:
        shelves = self._shelves[one.profile]
        for watcher in one.watchers:
            shelves[watcher].pods += pods

    def _signatures(self, pod: QueuedPod) -> dict[Watcher, Hashable]:
        """By rejector, in order of names; a plugin that does not say what it reads, or fails to, shares with
        nobody.
        """
        signers = self._signers.get(pod.profile, {})
        signatures: dict[Watcher, Hashable] = {}
        for plugin in sorted(pod.rejectors):
            signer = signers.get(plugin)
            try:
                signature = pod.uid if signer is None else signer(pod.pod)
                hash(signature)
            except Exception as error:  # boundary: a plugin's fault costs it the sharing, nothing else
                self._faults.note(PluginError.wrapping(plugin, "hint_signature", error))
                signature = pod.uid
            signatures[Watcher(plugin)] = signature
        for plugin, obstacles in sorted(pod.obstacles.items()):
            signatures[Watcher(plugin, True)] = OwnRead(signatures.get(Watcher(plugin), pod.uid), obstacles)
        return signatures
