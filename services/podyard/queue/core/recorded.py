"""Which pods have records in DECISIONS: they go with their pods."""

from collections import deque
from typing import Final

from podyard.proto.message import PodRef
from podyard.queue.core.effects import Purge

PURGE_AGAIN_S: Final = 10.0
"""How much later the records of a deleted pod are purged once more: a scheduler may store that of its last
attempt after the first time.
"""


class Recorded:
    """Pods that have records, and those whose records are purged once more."""

    def __init__(self) -> None:
        self._uids: set[str] = set()
        self._again: deque[tuple[float, PodRef]] = deque()
        """When, in order."""

    def add(self, uid: str) -> None:
        """Somebody writes, or has written, a record of this pod."""
        self._uids.add(uid)

    def gone(self, pod: PodRef, now: float) -> list[Purge]:
        """The pod's object was deleted; nothing is to be done if it has no record."""
        return self.purge(pod, now) if pod.uid in self._uids else []

    def purge(self, pod: PodRef, now: float) -> list[Purge]:
        """The pod is gone, and may have records, or get one."""
        self._uids.discard(pod.uid)
        self._again.append((now + PURGE_AGAIN_S, pod))
        return [Purge(pod)]

    def due(self, now: float) -> list[Purge]:
        """Those that are purged once more now."""
        found: list[Purge] = []
        while self._again and self._again[0][0] <= now:
            found.append(Purge(self._again.popleft()[1]))
        return found
