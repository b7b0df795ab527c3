"""How long a pod waits after a failed attempt.

Source: pkg/scheduler/backend/queue/backoff_queue.go (calculateBackoffDuration, alignToWindow,
isPodBackingoff).
"""

from math import floor

import msgspec

from podyard.queue.core.queued_pod import QueuedPod

MAX_DOUBLINGS = 62
"""Beyond it the maximum counts anyway; keeps the arithmetic in range (kubernetes#105094)."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Doubling from `initial_s` up to `max_s` seconds; `max_s` 0 means no backoff at all."""

    initial_s: float = 1.0
    max_s: float = 10.0

    def duration_s(self, pod: QueuedPod) -> float:
        """Seconds to wait after the pod's last failure; errors in a row count by themselves
        (docs/rules.md, errors-count-apart)."""
        count = pod.consecutive_errors or pod.unschedulable_count
        if count == 0:
            return 0.0
        return min(self.initial_s * 2 ** min(count - 1, MAX_DOUBLINGS), self.max_s)

    def start(self, pod: QueuedPod) -> None:
        """Set the pod's expiry from its counts and its timestamp, cut to whole seconds."""
        duration = self.duration_s(pod)
        pod.backoff_expiry = floor(pod.timestamp + duration) if duration > 0 else None


def is_backing_off(pod: QueuedPod, now: float) -> bool:
    """Whether the pod still waits. It does during the whole second in which its backoff ends
    (docs/rules.md, backoff-ends-with-its-second)."""
    return pod.backoff_expiry is not None and pod.backoff_expiry >= floor(now)
