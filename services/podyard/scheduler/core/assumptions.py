"""Pods that were decided and are not settled yet, and the numbers of their decisions.

    AT_PERMIT -> ASKED ----------------------------------> BOUND -> (settled)
                  | ^                                        ^
                  | '--------(view shows the binding)-> SEEN-'
                  v                                      ^
                WAITING <-> ASKED_AGAIN -----------------'

    any of them -> (settled): the pod is refused, gone, or bound by another attempt

`MOVES` is the whole table. A settled assumption is dropped. Only `Assumptions` writes a phase.

Numbers grow by one a decision within a session. `outstanding` tells the binder which of them the scheduler
counted as placed without having seen their binding.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from podyard.cluster.pods import PodView
from podyard.framework.cycle import CycleResult
from podyard.proto.binder_api import Decision, NumberRange
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.effects import CycleSpan

STRANGER: Final = 0
"""Number that no decision has. Among the outstanding ones it says that something is assumed for which the
session has no number, so that the binder judges in full."""


class Phase(IntEnum):
    """Where a decision is."""

    AT_PERMIT = 1
    """Plugins let the pod wait at Permit: the binder is not asked yet."""
    ASKED = 2
    """The binder is asked, and has not answered."""
    WAITING = 3
    """The binder said that the decision waits for a PreBind plugin. It is asked about again later."""
    ASKED_AGAIN = 4
    """The decision waits, and the binder is being asked about it again."""
    SEEN = 5
    """The view shows the binding, the binder has not answered. Until it does the pod may be gone again."""
    BOUND = 6
    """The binder said that the pod is bound. The view does not show it yet."""


MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.AT_PERMIT: frozenset({Phase.ASKED}),
    Phase.ASKED: frozenset({Phase.WAITING, Phase.SEEN, Phase.BOUND}),
    Phase.WAITING: frozenset({Phase.WAITING, Phase.ASKED_AGAIN, Phase.SEEN, Phase.BOUND}),
    Phase.ASKED_AGAIN: frozenset({Phase.WAITING, Phase.SEEN, Phase.BOUND}),
    Phase.SEEN: frozenset({Phase.SEEN}),
    Phase.BOUND: frozenset({Phase.SEEN}),
}
"""From each phase to which others."""

WAITS: Final = frozenset({Phase.WAITING, Phase.ASKED_AGAIN})
"""The decision waits in the binder."""

NOT_ASKED: Final = frozenset({Phase.AT_PERMIT, Phase.BOUND})
"""No answer of the binder is awaited."""


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
    phase: Phase
    started: float = 0.0
    """When the attempt's first cycle began, in seconds since 1970, UTC."""
    counted_on: tuple[NumberRange, ...] = ()
    """At Permit: what was outstanding at the decision, which is sent later, when other numbers are."""
    withdrawn: bool = False
    """While it waits in the binder: nobody wants the binding any more."""
    trouble: str = ""
    """What plugins raised when Reserve was undone, to be added to the reason for that."""
    successor: PoppedPod | None = None
    """The same pod popped again before this attempt was settled: it waits for that."""

    @property
    def place(self) -> Place:
        """Where the pod is counted, and as what."""
        return Place(self.decision.node, self.pod.sequence)


class Assumptions:
    """All of them, by uid.

    Invariants: a number is in `_unseen` from the decision until its binding is seen or the assumption is
    dropped; the pods of an earlier session are in `_strangers` for so long. `_waiting` has those of `WAITS`.
    """

    def __init__(self) -> None:
        self._by_uid: dict[str, Assumption] = {}
        self._waiting: OrderedDict[str, Assumption] = OrderedDict()
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

    # ---- what becomes of one

    def permitted(self, assumption: Assumption) -> None:
        """The wait at Permit is over: the binder is asked."""
        _move(assumption, Phase.ASKED)

    def waits(self, assumption: Assumption) -> None:
        """The decision waits in the binder; it is asked about again after all others that do."""
        _move(assumption, Phase.WAITING)
        self._waiting.pop(assumption.popped.uid, None)
        self._waiting[assumption.popped.uid] = assumption

    def ask_again(self, assumption: Assumption) -> None:
        """The binder is asked about a decision that waits."""
        _move(assumption, Phase.ASKED_AGAIN)

    def withdraw(self, assumption: Assumption) -> None:
        """A decision that waits in the binder is wanted no more: it is the next that is asked about."""
        assumption.withdrawn = True
        self._waiting.move_to_end(assumption.popped.uid, last=False)

    def seen(self, assumption: Assumption) -> None:
        """The view shows the binding of this attempt: nothing is assumed about it any more."""
        _move(assumption, Phase.SEEN)
        self._waits_no_more(assumption)
        self._is_no_more_unseen(assumption)

    def bound(self, assumption: Assumption) -> None:
        """The binder said bound; the view does not show it yet."""
        _move(assumption, Phase.BOUND)
        self._waits_no_more(assumption)

    def drop(self, uid: str) -> Assumption | None:
        """The pod is settled, or given up."""
        assumption = self._by_uid.pop(uid, None)
        if assumption is not None:
            self._waits_no_more(assumption)
            self._is_no_more_unseen(assumption)
        return assumption

    def _waits_no_more(self, assumption: Assumption) -> None:
        self._waiting.pop(assumption.popped.uid, None)

    def _is_no_more_unseen(self, assumption: Assumption) -> None:
        uid, number = assumption.popped.uid, assumption.decision.number
        self._strangers.discard(uid)
        if self._unseen.get(number) == uid:
            del self._unseen[number]

    # ---- what the binder is told

    def waiting(self) -> Collection[Assumption]:
        """Those whose decisions wait in the binder, in the order in which they are asked about again."""
        return self._waiting.values()

    def outstanding(self, *, but: int = 0, below: int | None = None) -> tuple[NumberRange, ...]:
        """Numbers that are assumed and not seen bound, as ascending ranges. `STRANGER`: some of an earlier
        session.

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


def _move(assumption: Assumption, to: Phase) -> None:
    assert to in MOVES[assumption.phase], f"{assumption.phase.name} -> {to.name} is in no table"
    assumption.phase = to
