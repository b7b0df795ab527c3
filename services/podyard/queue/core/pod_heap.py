"""Pods in order, with removal from the middle."""

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from podyard.queue.core.queued_pod import QueuedPod

_Entry: TypeAlias = tuple[Any, int, QueuedPod]
"""Sort key (anything that compares), number, pod."""

SLACK = 64
"""Dead entries tolerated before the heap is made anew; semi-arbitrary."""


def _put_in(pod: QueuedPod) -> None:
    """All alike: in the order in which they were put in."""


def _untold(fault: Exception) -> None:
    """Nobody wants to know."""


class PodHeap:
    """A priority queue of pods. A removed pod's entry stays, dead, until it comes up or they are too many.

    Most pods come in the order in which they go: they stand in line. Only who comes before the last in line
    goes into a heap, which costs more the more pods wait.

    Sort keys come from a plugin. If two of them do not compare, all pods are put in plain order, and so are
    those that come, until none is left: a heap in which a comparison failed half way has no order.

    Invariants: `_live[uid]` is the number of the pod's only live entry; `_line` is sorted. Equal keys come
    out in the order they were put in.
    """

    def __init__(
        self, plain: Callable[[QueuedPod], Any] = _put_in, failed: Callable[[Exception], None] = _untold
    ) -> None:
        """
        :param plain: a sort key that compares with all others that it makes
        :param failed: told why two sort keys did not compare
        """
        self._line: deque[_Entry] = deque()
        self._heap: list[_Entry] = []
        self._live: dict[str, int] = {}
        self._count = 0
        self._plain = plain
        self._failed = failed
        self._is_plain = False

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, pod: QueuedPod) -> bool:
        return pod.uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods in order; sorts, so not for hot paths."""
        live = self._live
        try:
            entries = sorted((*self._line, *self._heap))
        except Exception as fault:  # the boundary to the plugin whose keys these are
            self._order_plainly(fault)
            entries = list(self._line)
        return iter([pod for _, number, pod in entries if live.get(pod.uid) == number])

    def push(self, key: Any, pod: QueuedPod) -> None:
        """Put `pod` in, or move it to where its new key belongs."""
        if not self._live:
            self._line.clear()
            self._heap.clear()
            self._is_plain = False
        self._count += 1
        self._live[pod.uid] = self._count
        entry = (self._plain(pod) if self._is_plain else key, self._count, pod)
        try:
            if not self._line or self._line[-1] < entry:
                self._line.append(entry)
            else:
                heappush(self._heap, entry)
            if len(self._line) + len(self._heap) > 2 * len(self._live) + SLACK:
                self._line = deque(filter(self._is_live, self._line))
                self._heap = list(filter(self._is_live, self._heap))
                heapify(self._heap)
        except Exception as fault:  # the boundary to the plugin whose keys these are
            self._order_plainly(fault, entry)

    def _is_live(self, entry: _Entry) -> bool:
        return self._live.get(entry[2].uid) == entry[1]

    def head(self) -> QueuedPod | None:
        """The first pod, left where it is."""
        entry = self._first()
        return None if entry is None else entry[2]

    def pop(self) -> QueuedPod | None:
        """Take the first pod out."""
        entry = self._first()
        if entry is None:
            return None
        pod = entry[2]
        del self._live[pod.uid]
        self._take(entry)
        return pod

    def _first(self) -> _Entry | None:
        """The first entry that lives; those before it go."""
        while self._line or self._heap:
            try:
                first = (
                    min(self._line[0], self._heap[0]) if self._line and self._heap else (self._line or self._heap)[0]
                )
            except Exception as fault:  # the boundary to the plugin whose keys these are
                self._order_plainly(fault)
                continue
            if self._is_live(first):
                return first
            self._take(first)
        return None

    def remove(self, pod: QueuedPod) -> bool:
        """Take `pod` out; whether it was in."""
        return self._live.pop(pod.uid, None) is not None

    def _take(self, entry: _Entry) -> None:
        """Of the foremost entry, which is dead."""
        if self._line and self._line[0] is entry:
            self._line.popleft()
            return
        try:
            heappop(self._heap)
        except Exception as fault:  # the boundary to the plugin whose keys these are
            self._order_plainly(fault)

    def _order_plainly(self, fault: Exception, *more: _Entry) -> None:
        """Every live entry is still there: `heapq` moves entries, and loses none, but the one that it takes
        out.

        :param more: that may be there, or not
        """
        self._is_plain = True
        live: dict[str, _Entry] = {}
        for _, number, pod in (*self._line, *self._heap, *more):
            if self._live.get(pod.uid) == number:
                live[pod.uid] = (self._plain(pod), number, pod)
        self._line = deque(sorted(live.values()))
        self._heap = []
        self._failed(fault)
