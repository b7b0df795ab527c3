"""When a census of the stream is taken, and what came back is deleted again
(docs/rules.md, killed-server-brings-back).

A census is due a quarter of a marker's life after something ended behind the last one, or after a listing:
nobody knows what ended before. So whatever was deleted is in a census, as what did not live, long before its
marker expires (`podyard.bus.watch` says what readers do with it).

A first census says nothing. Every other one follows the one before it, as this reader of the stream has seen
it: so none is stored behind a later one, nor in a stream that was made again meanwhile, where its numbers
mean other messages.
"""

from array import array
from collections import deque
from typing import Final, NamedTuple, TypeAlias

PART: Final = 0.25
"""Of a marker's life: how long after the first end the census is due."""
AGAIN: Final = PART / 5
"""Of a marker's life: between one listing that lacks messages and the next."""
AT_ONCE: Final = 64
"""Messages that are deleted again at a time."""
BEHIND_S: Final = 1.0
"""Before it is looked again whether the stream's reader has got as far as its listing was to go."""
RETRY_S: Final = 5.0
"""Before what could not be deleted is tried again."""
MOST_BACK: Final = 65_536
"""Messages that came back and are remembered; others are found by the next listing."""
ENTRY_BYTES: Final = 200
"""What the roll takes of a message besides its subject's letters (CPython 3.11: 120 to 180)."""
OURS: Final = "cluster."
"""What subjects begin with that are deleted again: placements are the binder's, of pods that are no more."""


class Roll:
    """The sequences of all messages that live and stay, by subject.

    A message with a TTL is not one of them: whatever it replaced has ended.
    """

    def __init__(self) -> None:
        self.position = 0
        """Everything up to this sequence was read, or was not there any more."""
        self.read = 0
        """Messages that a listing has read of those that the stream held when it began."""
        self._target = 0
        """The stream's last sequence when the listing began."""
        self._sequences: dict[str, int] = {}
        """In the order of the sequences."""

    def __len__(self) -> int:
        return len(self._sequences)

    def begin(self, target: int) -> None:
        """A listing begins, of what there is up to the stream's sequence `target`."""
        self._sequences.clear()
        self.position = self.read = 0
        self._target = target

    def passed(self, sequence: int) -> None:
        """Everything up to this sequence was read, or is not there any more."""
        self.position = max(self.position, sequence)

    def note_other(self, sequence: int) -> None:
        """A message was read that is none of these."""
        self._read(sequence)

    def note(self, subject: str, sequence: int, *, expires: bool) -> bool:
        """A message was read; returns whether one that stayed has ended with it."""
        self._read(sequence)
        known = self._sequences.pop(subject, None)
        if not expires:
            self._sequences[subject] = sequence
        return expires and known is not None

    def _read(self, sequence: int) -> None:
        if sequence <= self._target:
            self.read += 1
        self.position = max(self.position, sequence)

    def sequences(self) -> "array[int]":
        """All of them, in their order."""
        return array("Q", sorted(self._sequences.values()))


class Back(NamedTuple):
    """A message that came back."""

    subject: str
    sequence: int


# ---- what the core wants done ------------------------------------------------------------------------------


class Take(NamedTuple):
    """Store a census over the one with the sequence `expect`; answered by `Taken`."""

    expect: int
    position: int
    living: "array[int]"


class Clear(NamedTuple):
    """Put markers in the place of these, where they still are the last of their subjects; answered by
    `Cleared`."""

    listing: int
    messages: tuple[Back, ...]


class Relist(NamedTuple):
    """List again."""

    reason: str


Ask: TypeAlias = Take | Clear
Effect: TypeAlias = Ask | Relist

# ---- what the core is told ---------------------------------------------------------------------------------


class Listing(NamedTuple):
    """A listing begins: the roll is empty."""


class Found(NamedTuple):
    """A listing passed over a message, since it had been deleted."""

    message: Back


class Listed(NamedTuple):
    """The roll holds all that lives."""

    held: int
    """Messages that the stream's leader said it held when the listing began."""
    last: int
    """The stream's last sequence."""
    replicas: int
    """On how many servers the stream is."""


class Seen(NamedTuple):
    """A census was read. The position is 0 of one that says nothing, or cannot be read."""

    sequence: int
    position: int


class Ended(NamedTuple):
    """Something that stayed has ended."""


class Taken(NamedTuple):
    """A census was stored, or not."""

    stored: bool


class Cleared(NamedTuple):
    """`left` could not be deleted yet."""

    listing: int
    left: tuple[Back, ...]


