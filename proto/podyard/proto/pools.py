"""Where the queue may have a pod: the words on the wire, in the code and for people."""

from enum import StrEnum


class Pool(StrEnum):
    """A pod is in one pool at a time. Source of the words: pkg/scheduler/backend/queue of kube-scheduler."""

    NOWHERE = ""
    """Not in the queue: just made, bound, or deleted."""
    ACTIVE = "activeQ"
    """Ready to be popped."""
    BACKOFF = "backoffQ"
    """Some plugin rejected it, and an event may have helped: ready when its backoff ends."""
    ERROR_BACKOFF = "errorBackoffQ"
    """Its attempt failed without a rejection: ready when its backoff ends."""
    UNSCHEDULABLE = "unschedulable"
    """Parked until an event may help."""
    GATED = "gated"
    """Parked because a PreEnqueue plugin keeps it out."""
    IN_FLIGHT = "inFlight"
    """A scheduler has it."""
    BINDING = "binding"
    """Its scheduler has chosen a node; its binding is awaited."""
