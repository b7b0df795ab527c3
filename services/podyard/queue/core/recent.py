"""The last events that came: what a pod that only the safety flush rescued may have missed."""

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from podyard.cluster.changes import Change
from podyard.queue.core.effects import Incoming

KEPT: Final = 2048
"""Changes remembered; semi-arbitrary: references only, and the flush comes after five minutes."""


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event, with what finds it again."""

    event: str
    """Label, e.g. NodeUpdateNodeTaint."""
    object: str
    id: str
    """Of its requeue record, if it reached a hint; later events of one change have this and a number behind it."""
    position: int
    """CLUSTER sequence; 0 if it has none."""
    at: float
    """When the queue saw it, seconds since 1970, UTC."""


class Recent:
    """Also of events that no plugin registered: a registration may be what is missing."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[tuple[float, Change | Incoming]] = deque(maxlen=kept)
        self._forgot_at = 0.0

    def note(self, one: Change | Incoming, now: float) -> None:
        """It happened. Costs no more than remembering it: it is read when somebody asks."""
        if len(self._seen) == self._seen.maxlen:
            self._forgot_at = self._seen[0][0]
        self._seen.append((now, one))

    def reaches(self, since: float) -> bool:
        """Whether all events from `since` on are remembered."""
        return self._forgot_at < since

    def events(self, since: float) -> list[Happened]:
        """Those from `since` on that are remembered, oldest first."""
        return [found for at, one in self._seen if at >= since for found in _told(one, at)]


def _told(one: Change | Incoming, at: float) -> Iterator[Happened]:
    if isinstance(one, Incoming):
        yield Happened(event=one.event.label, object=one.object_name, id=one.id, position=one.position, at=at)
        return
    key, sequence = one.key, one.sequence
    name = f"{key.namespace}/{key.name}" if key.namespace else key.name
    for event in one.events:
        yield Happened(event=event.label, object=name, id=str(sequence), position=sequence, at=at)
