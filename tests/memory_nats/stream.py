"""One stream's messages, and what it says to those who write
(docs/rules.md, memory-server-answers-like-nats)."""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from podyard.bus import errors
from podyard.bus.watch import picker
from podyard.proto import headers

KEPT_OLD: Final = 8
"""Earlier states of a subject that a stale read may still show."""

NO_ROOM: Final = 10077
TTL_DISABLED: Final = 10166
ATOMIC_DISABLED: Final = 10174
FRAME_BYTES: Final = 30
"""What a message takes beside its texts, about."""

BATCH_ABANDONED_S: Final = 10.0
NO_MESSAGE: Final = 0


class Incoming(NamedTuple):
    """A message that somebody publishes. `lines` are the headers of `head`."""

    subject: str
    payload: bytes
    head: bytes
    lines: Mapping[str, str]

    @property
    def expected(self) -> int | None:
        """The subject's last sequence that the writer expects; `None`: it does not say."""
        text = self.lines.get(headers.EXPECTED_LAST_SUBJECT_SEQUENCE)
        return None if text is None else int(text)


class Stored(NamedTuple):
    """A stored message; times are seconds since 1970, UTC."""

    subject: str
    payload: bytes
    head: bytes
    sequence: int
    stored_at: float


class Refusal(NamedTuple):
    """Why nothing was stored: the server's numeric code and its words."""

    code: int
    text: str


class _Staged(NamedTuple):
    began_at: float
    messages: list[Incoming]


