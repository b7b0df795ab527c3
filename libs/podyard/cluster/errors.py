"""What can go wrong when objects are written.

::

    ClusterError
    ├── ObjectExists        a create met a living object
    ├── ObjectMissing       the object is not there, or another one (uid) has its name
    ├── VersionMoved        the object is at another version than the one that was to be replaced
    ├── Contended           others wrote the object each time first: try again later
    ├── PdbBlocked          a disruption budget does not allow the eviction now
    ├── QuotaExceeded       a resource quota does not allow the object
    └── Overdue             nobody waits for the eviction any more

Failures of the bus itself are `podyard.bus.errors.BusError`.
"""

from podyard.cluster.keys import ObjectKey
from podyard.proto.objects_api import BudgetAnswer


class ClusterError(Exception):
    """A write that was not done; nothing of it is in the cluster."""


class ObjectExists(ClusterError):
    """`key` is taken by a living object with `uid`, whose version is `sequence`."""

    def __init__(self, key: ObjectKey, uid: str, sequence: int) -> None:
        self.key = key
        self.uid = uid
        self.sequence = sequence
        super().__init__(f"{key} exists already (uid {uid})")


class ObjectMissing(ClusterError):
    """There is no object at `key`, or not the one with the `uid` that was meant."""

    def __init__(self, key: ObjectKey, uid: str = "") -> None:
        self.key = key
        self.uid = uid
        super().__init__(f"{key} is not there" + (f" with uid {uid}" if uid else ""))


class VersionMoved(ClusterError):
    """`key` is at version `sequence` (0: it is not there), not at the one that was meant. Source:
    apiserver/pkg/registry/generic/registry/store.go, OptimisticLockErrorMsg."""

    def __init__(self, key: ObjectKey, sequence: int) -> None:
        self.key = key
        self.sequence = sequence
        super().__init__("the object has been modified; please apply your changes to the latest version and try again")


class Contended(ClusterError):
    """`attempts` compare-and-sets in a row lost: others write `key` too."""

    def __init__(self, key: ObjectKey, attempts: int) -> None:
        self.key = key
        self.attempts = attempts
        super().__init__(f"{key} was changed by others {attempts} times in a row while it was to be written: try again")


class PdbBlocked(ClusterError):
    """The disruption budgets of a pod do not allow this eviction now; `budget` says how they stand, and what
    helps."""

    def __init__(self, key: ObjectKey, reason: str, budget: BudgetAnswer) -> None:
        self.key = key
        self.budget = budget
        super().__init__(f"cannot evict {key}: {reason}")


class QuotaExceeded(ClusterError):
    """A resource quota of its namespace does not allow the object at `key`; `reason` says which and why."""

    def __init__(self, key: ObjectKey, reason: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f'{key.resource} "{key.name}" is forbidden: {reason}')


class Overdue(ClusterError):
    """Whoever wanted the eviction of `key` counts on no answer any more: it was not begun."""

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        super().__init__(
            f"{key} was not evicted: the time until which that was wanted is over; if that is always so, the clocks differ"
        )
