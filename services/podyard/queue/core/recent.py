"""The last events that came: what a pod that only the safety flush rescued may have missed."""

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

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


_Seen: TypeAlias = tuple[float, "Sequence[ClusterChangeEvent | ClusterEvent]", str, str | None, int]
"""What is kept of a change: when, what happened, the object's name (not the object), id (`None`: the position
says it) and position. A plain tuple: one is made of every change, and read only when a pod was rescued.
"""


class Recent:
    """Also of events that no plugin registered: a registration may be what is missing."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[_Seen] = deque(maxlen=kept)
        self._forgot_at = 0.0

    def note(self, one: Change | Incoming, now: float) -> None:
        """It happened. Of a change that amounts to no event there is nothing to remember: don't tell it."""
        if len(self._seen) == self._seen.maxlen:
            self._forgot_at = self._seen[0][0]
        if isinstance(one, Incoming):
            self._seen.append((now, (one.event,), one.object_name[:LONGEST], one.id[:LONGEST], one.position))
        else:
            self._seen.append((now, one.events, one.object_name[:LONGEST], None, one.origin.sequence))

    def reaches(self, since: float) -> bool:
        """Whether all events from `since` on are remembered."""
        return self._forgot_at < since

    def events(self, since: float) -> list[Happened]:
        """Those from `since` on that are remembered, oldest first."""
        return [
            Happened(
                event=event.label,
                object=name,
                id=str(position) if event_id is None else event_id,
                position=position,
                at=at,
            )
            for at, happened, name, event_id, position in self._seen
            if at >= since
            for event in happened
        ]