class Tick(NamedTuple):
    """Time passed."""


Message: TypeAlias = Listing | Found | Listed | Seen | Ended | Taken | Cleared | Tick


class CensusTaker:
    """The state machine of one term. It reads the roll, which its shell keeps."""

    def __init__(self, roll: Roll, marker_life_s: float) -> None:
        self._roll = roll
        self._wait_s = PART * marker_life_s
        self._again_s = AGAIN * marker_life_s
        self._listed = False
        self._last = 0
        """The stream's last sequence when it was listed."""
        self._short = ""
        """Why the roll cannot be trusted; empty if it can."""
        self._seen = Seen(0, 0)
        """The last census; sequence 0: there is none."""
        self._stale = False
        """Something has ended, for all that is known, that the last census does not know of."""
        self._due: float | None = None
        """A listing does not put it off; while it runs nothing is taken."""
        self._taking = False
        self._listing = 0
        self._back: deque[Back] = deque()
        self._clearing = False
        self._clear_at: float | None = None

    @property
    def wake_at(self) -> float | None:
        """When time alone makes something due."""
        dues = self._due if self._listed else None, self._clear_at
        return min((due for due in dues if due is not None), default=None)

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done."""
        match message:
            case Listing():
                self._begin()
            case Found(back):
                if back.subject.startswith(OURS) and len(self._back) < MOST_BACK:
                    self._back.append(back)
            case Listed():
                return self._complete(message, now)
            case Seen():
                self._seen = message
                if self._stale and self._listed and message.position == 0 and not self._taking:
                    self._due = now
            case Ended():
                self._stale = True
                self._want(now)
            case Taken(stored):
                self._settle(stored, now)
            case Cleared():
                return self._cleared(message, now)
            case Tick():
                pass
        return self._do_what_is_due(now)

    def _begin(self) -> None:
        self._listed, self._short, self._stale = False, "", False
        self._seen = Seen(0, 0)
        self._clear_at = None
        self._listing += 1
        self._back.clear()

    def _complete(self, listed: Listed, now: float) -> list[Effect]:
        """What ended while nobody looked, and whose marker has expired, shows in no message: the census is
        good only if it is the last that happened."""
        self._listed, self._last = True, listed.last
        if listed.replicas > 1:
            self._doubt(listed.held)
        self._stale = not (self._seen.sequence == self._seen.position + 1 == listed.last) and listed.last > 0
        if self._stale:
            self._want(now)
        else:
            self._due = None
        return [*self._clear(), *self._do_what_is_due(now)]

    def _doubt(self, held: int) -> None:
        """There are several servers (docs/rules.md, a-server-may-lack-what-lives)."""
        self._back.clear()
        if self._roll.read < held:
            self._short = f"{self._roll.read} messages were listed, the stream held {held}"

    def _want(self, now: float) -> None:
        if self._due is None and self._listed:
            self._due = now + self._wait_s

    def _settle(self, stored: bool, now: float) -> None:
        if not self._taking:
            return
        self._taking = False
        if not stored:
            self._stale = True
        if self._stale:
            opened = stored and self._listed and self._seen.sequence > 0 and self._seen.position == 0
            self._due = now if opened else self._due
            self._want(now)

    def _do_what_is_due(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if self._clear_at is not None and self._clear_at <= now:
            self._clear_at = None
            effects += self._clear()
        if self._listed and self._due is not None and self._due <= now:
            self._due = None
            if self._taking:
                self._want(now)
            elif self._short:
                effects.append(Relist(self._short))
                self._due = now + self._again_s
            elif self._roll.position < self._last:  # the server that we read from is behind the stream's leader
                self._due = now + BEHIND_S
            else:
                effects.append(self._take())
        return effects

    def _take(self) -> Take:
        self._taking = True
        if self._seen.sequence == 0:
            return Take(0, 0, array("Q"))
        self._stale = False
        return Take(self._seen.sequence, self._roll.position, self._roll.sequences())

    def _clear(self) -> list[Effect]:
        if self._clearing or not self._back:
            return []
        self._clearing = True
        messages = tuple(self._back.popleft() for _ in range(min(AT_ONCE, len(self._back))))
        return [Clear(self._listing, messages)]

    def _cleared(self, cleared: Cleared, now: float) -> list[Effect]:
        if not self._clearing:
            return []
        self._clearing = False
        if cleared.left and cleared.listing == self._listing:
            self._back.extendleft(reversed(cleared.left))
            self._clear_at = now + RETRY_S
            return []
        return self._clear() if self._listed else []
