"""Pods that were decided and are not answered yet, and the numbers of their decisions.

    decided -> (waits at Permit) -> asked of the binder -> (waits there, asked again) -> answered
                                          \\-> seen bound in the view -> answered

Numbers grow by one a decision within a session. `outstanding` tells the binder which of them the scheduler counted as placed without
having seen their binding.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import msgspec

from podyard.cluster.pods import PodView
from podyard.framework.cycle import CycleResult
from podyard.proto.binder_api import Decision, NumberRange
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.effects import CycleSpan

STRANGER: Final = 0
"""Number that no decision has: among the outstanding ones it says that something is assumed which the session has no number for, so that
the binder judges in full."""


class Place(NamedTuple):
    """Where a pod was assumed, empty: nowhere; and the CLUSTER sequence of its object as it was assumed."""

    node: str = ""
    version: int = 0


NO_PLACE: Final = Place()


class Assumption(msgspec.Struct, kw_only=True, gc=False):
    """One decided pod."""

    popped: PoppedPod
    pod: PodView
    decision: Decision
    result: CycleResult
    span: CycleSpan
    tries: int
    """Decisions of this attempt, this one included."""
    session: str
    answered: bool = False
    """The binder said bound; the view does not show it yet."""
    seen: bool = False
    """The view showed the binding; by the time of the answer the pod may be gone again."""
    counted_on: tuple[NumberRange, ...] = ()
    """If it waits at Permit: what was outstanding when it was decided. Its decision is sent later, when that is another set."""
    held: bool = False
    """The binder said that the decision waits."""
    asked_again: bool = False
    """While it waits: the binder is being asked again."""
    withdrawn: bool = False
    """While it waits: nobody wants the binding any more."""
    trouble: str = ""
    """What plugins raised when Reserve was undone, to be added to the reason for that."""
    successor: PoppedPod | None = None
    """The same pod popped again before this attempt was answered: it waits for the answer."""

    @property
    def place(self) -> Place:
        """Where the pod is counted, and as what."""
        return Place(self.decision.node, self.pod.sequence)


class Assumptions:
    """All of them, by uid.

    Invariant: a number is in `_unseen` from the decision until its binding is seen or the assumption is dropped; the pods of an earlier
    session are in `_strangers` for so long.
    """

    def __init__(self) -> None:
        self._by_uid: dict[str, Assumption] = {}
        self._held: OrderedDict[str, Assumption] = OrderedDict()
        self._unseen: dict[int, str] = {}
        self._strangers: set[str] = set()
        self._number = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Assumption]:
        return iter(self._by_uid.values())

    def get(self, uid: str) -> Assumption | None:
        """The assumption about a pod."""
        return self._by_uid.get(uid)

    def next_number(self) -> int:
        """Number of the next decision."""
        self._number += 1
        return self._number

    def add(self, assumption: Assumption) -> None:
        """A pod is assumed."""
        uid = assumption.popped.uid
        self._by_uid[uid] = assumption
        self._unseen[assumption.decision.number] = uid

    def seen(self, uid: str, attempt: str) -> None:
        """The binding of this pod by this attempt is in the view: nothing is assumed about it any more."""
        assumption = self._by_uid.get(uid)
        if assumption is not None and assumption.popped.attempt == attempt:
            assumption.seen = True
            self._is_no_more_unseen(assumption.decision.number, uid)

    def held(self) -> Collection[Assumption]:
        """Those whose decisions wait in the binder, in the order in which they are to be asked about again."""
        return self._held.values()

    def hold(self, assumption: Assumption) -> None:
        """The decision waits in the binder; it is asked about again after all others that do."""
        assumption.held = True
        self._held.pop(assumption.popped.uid, None)
        self._held[assumption.popped.uid] = assumption

    def answered(self, assumption: Assumption) -> None:
        """The decision has its answer: it waits no more."""
        assumption.held = False
        self._held.pop(assumption.popped.uid, None)

    def ask_first(self, assumption: Assumption) -> None:
        """A decision that waits is asked about again before all others."""
        self._held.move_to_end(assumption.popped.uid, last=False)

    def drop(self, uid: str) -> Assumption | None:
        """The pod is answered, or given up."""
        self._held.pop(uid, None)
        assumption = self._by_uid.pop(uid, None)
        if assumption is not None:
            self._is_no_more_unseen(assumption.decision.number, uid)
        return assumption

    def _is_no_more_unseen(self, number: int, uid: str) -> None:
        self._strangers.discard(uid)
        if self._unseen.get(number) == uid:
            del self._unseen[number]

    def outstanding(self, *, but: int = 0, below: int | None = None) -> tuple[NumberRange, ...]:
        """Numbers that are assumed and not seen committed, as ranges, ascending; `STRANGER` for any of an earlier session.

        :param but: a number to leave out
        :param below: only smaller numbers; `None`: all
        """
        ranges = [NumberRange(first=STRANGER, last=STRANGER)] if self._strangers else []
        first = last = 0
        for number in sorted(self._unseen):
            if below is not None and number >= below:
                break
            if number == but:
                continue
            if number == last + 1 and first:
                last = number
                continue
            if first:
                ranges.append(NumberRange(first=first, last=last))
            first = last = number
        if first:
            ranges.append(NumberRange(first=first, last=last))
        return tuple(ranges)

    def restart_numbers(self) -> None:
        """A new session: its numbers begin at 1, and it can name none of the old ones."""
        self._number = 0
        self._strangers.update(self._unseen.values())
        self._unseen.clear()
