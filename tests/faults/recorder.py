"""The history of CLUSTER on a real server, message by message in its order, for the checker of the
simulation.

It comes from two sides: a reader of the stream, and what the proxies overhear. What neither has is known by
its number, and by its subject once a later version names it as its predecessor (the server keeps that
header): so the history is complete or says what it lacks.
"""

from collections import deque
from typing import Any

import anyio

from podyard.bench.checking.checker import Checker, Read
from podyard.bus import Delivery, WatchSpec, _heads
from podyard.proto import headers, streams, subjects
from podyard.proto.placement import Binding, Tombstone
from tests.memory_nats.stream import Stored
from tests.support.read import read

KEPT_LINES = 400
SPEC = WatchSpec(
    stream=streams.CLUSTER.name, list_subjects=streams.CLUSTER.subjects, follow_subjects=streams.CLUSTER.subjects
)


class Recorder:
    """Feeds the checker batch by batch, as far as the history has no hole. A sink of a watch of `SPEC`."""

    def __init__(self) -> None:
        self.checker = Checker()
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        """Documents that live, by resource and name (one namespace)."""
        self.placed: dict[str, Binding | Tombstone] = {}
        """By uid of the pod, what the subject of its binding holds."""
        self.stored_at: dict[str, int] = {}
        """Sequence of the first version of each pod, by uid."""
        self.next = 1
        """The first sequence that the checker has not seen."""
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        """The last records, a line each."""
        self._read_to = 0
        self._waiting: dict[int, Stored] = {}
        self._taken: dict[int, tuple[str, bytes]] = {}
        """Subject and payload of what the checker has seen, by sequence."""
        self._last: dict[str, tuple[int, bool]] = {}
        """By subject, its last version and whether that one expires."""
        self._batch: list[Stored] = []
        self._holes: dict[int, str] = {}
        """Sequences that nobody has seen, with their subject once it is known."""
        self._changed = anyio.Event()

    @property
    def missed(self) -> list[str]:
        """What is not known of the history."""
        return [f"@{sequence} {subject or 'of an unknown subject'}" for sequence, subject in self._holes.items()]

    def note(self, message: Stored) -> None:
        """A message is known to be stored."""
        known = self._waiting.get(message.sequence)
        told = self._taken.get(message.sequence) if known is None else (known.subject, known.payload)
        if told is not None and told != (message.subject, message.payload):
            self.checker.violations.append(
                f"@{message.sequence} was {told[0]}, and is now {message.subject}: an acknowledged write is lost"
            )
        if message.sequence >= self.next:
            self._waiting.setdefault(message.sequence, message)
            self._feed()

    @property
    def overwritten(self) -> list[str]:
        """What of that is an object, a fact or the fence, of which a later version is known."""
        known = {sequence: subject for sequence, subject in self._holes.items() if subject}
        return [
            f"@{sequence} {subject}"
            for sequence, subject in known.items()
            if subject == subjects.FENCE or subject.startswith("cluster.")
        ]

    async def read_to(self, position: int) -> None:
        """Wait until the reader has passed everything up to there."""
        while self._read_to < position:
            await self.changed()

    async def changed(self) -> None:
        """Wait until the checker has seen more."""
        await self._changed.wait()

    async def complete(self, position: int, within_s: float) -> None:
        """Wait until the checker has seen everything up to a position; what does not come in time is
        missed."""
        with anyio.move_on_after(within_s):
            while self.next <= position:
                await self.changed()
            return
        for sequence in range(self.next, position + 1):
            if sequence not in self._waiting:
                self._holes[sequence] = ""
        while self.next <= position:
            if self.next in self._holes:
                self.next += 1
            self._feed()

    # ---- in order

    def _feed(self) -> None:
        while (message := self._waiting.pop(self.next, None)) is not None:
            self.next += 1
            lines = _heads.parse(message.head) if message.head else {}
            self._follow(message, lines)
            if self._batch and lines.get(headers.BATCH_ID) != self._batch_id:
                self._judge()
            self._batch.append(message)
            if headers.BATCH_ID not in lines or headers.BATCH_COMMIT in lines:
                self._judge()
        self._tell()

    @property
    def _batch_id(self) -> str | None:
        return _heads.parse(self._batch[0].head).get(headers.BATCH_ID)

    def _follow(self, message: Stored, lines: dict[str, str]) -> None:
        """Every write of CLUSTER is a compare-and-set, and names the version before it: what nobody saw,
        too."""
        text = lines.get(headers.EXPECTED_LAST_SUBJECT_SEQUENCE)
        last, expires = self._last.get(message.subject, (0, False))
        again = expires and headers.OPERATION in lines  # a marker for what came back when the server was killed
        self._last[message.subject] = message.sequence, headers.TTL in lines
        where = f"@{message.sequence} {message.subject}"
        if text is None:
            self.checker.violations.append(f"{where} is written without a compare-and-set")
        elif int(text) in self._holes:
            self._holes[int(text)] = message.subject
        elif int(text) != last and not (expires and (int(text) == 0 or again)):
            self.checker.violations.append(f"{where} follows @{text} and overwrites @{last}")

    def _judge(self) -> None:
        batch, self._batch = [read(message) for message in self._batch], []
        before = len(self.checker.violations)
        self.checker.stored(batch)
        for one in batch:
            self._taken[one.sequence] = (one.subject, one.payload)
            self._fold(one)
            self.lines.append(_line(one))
        self.lines += (f"VIOLATION {text}" for text in self.checker.violations[before:])

    def _fold(self, one: Read) -> None:
        subject = one.subject
        if one.placement is not None:
            self.placed[one.placement.uid] = one.placement
        elif subject.startswith("cluster.") and subject.count(".") == 3:
            resource, _, name = subjects.parse_object(subject)
            if one.document is None:
                self.objects.pop((resource, name), None)
                return
            self.objects[resource, name] = one.document
            if resource == subjects.PODS:
                self.stored_at.setdefault(one.document["metadata"]["uid"], one.sequence)

    # ---- the watch

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        """A message of the stream."""
        self._passed(delivery.sequence)
        head = _heads.build(dict(delivery.headers)) if delivery.headers else b""
        self.note(Stored(delivery.subject, delivery.payload, head, delivery.sequence, delivery.stored_at))

    def synced(self, position: int) -> None:
        """Everything up to there was read that was still there."""
        self._passed(position)

    def advanced(self, position: int) -> None:
        """So it is, without a message."""
        self._passed(position)

    def contact(self, fresh: bool) -> None: ...

    def _passed(self, position: int) -> None:
        self._read_to = max(self._read_to, position)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _line(one: Read) -> str:
    words = ""
    if one.record is not None:
        bound = ", ".join(f"{pod.name} to {pod.node}" for pod in one.record.bindings)
        released = ", ".join(f"{pod.name} ({pod.reason})" for pod in one.record.releases)
        words = f"epoch {one.record.epoch} position {one.record.position} binds [{bound}] releases [{released}]"
    elif one.fence is not None:
        words = f"epoch {one.fence.epoch} n {one.fence.n} {one.fence.holder}"
    elif one.placement is not None:
        words = f"{type(one.placement).__name__} {one.placement.node}"
    return f"@{one.sequence} {one.subject} {words}".rstrip()
