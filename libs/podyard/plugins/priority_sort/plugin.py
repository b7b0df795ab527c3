"""Highest priority first, then the longest in the queue.

Source: kube-scheduler v1.36.2, plugins/queuesort/priority_sort.go.
"""

from typing import ClassVar, Final

from podyard.framework.interfaces import QueuedPod

NAME: Final = "PrioritySort"


class PrioritySort:
    """QueueSort."""

    name: ClassVar[str] = NAME

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """Priority descending, then the time at which it was put into the queue
        (docs/rules.md, equal-priority-goes-by-age)."""
        return (-queued.priority, queued.queued_at)
