"""Stores the agent's facts: in batches, each a compare-and-set on its own subject. Shell.

One task writes, one batch at a time, so facts of a subject go out in order and each knows its predecessor.
Facts that come while a batch is under way wait; of two that wait for one subject the later counts, because a
subject holds one message anyway. Over the word of another agent about a node nothing is written but a claim,
and that only over the very version that the claim names (`core/claims.py`).
"""

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

import anyio
import structlog

from podyard.bus import (
    Ack,
    BatchUnclear,
    Bus,
    BusError,
    Conflict,
    Delivery,
    Outgoing,
    PermanentError,
    TemporaryError,
    Unclear,
)
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.streams import MAX_BATCH

BATCH_FROM: Final = 16
"""From so many facts on, a batch (1.2 ms of the server) costs less than single ones."""

RETRY_S: Final = 0.2
"""Pause after an unclear answer; the compare-and-set is then repeated."""


class Waiting(NamedTuple):
    """One fact on its way; a `fact` None is a marker."""

    subject: str
    fact: PodStatusFact | NodeStatusFact | None
    trace: str
    claims_over: int | None = None
    """Sequence that alone it may replace; None: the last one that is known."""

    def message(self, known: int) -> Outgoing:
        """As it is published; `known` is the subject's last sequence."""
        expect = known if self.claims_over is None else self.claims_over
        if self.fact is None:
            return Outgoing(self.subject, b"", expect=expect, deleted=True, expires=True)
        return Outgoing(self.subject, codec.encode(self.fact), expect=expect, trace=self.trace)