class Stream:
    """Messages in the order of their sequences. Invariant: `_messages` is ordered by sequence, and so is each
    subject's list.
    """

    def __init__(self, config: Mapping[str, Any], now: float) -> None:
        """:param config: as in `STREAM.CREATE`"""
        self.config = dict(config)
        self.name: str = config["name"]
        self.created = f"{now:.9f}"
        self.last = 0
        self.full = False
        """Whether it has no room (10077)."""
        self.takes = picker(tuple(config["subjects"]))
        self._bytes = 0
        self._messages: dict[int, Stored] = {}
        self._of_subject: dict[str, deque[int]] = {}
        self._old: dict[str, deque[tuple[float, Stored | None]]] = {}
        """By subject, since when it held what."""
        self._expiring: list[tuple[float, int]] = []
        self._known_ids: dict[str, tuple[float, int]] = {}
        self._staged: dict[str, _Staged] = {}
        self._used_batches: set[str] = set()

    def __len__(self) -> int:
        return len(self._messages)

    # ---- reading

    def get(self, subject: str, now: float, stale_s: float = 0.0) -> Stored | None:
        """The last message of a subject, or what was the last one `stale_s` seconds ago, as far back as that
        is known.
        """
        self.expire(now)
        if stale_s > 0:
            for since, found in reversed(self._old.get(subject, ())):
                if since <= now - stale_s:
                    return found
            return None
        sequences = self._of_subject.get(subject)
        return self._messages[sequences[-1]] if sequences else None

    def after(self, sequence: int) -> Iterator[Stored]:
        """Messages behind `sequence`, in order."""
        if sequence >= self.last:
            return iter(())
        return (found for number, found in self._messages.items() if number > sequence)

    def expire(self, now: float) -> None:
        """Remove what has outlived its TTL."""
        while self._expiring and self._expiring[0][0] <= now:
            due, sequence = heapq.heappop(self._expiring)
            found = self._messages.get(sequence)
            if found is not None:
                self._remove(found, due)

    def bring_back(self) -> list[Stored]:
        """Do what a server that is killed does (nats-server#8505): where nothing is left of a subject, the
        last message that was replaced is there again. What expired or was removed stays away: that it was, is
        written down.
        """
        found: list[Stored] = []
        for subject, states in self._old.items():
            replaced = [one for (_, one), (_, after) in pairwise(states) if one is not None and after is not None]
            if replaced and subject not in self._of_subject:
                found.append(replaced[-1])
                self._of_subject[subject] = deque((replaced[-1].sequence,))
                self._remember(subject, replaced[-1].stored_at, replaced[-1])
        self._bytes += sum(map(_size, found))
        self._messages = {one.sequence: one for one in sorted((*self._messages.values(), *found), key=_sequence)}
        return found

    # ---- writing

    def store(self, message: Incoming, now: float) -> Stored | Refusal | int:
        """Store one message; returns it, why not, or the sequence of the one with the same id that was stored
        before.
        """
        self.expire(now)
        identity = message.lines.get(headers.MESSAGE_ID)
        if identity is not None:
            known = self._known_ids.get(identity)
            if known is not None and known[0] > now:
                return known[1]
        refusal = self._refusal(message)
        if refusal is not None:
            return refusal
        stored = self._put(message, now)
        if identity is not None:
            window_s = self.config.get("duplicate_window", 0) / 1e9
            self._known_ids[identity] = (now + window_s, stored.sequence)
        return stored

    def stage(self, message: Incoming, now: float) -> Sequence[Stored] | Refusal | None:
        """One message of an atomic batch: `None` until the last one; then all of them stored, or why none is.

        All checks are made at the commit, against the state before the batch (ADR-50).
        """
        self.expire(now)
        if not self.config.get("allow_atomic"):
            return Refusal(ATOMIC_DISABLED, "atomic publish is disabled")
        batch, number = message.lines[headers.BATCH_ID], int(message.lines[headers.BATCH_SEQUENCE])
        staged = self._staged.get(batch)
        if number == 1 and batch not in self._used_batches:
            self._used_batches.add(batch)
            staged = self._staged[batch] = _Staged(now, [])
        whole = staged is not None and number == len(staged.messages) + 1 and now - staged.began_at < BATCH_ABANDONED_S
        if staged is None or not whole:
            self._staged.pop(batch, None)
            return Refusal(errors.BATCH_INCOMPLETE, "atomic publish batch is incomplete")
        staged.messages.append(message)
        if headers.BATCH_COMMIT not in message.lines:
            return None
        del self._staged[batch]
        return self._commit(staged.messages, now)

    def purge(self, pattern: str, now: float) -> int:
        """Remove all messages of the subjects; returns how many."""
        matches = picker((pattern,))
        found = [one for one in self._messages.values() if matches(one.subject)]
        for one in found:
            self._remove(one, now)
        return len(found)

    def _commit(self, messages: Sequence[Incoming], now: float) -> Sequence[Stored] | Refusal:
        if len({message.subject for message in messages}) < len(messages):
            return Refusal(errors.WRONG_LAST_SEQUENCE_NO_NUMBER, "wrong last sequence")
        for message in messages:
            refusal = self._refusal(message)
            if refusal is not None:
                return refusal
        return [self._put(message, now) for message in messages]

    def _refusal(self, message: Incoming) -> Refusal | None:
        if self.full or 0 < self.config.get("max_bytes", -1) < self._bytes + _size(message):
            return Refusal(NO_ROOM, "maximum bytes exceeded")
        if headers.TTL in message.lines and not self.config.get("allow_msg_ttl"):
            return Refusal(TTL_DISABLED, "per-message TTL is disabled")
        expected = message.expected
        if expected is None:
            return None
        sequences = self._of_subject.get(message.subject)
        last = sequences[-1] if sequences else NO_MESSAGE
        return None if last == expected else Refusal(errors.WRONG_LAST_SEQUENCE, f"wrong last sequence: {last}")

    def _put(self, message: Incoming, now: float) -> Stored:
        self.last += 1
        stored = Stored(message.subject, message.payload, message.head, self.last, now)
        self._messages[self.last] = stored
        self._bytes += _size(stored)
        sequences = self._of_subject.setdefault(message.subject, deque())
        sequences.append(self.last)
        most = self.config.get("max_msgs_per_subject", -1)
        while 0 < most < len(sequences):
            self._bytes -= _size(self._messages.pop(sequences.popleft()))
        self._remember(message.subject, now, stored)
        ttl = message.lines.get(headers.TTL)
        if ttl is not None:
            heapq.heappush(self._expiring, (now + float(ttl.rstrip("s")), self.last))
        return stored

    def _remove(self, stored: Stored, now: float) -> None:
        self._bytes -= _size(self._messages.pop(stored.sequence))
        sequences = self._of_subject[stored.subject]
        sequences.remove(stored.sequence)
        if not sequences:
            del self._of_subject[stored.subject]
            self._remember(stored.subject, now, None)

    def _remember(self, subject: str, now: float, stored: Stored | None) -> None:
        self._old.setdefault(subject, deque(maxlen=KEPT_OLD)).append((now, stored))


def _sequence(message: Stored) -> int:
    return message.sequence


def _size(message: Incoming | Stored) -> int:
    return len(message.subject) + len(message.payload) + len(message.head) + FRAME_BYTES
