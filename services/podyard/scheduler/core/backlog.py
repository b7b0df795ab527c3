"""Popped pods that were not looked at yet, in the order in which they came."""

from collections import deque
from collections.abc import Iterator

import msgspec

from podyard.proto.binder_api import POSITION_WAIT_S
from podyard.proto.queue_api import PoppedPod, PopReply


class Batch(msgspec.Struct, gc=False):
    """Pods of one pop answer. The view must have reached `position` first, and not later than `due_at`."""

    position: int
    pods: deque[PoppedPod]
    due_at: float


class Backlog:
    """A batch is behind the one that came before it, also if its position is reached earlier."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._pods = 0

    def __len__(self) -> int:
        """Pods."""
        return self._pods

    def add(self, reply: PopReply, now: float) -> None:
        """The queue handed out pods."""
        self._batches.append(Batch(reply.position, deque(reply.pods), now + POSITION_WAIT_S))
        self._pods += len(reply.pods)

    def clear(self) -> None:
        """None of them is this scheduler's any more."""
        self._batches.clear()
        self._pods = 0

    def __iter__(self) -> Iterator[Batch]:
        """In the order in which they came."""
        return iter(self._batches)

    def attempts(self) -> list[str]:
        """Ids of all."""
        return [pod.attempt for batch in self._batches for pod in batch.pods]

    def is_ready(self, position: int) -> bool:
        """Whether there is a pod to be tried on a view that has reached `position`."""
        return bool(self._batches) and self._batches[0].position <= position

    def take(self, position: int) -> PoppedPod | None:
        """The next pod to be tried on a view that has reached `position`."""
        if not self._batches or self._batches[0].position > position:
            return None
        pods = self._batches[0].pods
        popped = pods.popleft()
        self._pods -= 1
        if not pods:
            self._batches.popleft()
        return popped

    def deadlines(self, position: int) -> list[float]:
        """When batches have waited long enough, if the view does not go on from `position`."""
        return [batch.due_at for batch in self._batches if batch.position > position]

    def take_late(self, position: int, now: float) -> list[Batch]:
        """Batches whose position the view has not reached in time; they are not to be tried any more."""
        late = [batch for batch in self._batches if batch.position > position and batch.due_at <= now]
        for batch in late:
            self._batches.remove(batch)
            self._pods -= len(batch.pods)
        return late
