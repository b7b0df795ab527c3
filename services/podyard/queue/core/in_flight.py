"""Pods being scheduled, and the events that came meanwhile.

One ordered list holds markers of pods and events; a pod that comes back is judged by the events after its own
marker (docs/rules.md, events-in-flight-are-replayed). Markers go by uid, never by name
(docs/rules.md, every-pop-ends-once).

Source: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents).
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from podyard.framework import events
from podyard.queue.core.messages import Incoming

MOST_EVENTS: Final = 20_000
"""Kept for pods in flight. An attempt takes milliseconds: this is seconds of a storm, for one that hangs."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""What they may take, with the versions that they are about: 20,000 of 2 KiB as JSON would be 258."""
EVENT_BYTES: Final = 1024
"""What an event takes besides its object."""
DECODED: Final = 6
"""An object in memory takes so many times what it does as JSON, at most (measured: 3.4 to 5.2; of small
ones `EVENT_BYTES` has the rest)."""


POD_POPPED: Final = "PodPopped"
"""As what a pod in flight is counted among the events. Source: pkg/scheduler/metrics/metrics.go."""
TOO_MANY: Final = "more events came meanwhile than are kept"


Recorded: TypeAlias = tuple[int, Incoming]
"""An event in the list, and its number."""


class InFlight:
    """Markers and events in the order in which they came.

    Invariant: no event stands before the oldest marker, since nobody would look at it.

    :param most: events that are kept; above it the older half goes, and pods that it was kept for are tried
        again whatever came
    :param most_bytes: likewise, of what they take
    """

    def __init__(self, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._forgotten = 0
        """The last event that went early."""
        self._markers: OrderedDict[str, int] = OrderedDict()
        self._events: deque[Recorded] = deque()
        self._number = 0

    def __len__(self) -> int:
        return len(self._markers)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def uids(self) -> tuple[str, ...]:
        """Pods in flight, in the order of their pops."""
        return tuple(self._markers)

    def start(self, uid: str) -> None:
        """A pod was popped: events from here on are its business."""
        self._number += 1
        self._markers[uid] = self._number

    def record(self, incoming: Incoming) -> bool:
        """Keep an event for the pods in flight; whether there are any."""
        if not self._markers:
            return False
        self._number += 1
        self._events.append((self._number, incoming))
        self._bytes += _taken(incoming)
        if len(self._events) > self._most or self._bytes > self._most_bytes:
            self._forget()
        return True

    def _forget(self) -> None:
        """Half of what is kept, the older one."""
        number, taken = len(self._events) - len(self._events) // 2, self._most_bytes // 2
        while self._events and (len(self._events) > number or self._bytes > taken):
            self._forgotten = self._pop()

    def _pop(self) -> int:
        """The oldest event goes; its number."""
        number, incoming = self._events.popleft()
        self._bytes -= _taken(incoming)
        return number

    def events_for(self, uid: str) -> Iterator[Incoming]:
        """Events since the pod's pop, oldest first; none for a pod that is not in flight."""
        found = list[Incoming]()
        marker = self._markers.get(uid)
        if marker is not None:
            for number, incoming in reversed(self._events):  # those before its marker are for others: they may be many
                if number < marker:
                    break
                found.append(incoming)
            if marker < self._forgotten:
                found.append(Incoming(event=events.RETRY_ALL, why=TOO_MANY))
        return reversed(found)

    def done(self, uid: str) -> bool:
        """The pod's attempt is over: forget its marker, and the events that nobody needs any more. Whether it
        was in flight.
        """
        if self._markers.pop(uid, None) is None:
            return False
        if self._events:
            oldest = next(iter(self._markers.values()), self._number + 1)
            while self._events and self._events[0][0] < oldest:
                self._pop()
        return True

    def counts(self) -> dict[str, int]:
        """Events that are kept by label, and how many pods are in flight."""
        found = Counter(incoming.event for _, incoming in list(self._events))
        return {POD_POPPED: len(self._markers)} | {event.label: count for event, count in found.items()}

    def listing(self) -> list[str]:
        """Markers as `pod:<uid>` and labels of events, in order; for people and tests."""
        entries = [(number, f"pod:{uid}") for uid, number in self._markers.items()]
        entries += [(number, incoming.event.label) for number, incoming in self._events]
        return [text for _, text in sorted(entries)]


def _taken(incoming: Incoming) -> int:
    return EVENT_BYTES + DECODED * incoming.bytes
