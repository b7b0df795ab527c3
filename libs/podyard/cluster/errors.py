"""What can go wrong when objects are written.

::

    ClusterError
    ├── ObjectExists        a create met a living object
    ├── ObjectMissing       the object is not there, or another one (uid) has its name
    ├── Contended           others wrote the object each time first: try again later
    └── PdbBlocked          a disruption budget does not allow the eviction now

Failures of the bus itself are `podyard.bus.errors.BusError`.
"""

from podyard.cluster.keys import ObjectKey


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


class Contended(ClusterError):
    """`attempts` compare-and-sets in a row lost: others write `key` too."""

    def __init__(self, key: ObjectKey, attempts: int) -> None:
        self.key = key
        self.attempts = attempts
        super().__init__(f"{key} was changed by others {attempts} times in a row while it was to be written: try again")


class PdbBlocked(ClusterError):
    """The disruption budget `budget` (namespace/name) does not allow this eviction now. `retry_after_s` 0:
    only a change of it helps."""

    def __init__(self, key: ObjectKey, budget: str, reason: str, *, retry_after_s: float = 0.0) -> None:
        self.key = key
        self.budget = budget
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(f"cannot evict {key}: {reason}")
