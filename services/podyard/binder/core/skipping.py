"""When PreFilter and all Filters may be skipped: a scheduler has asked them, and nothing has happened since
that it did not count on.

A decision says which message P of the stream its scheduler had read last, and which decisions of its
session its scheduler counted as placed then without having seen their bindings (its claims). The filters
decide by the pod, its node, all other objects, the placed pods and the nominations to that node, and by
nothing else; binder and scheduler have equal profiles (the digest). So their answer here is the one that the
scheduler had if both decide by the same cluster. That is so if

1. no object that a filter may read is another than at P: nothing *foreign* came after P. Foreign is every
   change of a node or of any other object, of the object of a placed pod, every release, and whatever a
   listing brings. Not foreign: pods that nobody placed come, change and go (they are in no table), and what
   agents say of pods (schedulers do not follow it);
2. the pod itself is the version that the scheduler knew: its object is not newer than P;
3. that message is the one that the binder has read under this number: a stream that is made again, or loses
   its end with its server, gives the number to another one, and what came before it may be another history;
4. the pods placed since P are exactly the claimed ones: as many bindings came after P as are claimed, and
   each claimed number is one of them. Two finite sets of which one holds the other, and that are equally
   large, are equal. A claimed decision that was refused, dropped or never sent is missing, a binding of
   another session, by force or unknown is one too many: both say no;
5. each of them stands where the scheduler had it, as what it had it: the number names decision and node, and
   a number counts only while the pod's object is not newer than that decision;
6. nobody is nominated to the node by any fact, and no room is kept on it for anybody. Nominations that only
   the scheduler knew made it ask the filters twice, with and without them, and both passed.

Pods with claims are filtered always: of promises that are not in the objects yet each process has a memory of
its own.

What is not known says no: a binder that took over or listed again skips only over what came after its
listing; of old bindings the log forgets the oldest, and everything before them with it. A decision that
claims a later number than its own says what it cannot have known. Pod there, unbound, node there, room and
ports are judged always, and PreBind plugins are asked whatever was skipped.

The rule: docs/rules.md, skip-only-what-was-counted-on.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, TypeAlias

from podyard.binder.core.claims import Claims, Numbers
from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.objects import claims as volume_claims
from podyard.proto import subjects

KEPT: Final = 16_384
"""Bindings that are remembered: seconds of them at the design's rate, longer than a decision is under way."""

Key: TypeAlias = tuple[str, int]
"""Session and number of a decision."""


class Skipping:
    """The log of what came after which position. A change costs O(1), a question O(log bindings + ranges).

    Invariant: every placed pod that came after `_foreign` is counted, and `_sessions` has the numbers of
    those that may be claimed.
    """

    def __init__(self) -> None:
        self._foreign = 0
        """The last position at which something came that nobody may skip over."""
        self._pending: dict[str, Key | None] = {}
        """Bindings that are not known to be durable, by uid, with the number by which they may be claimed."""
        self._unseen: dict[str, Key] = {}
        """Durable ones that may be claimed and that the view does not show yet."""
        self._shown = 0
        """Position of the last binding that the view showed while it was pending here."""
        self._positions: list[int] = [0]
        self._counts: list[int] = [0]
        """By record, ascending: its position, and how many bindings became durable up to it. The first one
        stands for all before."""
        self._sessions: dict[str, Numbers] = {}

    # ---- what happens --------------------------------------------------------------------------------------

    def foreign(self, position: int) -> None:
        """Something happened at `position` that no scheduler can have counted on before."""
        self._foreign = max(self._foreign, position)

    def listed(self, position: int) -> None:
        """The view was listed up to `position`."""
        self.foreign(position)
        self._unseen.clear()

    def held(self, uid: str, key: Key | None) -> None:
        """A pod counts from now on; its binding is not durable yet.

        :param key: of the decision that it may be claimed by; `None`: by none
        """
        self._pending[uid] = key
        if key is not None:
            self._numbers_of(key[0]).add(key[1])

    def dropped(self, uid: str) -> None:
        """It does not count after all."""
        if uid in self._pending:
            self._disown(self._pending.pop(uid))
            self.foreign(self._shown)

    def durable(self, uids: Iterable[str], position: int) -> None:
        """Pods that were held are bound by the record at `position`."""
        numbers: dict[str, list[int]] = {}
        bound = 0
        for uid in uids:
            key = self._pending.pop(uid, None)
            bound += 1
            if key is not None:
                self._unseen[uid] = key
                numbers.setdefault(key[0], []).append(key[1])
        if not bound:
            return
        for session, found in numbers.items():
            self._numbers_of(session).bound(sorted(found), position)
        self._positions.append(position)
        self._counts.append(self._counts[-1] + bound)
        if self._counts[-1] - self._counts[0] > KEPT:
            self._forget_half()

    def changed(self, change: Change, position: int) -> None:
        """The view changed.

        :param position: of the view: what a listing brings may have come any time before
        """
        uid = change.uid
        if change.relisted or change.gap or change.resource != subjects.PODS:
            self.foreign(position)
        elif change.bound:
            self._shows(uid, change.sequence)
        elif _concerns_placed(change):
            self.foreign(change.sequence)
        elif uid in self._pending:
            self._disown(self._pending[uid])
            self._pending[uid] = None
        elif uid in self._unseen:
            self._disown(self._unseen.pop(uid))

    # ---- the question --------------------------------------------------------------------------------------

    def covers(self, session: str, position: int, claims: Claims | None) -> bool:
        """Whether nothing came after `position` but what `claims` names, and all of that did."""
        if claims is None or position < self._foreign:
            return False
        since = self._counts[-1] - self._counts[bisect_right(self._positions, position) - 1] + len(self._pending)
        if since != claims.size:
            return False
        if not since:
            return True
        numbers = self._sessions.get(session)
        return numbers is not None and numbers.hold_all(claims.ranges, position)

    # ---- inside --------------------------------------------------------------------------------------------

    def _shows(self, uid: str, position: int) -> None:
        """The view shows a binding: one of ours, before or after its acknowledgement, or one that nobody here
        knows."""
        if uid in self._pending:
            self._shown = max(self._shown, position)
        elif self._unseen.pop(uid, None) is None:
            self.foreign(position)

    def _disown(self, key: Key | None) -> None:
        """Nobody may claim it any more."""
        if key is not None:
            self._numbers_of(key[0]).remove(key[1])

    def _numbers_of(self, session: str) -> Numbers:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = Numbers()
        return found

    def _forget_half(self) -> None:
        """Bounded memory: nothing is skipped over the older half any more."""
        kept = len(self._positions) // 2
        del self._positions[:kept], self._counts[:kept]
        self.foreign(self._positions[0])
        for session, numbers in list(self._sessions.items()):
            numbers.forget(self._foreign)
            if not numbers:
                del self._sessions[session]
        if len(self._unseen) > KEPT:
            self._unseen.clear()
            self.foreign(self._positions[-1])


def has_claims(pod: PodView) -> bool:
    """Whether the pod uses claims, of volumes or of resources."""
    return bool(pod.stored.spec.resource_claims) or volume_claims.has_claims(pod.stored)


def _concerns_placed(change: Change) -> bool:
    """Whether it ends a binding, or makes the object of a placed pod another; what its agent says does not
    count."""
    old, new = change.old, change.new
    if change.release is not None:
        return True
    if (old is None or old.bound is None) and (new is None or new.bound is None):
        return False
    return old is None or new is None or old.stored is not new.stored or old.nomination is not new.nomination
