"""One pod in the queue: the object, where it is, and what its attempts found."""

from typing import Literal, TypeAlias

from podyard.objects.core import Pod
from podyard.proto.decisions import WakeUp

Pool: TypeAlias = Literal["", "activeQ", "backoffQ", "errorBackoffQ", "unschedulable", "gated", "inFlight", "binding"]
"""Where a pod is; "" is nowhere (just made, or gone). A pod is in one pool at a time."""

NOBODY: frozenset[str] = frozenset()


class QueuedPod:
    """A pending pod; one per uid for as long as it is pending. Times are seconds since 1970, UTC.

    Source: pkg/scheduler/framework/types.go, QueuedPodInfo.
    """

    __slots__ = (
        "attempt",
        "attempts",
        "backoff_expiry",
        "causes",
        "consecutive_errors",
        "deadline",
        "gate_message",
        "gating_plugin",
        "initial_attempt_at",
        "key",
        "message",
        "park_order",
        "pending_plugins",
        "pod",
        "pool",
        "previous_trace",
        "priority",
        "profile",
        "timestamp",
        "uid",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
        "woken_by",
    )

    def __init__(self, pod: Pod, *, key: tuple[str, str], uid: str, priority: int, profile: str, now: float) -> None:
        self.pod = pod
        """The joined object as last seen."""
        self.key = key
        """(namespace, name)."""
        self.uid = uid
        self.priority = priority
        self.profile = profile
        """schedulerName: whose plugins judge it."""
        self.pool: Pool = ""
        self.timestamp = now
        """When it was added, or put back after its last attempt: orders pods of equal priority."""
        self.initial_attempt_at: float | None = None
        """When it first entered activeQ."""
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expiry: int | None = None
        """Whole second within which its backoff ends; None before the first failure."""
        self.unschedulable_plugins = NOBODY
        """Rejectors of the last attempt; they stay until the next failure."""
        self.pending_plugins = NOBODY
        self.gating_plugin = ""
        """The PreEnqueue plugin that keeps it out of activeQ and backoffQ."""
        self.gate_message = ""
        self.was_flushed = False
        """Whether the safety flush rescued it: scheduled right after, some hint is wrong."""
        self.park_order = 0
        """Grows with every parking: pods are judged in this order."""
        self.woken_by: WakeUp | None = None
        """What ended its last parking."""
        self.previous_trace = ""
        """Traceparent of the last attempt's root span."""
        self.causes: tuple[str, ...] = ()
        """Traceparents of what made the pod: the request that wrote it, the eviction that it replaces."""
        self.attempt = ""
        """Id of the attempt that it is in flight or binding by."""
        self.deadline: float | None = None
        """In `binding`: when it goes back."""
        self.message = ""
        """Why the last attempt failed, for people."""

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose hints may wake it."""
        return self.unschedulable_plugins | self.pending_plugins if self.pending_plugins else self.unschedulable_plugins

    @property
    def queued_at(self) -> float:
        """The time that orders pods of equal priority, as QueueSort plugins call it."""
        return self.timestamp