class FactWriter:
    """Owned by the task that runs `run`; `put` is called from the same event loop."""

    def __init__(
        self,
        bus: Bus,
        known: Callable[[str], int],
        log: structlog.stdlib.BoundLogger,
        *,
        linger_s: float,
        on_stored: Callable[[int], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        """
        :param known: last sequence of a subject as a reader knows it, for subjects not written yet
        :param linger_s: how long facts wait for company
        :param on_stored: told how many facts a round stored
        :param on_trouble: told why facts cannot be stored now; with an empty text when they can again
        """
        self._bus = bus
        self._known = known
        self._log = log
        self._linger_s = linger_s
        self._on_stored = on_stored
        self._on_trouble = on_trouble
        self._waiting: dict[str, Waiting] = {}
        self._sequences: dict[str, int] = {}
        self._under_way: frozenset[str] = frozenset()
        """Subjects of the facts that are being stored."""
        self._some = anyio.Event()
        self._round = anyio.Event()
        """Set when the facts that are under way are stored, or outdated."""

    @property
    def waiting(self) -> int:
        """How many facts are not stored yet, those under way not counted."""
        return len(self._waiting)

    def put(
        self,
        subject: str,
        fact: PodStatusFact | NodeStatusFact | None,
        trace: str = "",
        *,
        claims_over: int | None = None,
    ) -> None:
        """Store `fact`, or a marker for None, as soon as possible. Where nothing is stored, or being stored,
        no marker is needed.

        :param claims_over: sequence that alone it may replace; None: the last one that is known
        """
        if fact is None and self._expected(subject) == 0 and subject not in self._under_way:
            self._waiting.pop(subject, None)
            return
        self._waiting[subject] = Waiting(subject, fact, trace, claims_over)
        self._some.set()

    def drop(self, subject: str, prefix: str) -> None:
        """Of this subject, and of those that begin so, nothing more is to be stored."""
        for waiting in [one for one in self._waiting if one == subject or one.startswith(prefix)]:
            del self._waiting[waiting]

    async def settled(self, uid: str) -> None:
        """Wait until no fact about the pod with this uid is on its way."""
        last = f".{subjects.encode(uid)}"
        while any(subject.endswith(last) for subject in (*self._waiting, *self._under_way)):
            await self._round.wait()

    async def run(self) -> NoReturn:
        """Write for ever."""
        while True:
            await self._some.wait()
            if len(self._waiting) < MAX_BATCH and self._linger_s:
                await anyio.sleep(self._linger_s)
            facts = [self._waiting[subject] for subject in list(self._waiting)[:MAX_BATCH]]
            for fact in facts:
                del self._waiting[fact.subject]
            if not self._waiting:
                self._some = anyio.Event()
            self._under_way = frozenset([fact.subject for fact in facts])
            await self._store(facts)
            self._under_way = frozenset()
            self._round.set()
            self._round = anyio.Event()

    def _expected(self, subject: str) -> int:
        found = self._sequences.get(subject)
        return self._known(subject) if found is None else found

    async def _store(self, facts: list[Waiting]) -> None:
        """Until each is stored, or found to be outdated."""
        left = facts
        if len(left) >= BATCH_FROM:
            left = await self._store_at_once(left)
        while left:
            left = await self._store_each(left)
        self._on_trouble("")

    async def _store_at_once(self, facts: list[Waiting]) -> list[Waiting]:
        """One atomic batch; what is left if it was refused or unclear is settled one by one."""
        try:
            ack = await self._bus.publish_batch([fact.message(self._expected(fact.subject)) for fact in facts])
        except (Conflict, BatchUnclear, Unclear):
            return facts
        except BusError as error:
            await self._pause(error)
            return facts
        first = ack.sequence - len(facts) + 1
        for index, fact in enumerate(facts):
            self._note(fact, first + index)
        self._on_stored(len(facts))
        return []

    async def _store_each(self, facts: list[Waiting]) -> list[Waiting]:
        answers = await self._bus.publish_many([fact.message(self._expected(fact.subject)) for fact in facts])
        left: list[Waiting] = []
        trouble: BusError | None = None
        for fact, answer in zip(facts, answers, strict=True):
            if isinstance(answer, Ack):
                self._note(fact, answer.sequence)
                self._on_stored(1)
            elif isinstance(answer, Conflict):
                if not await self._settle(fact):
                    left.append(fact._replace(claims_over=None))
            elif isinstance(answer, PermanentError):
                self._log.error("a fact cannot be stored", subject=fact.subject, reason=str(answer))
            else:
                left.append(fact)
                trouble = answer
        if trouble is not None:
            await self._pause(trouble)
        return [fact for fact in left if fact.subject not in self._waiting]

    async def _settle(self, fact: Waiting) -> bool:
        """Another version is there than expected; whether nothing is left to do."""
        try:
            found = await self._bus.get(streams.CLUSTER.name, fact.subject)
        except BusError as error:
            await self._pause(error)
            return False
        expected = self._expected(fact.subject) if fact.claims_over is None else fact.claims_over
        self._sequences[fact.subject] = 0 if found is None else found.sequence
        if found is None:
            return fact.fact is None
        if _same(found, fact):
            self._note(fact, found.sequence)
            return True
        # one that is not newer was read from a replica that lags
        if isinstance(fact.fact, NodeStatusFact) and found.sequence > expected and _is_anothers(found, fact.fact):
            self._log.warning("another agent plays the node", subject=fact.subject)
            return True
        if isinstance(fact.fact, PodStatusFact) and not found.deleted and not fact.fact.ended and _has_ended(found):
            self._log.warning("the pod has ended already, by another agent's word", subject=fact.subject)
            return True
        return False

    def _note(self, fact: Waiting, sequence: int) -> None:
        if fact.fact is None and fact.subject not in self._waiting:
            self._sequences.pop(fact.subject, None)
        else:
            self._sequences[fact.subject] = sequence

    async def _pause(self, error: BusError) -> None:
        self._on_trouble(f"facts cannot be stored: {error}")
        await anyio.sleep(error.delay_s if isinstance(error, TemporaryError) else RETRY_S)


def _same(found: Delivery, fact: Waiting) -> bool:
    message = fact.message(0)
    return found.deleted == message.deleted and (found.deleted or found.payload == message.payload)


def _has_ended(found: Delivery) -> bool:
    try:
        return codec.decode(PodStatusFact, found.payload).ended
    except codec.MessageError:
        return False


def _is_anothers(found: Delivery, fact: NodeStatusFact) -> bool:
    """Whether another session than that of `fact` says that it plays the node."""
    if found.deleted:
        return False
    try:
        return codec.decode(NodeStatusFact, found.payload).session not in ("", fact.session)
    except codec.MessageError:
        return False
