"""Decisions that wait: PreBind plugins want something written first, and then wait for what becomes of it.

    judged -> written first (its own objects, no binding) -> awaited -> judged again -> bound, or refused
                                                                ^            |
                                                                '-- waits ---'

The pod takes no place meanwhile: no Filter counts it, since it may never be bound. But its room is kept
(`NodeTable.keep`): no other pod gets what it needs of that node. A decision is judged again when an object
that it waits for has changed, its pod was bound, is being deleted or is gone, or its node is gone; found by
the object's name, so that a change costs what it concerns. It is not judged before the view shows what was
written for it: a plugin would not find its own writes, and want them once more. Room, promises and tickets
are in memory only; a binder that takes over is asked again by the schedulers (`proto.binder_api.Decision`).
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from podyard.binder.core.pending import Pending, State
from podyard.binder.core.points import Wait
from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.proto import subjects

WRITING_S: Final = 0.1
"""How soon to look again at a wait whose time was up before its objects were durable."""


class Expired(NamedTuple):
    """A decision whose time is up, and the plugin that waited too long."""

    pending: Pending
    wait: Wait


class _Entry:
    """One decision that waits."""

    __slots__ = ("changed", "keys", "node", "over", "pending", "uid", "unseen", "waits")

    def __init__(self, pending: Pending, waits: Sequence[Wait]) -> None:
        self.pending = pending
        self.waits = {wait.plugin: wait for wait in waits}
        self.uid = pending.decision.uid
        self.node = ObjectKey(subjects.NODES, "", pending.decision.node)
        self.unseen = {ObjectKey(w.resource, w.namespace, w.name) for wait in waits for w in wait.writes}
        """Objects that are written for it, which the view has not shown yet."""
        self.keys = self.unseen.union(*(wait.waits_for for wait in waits))
        self.changed = False
        """Something that it waits for has changed."""
        self.over = False
        """Pod or node are not as they must be: nothing is to be waited for."""

    @property
    def due(self) -> bool:
        """Whether it is to be judged again."""
        return self.pending.state is State.WAITING and (self.over or (self.changed and not self.unseen))


class WaitingDecisions:
    """By pod, which has one at most."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._by_key: dict[ObjectKey, dict[str, None]] = {}
        self._deadlines: list[tuple[float, int, str, _Entry]] = []
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, uid: str) -> Pending | None:
        """The decision that waits for this pod."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.pending

    # ---- beginning and end

    def add(self, pending: Pending, waits: Sequence[Wait]) -> None:
        """It waits from now on."""
        entry = _Entry(pending, waits)
        self._entries[entry.uid] = entry
        for key in (*entry.keys, entry.node):
            self._by_key.setdefault(key, {})[entry.uid] = None
        for wait in waits:
            self._numbers += 1
            heappush(self._deadlines, (pending.deadlines[wait.plugin], self._numbers, wait.plugin, entry))

    def is_due(self, pending: Pending) -> bool:
        """Whether it is to be judged again, now that what was to be written first is durable."""
        return self._entries[pending.decision.uid].due

    def withdraw(self, pending: Pending) -> bool:
        """Its scheduler wants it no more; whether it is to be judged again now."""
        entry = self._entries.get(pending.decision.uid)
        if entry is None or entry.pending is not pending:
            return False
        entry.over = True
        return entry.due

    def drop(self, uid: str) -> Pending | None:
        """It waits no more; `None` if none did."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        for key in (*entry.keys, entry.node):
            uids = self._by_key[key]
            del uids[uid]
            if not uids:
                del self._by_key[key]
        return entry.pending

    # ---- the world

    def follow(self, changes: Iterable[Change]) -> list[Pending]:
        """The view changed: decisions to be judged again, which still wait here."""
        if not self._entries:
            return []
        found: dict[str, _Entry] = {}
        for change in changes:
            if change.resource == subjects.PODS:
                entry = self._entries.get(change.uid)
                if entry is not None and _concerns(change):
                    entry.over = True
                    found[entry.uid] = entry
            elif change.resource != subjects.NODES or change.new is None:
                for uid in self._by_key.get(change.key, ()):
                    entry = found[uid] = self._entries[uid]
                    entry.changed = True
                    entry.over = entry.over or change.key == entry.node
                    entry.unseen.discard(change.key)
        return [entry.pending for entry in found.values() if entry.due]

    # ---- time

    @property
    def next_deadline(self) -> float | None:
        """When the next wait runs out; `None`: nothing that is written waits."""
        if not self._deadlines:
            return None
        self._forget_ended()
        return self._deadlines[0][0] if self._deadlines else None

    def expired(self, now: float) -> list[Expired]:
        """Waits whose time is up; they are dropped."""
        found: list[Expired] = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            _, _, plugin, entry = heappop(self._deadlines)
            if entry.pending.state is State.WRITING:
                heappush(self._deadlines, (now + WRITING_S, self._number(), plugin, entry))
                continue
            self.drop(entry.uid)
            found.append(Expired(entry.pending, entry.waits[plugin]))
        return found

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _forget_ended(self) -> None:
        while self._deadlines and self._entries.get(self._deadlines[0][3].uid) is not self._deadlines[0][3]:
            heappop(self._deadlines)


def _concerns(change: Change) -> bool:
    """Whether a pod cannot wait any more: it is bound, being deleted, or gone."""
    return change.new is None or change.new.deleting or change.new.bound is not None or change.new.ended
