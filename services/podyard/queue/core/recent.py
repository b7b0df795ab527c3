"""The last events that came: what a pod that only the safety flush rescued may have missed."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from podyard.cluster.changes import Change, ClusterChangeEvent
from podyard.framework.events import ClusterEvent
from podyard.queue.core.messages import Incoming

KEPT: Final = 2048
"""Changes remembered; semi-arbitrary: the flush comes after five minutes."""

LONGEST: Final = 320
"""Letters of a name or id that are kept: a namespace, a slash and a name have 317 at most."""

ENTRY_BYTES: Final = 2048
"""What one takes at most, objects and their versions not held: 4 MiB for all."""


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event, with what finds it again."""

    event: str
    """Label, e.g. NodeUpdateNodeTaint."""
    object: str
    id: str
    """Of its requeue record, if it reached a hint; later events of one change have this and a number behind
    it.
    """
    position: int
    """CLUSTER sequence; 0 if it has none."""
    at: float
    """When the queue saw it, seconds since 1970, UTC."""


class _Seen(NamedTuple):
    """What is kept of a change: what happened, not the objects that it happened to."""

    at: float
    events: Sequence[ClusterChangeEvent | ClusterEvent]
    object: str
    id: str
    position: int


class Recent:
    """Also of events that no plugin registered: a registration may be what is missing."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[_Seen] = deque(maxlen=kept)
        self._forgot_at = 0.0

    def note(self, one: Change | Incoming, now: float) -> None:
        """It happened. Of a change that amounts to no event there is nothing to remember: don't tell it."""
        if len(self._seen) == self._seen.maxlen:
            self._forgot_at = self._seen[0].at
        if isinstance(one, Incoming):
            seen = _Seen(now, (one.event,), one.object_name[:LONGEST], one.id[:LONGEST], one.position)
        else:
            _, namespace, name = one.key
            told = f"{namespace}/{name}" if namespace else name
            sequence = one.origin.sequence
            seen = _Seen(now, one.events, told[:LONGEST], str(sequence), sequence)
        self._seen.append(seen)

    def reaches(self, since: float) -> bool:
        """Whether all events from `since` on are remembered."""
        return self._forgot_at < since

    def events(self, since: float) -> list[Happened]:
        """Those from `since` on that are remembered, oldest first."""
        return [
            Happened(event=event.label, object=seen.object, id=seen.id, position=seen.position, at=seen.at)
            for seen in self._seen
            if seen.at >= since
            for event in seen.events
        ]
