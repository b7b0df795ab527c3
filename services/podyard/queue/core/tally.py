"""What the queue counts while it works, for its shell to take: no effect tells it, since nobody acts on
it."""

from typing import Final, NamedTuple

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
"""errorBackoffQ counts as backoffQ, as in the reference."""
UNSCHEDULABLE: Final = "unschedulable"
"""Gated pods are counted on their way in here as well."""

ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POPPED_FROM_BACKOFF: Final = "PopFromBackoffQ"
"""What brings a pod into a queue without an event of the cluster. Source: kube-scheduler v1.36.2,
pkg/scheduler/framework/events.go."""


class Counted(NamedTuple):
    """Since it was last taken."""

    entered: dict[tuple[str, str], int]
    """Pods that entered a queue, by queue and what brought them there: an event's label, or one of the names
    above."""
    handled: list[tuple[tuple[str, ...], float]]
    """Changes of the cluster that were handled: labels of the events that each one is, and seconds."""


class Tally:
    """Of one queue."""

    __slots__ = ("_entered", "handled")

    def __init__(self) -> None:
        self._entered: dict[tuple[str, str], int] = {}
        self.handled: list[tuple[tuple[str, ...], float]] = []
        """As in `Counted`; to be appended to."""

    def __bool__(self) -> bool:
        return bool(self._entered or self.handled)

    def enters(self, queue: str, why: str) -> None:
        """A pod came into a queue that it was not in."""
        key = queue, why
        self._entered[key] = self._entered.get(key, 0) + 1

    def take(self) -> Counted:
        """All since last asked."""
        taken = Counted(self._entered, self.handled)
        self._entered, self.handled = {}, []
        return taken
