"""Events that wait to be sent: so many, and so many a second. Pure.

Source of the numbers: kubernetes v1.36.2, pkg/kubelet/apis/config/v1beta1/defaults.go (EventRecordQPS);
client-go v0.36.2, tools/record/event.go (maxQueuedEvents). There the newest is dropped if too many wait, here
the oldest.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from podyard.memory.latest import Latest
from podyard.proto.operations import K8sEvent

MOST: Final = 1000
"""Events that may wait, of at most some 3 KiB."""
A_SECOND: Final = 50
"""Events that are sent within a second."""


class Outbox:
    """Of one process. An event that happens again while it waits is sent once, with its last count."""

    def __init__(self) -> None:
        self._waiting = Latest[str, K8sEvent]()
        self._sent = deque[float](maxlen=A_SECOND)
        """When the last ones were taken."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: K8sEvent) -> int:
        """Have an event sent; returns how many others were dropped for it."""
        self._waiting[event.id] = event
        return self._drop()

    def take(self, now: float) -> list[K8sEvent]:
        """Those that may be sent now, the oldest first; they wait no more."""
        free = A_SECOND - sum(1 for at in self._sent if at > now - 1)
        taken = [self._waiting.pop_oldest()[1] for _ in range(min(free, len(self._waiting)))]
        self._sent.extend(now for _ in taken)
        return taken

    def give_back(self, events: Iterable[K8sEvent]) -> int:
        """They could not be sent; returns how many were dropped. One that has happened again since waits
        already."""
        for event in reversed(list(events)):
            if event.id not in self._waiting:
                self._waiting[event.id] = event
                self._waiting.move_to_end(event.id, last=False)
        return self._drop()

    def due_at(self, now: float) -> float:
        """When the next one may be sent."""
        if len(self._sent) < A_SECOND:
            return now
        return max(now, self._sent[0] + 1)

    def _drop(self) -> int:
        dropped = max(len(self._waiting) - MOST, 0)
        for _ in range(dropped):
            self._waiting.pop_oldest()
        return dropped
