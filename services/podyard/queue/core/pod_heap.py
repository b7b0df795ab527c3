"""Pods in order, with removal from the middle."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from podyard.queue.core.queued_pod import QueuedPod

_Entry: TypeAlias = tuple[Any, int, QueuedPod]
"""Sort key (anything that compares), number, pod."""

SLACK = 64
"""Dead entries tolerated before the heap is made anew; semi-arbitrary."""


class PodHeap:
    """A priority queue of pods. A removed pod's entry stays in the heap, dead, until it comes up or they are too many.

    Invariant: `_live[uid]` is the number of the pod's only live entry. Equal keys come out in the order they were put in.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._live: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, pod: QueuedPod) -> bool:
        return pod.uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods in order; sorts, so not for hot paths."""
        live = self._live
        return iter([pod for _, number, pod in sorted(self._heap) if live.get(pod.uid) == number])

    def push(self, key: Any, pod: QueuedPod) -> None:
        """Put `pod` in, or move it to where its new key belongs."""
        self._count += 1
        self._live[pod.uid] = self._count
        heappush(self._heap, (key, self._count, pod))
        if len(self._heap) > 2 * len(self._live) + SLACK:
            self._heap = [entry for entry in self._heap if self._live.get(entry[2].uid) == entry[1]]
            heapify(self._heap)

    def head(self) -> QueuedPod | None:
        """The first pod, left where it is."""
        while self._heap:
            _, number, pod = self._heap[0]
            if self._live.get(pod.uid) == number:
                return pod
            heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the first pod out."""
        pod = self.head()
        if pod is not None:
            heappop(self._heap)
            del self._live[pod.uid]
        return pod

    def remove(self, pod: QueuedPod) -> bool:
        """Take `pod` out; whether it was in."""
        return self._live.pop(pod.uid, None) is not None
