"""Placements that cannot be read: what a binder that has taken over finds of them in its listing.

Room that is taken would look free, and a uid that is bound would look unbound: so it does not lead. It keeps
the lease, says what it is, and looks now and then whether that is still so. Somebody who mends it (`podyard
mend`) moves the fence; then the term ends, and the next one lists anew. Nothing is guessed: what a binding
was is known to people at best.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from podyard.binder.core.effects import Blocked, Inspect, Stored
from podyard.cluster.changes import Unreadable
from podyard.proto import subjects

LOOK_AGAIN_S: Final = 2.0
"""How often to look: often enough for whoever waits for it, and next to no work."""

_BINDINGS: Final = subjects.ALL_BINDINGS.removesuffix(">")


class Blocking:
    """What is in the way of leading, by subject; nothing as long as `look_at` is None."""

    def __init__(self) -> None:
        self.look_at: float | None = None
        """When to look next, seconds since 1970, UTC."""
        self._sequences: dict[str, int] = {}

    def begin(self, found: Iterable[Unreadable], now: float) -> Blocked:
        """These stand in the way."""
        found = tuple(found)
        self._sequences = {one.subject: one.sequence for one in found}
        self.look_at = now + LOOK_AGAIN_S
        return Blocked(found)

    def look(self, now: float) -> Inspect:
        """What to read."""
        self.look_at = now + LOOK_AGAIN_S
        return Inspect("", tuple(self._sequences))

    def is_other(self, stored: Mapping[str, Stored]) -> bool:
        """Whether something else than before is stored there, or nothing."""
        return any(
            (there := stored.get(subject)) is None or there.sequence != sequence
            for subject, sequence in self._sequences.items()
        )


def first_unreadable(stored: Mapping[str, Stored]) -> Unreadable | None:
    """The first of these that is a binding, or was one, and cannot be read; other subjects are not asked for
    what they hold."""
    for subject, found in stored.items():
        if found.placement is None and subject.startswith(_BINDINGS):
            return Unreadable(subject, found.sequence, found.fault)
    return None
