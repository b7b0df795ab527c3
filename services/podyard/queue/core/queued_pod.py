"""One pod in the queue: the object, where it is, and what its attempts found."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import msgspec

from podyard.objects.core import Pod
from podyard.proto.decisions import WakeUp
from podyard.proto.message import PodRef
from podyard.proto.pools import Pool
from podyard.queue.core.pool_moves import NEXT, WrongPoolError

NOBODY: frozenset[str] = frozenset()
NO_OBSTACLES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
NO_REF: Final = PodRef(namespace="", name="", uid="")

KEPT_VERSIONS: Final = 16
"""Versions kept of a pod that changes while it is handed out; semi-arbitrary: who counts on an older one
counts as unknown.
"""

Version: TypeAlias = tuple[int, Pod | None]
"""CLUSTER sequence of a version of a pod's object, and the pod as it was; `None`: from there on versions were
missed.
"""


class Watcher(NamedTuple):
    """Whose hints a parked pod waits for: a plugin's, those of the reference or the plugin's own (for pods of
    which it names obstacles).
    """

    plugin: str
    own: bool = False


class Waited(NamedTuple):
    """How a pod waited for an attempt. It was parked first, backed off then, and was ready at last."""

    ready_at: float
    """When it entered activeQ; a pod that is popped from backoffQ was never ready before. Seconds since 1970,
    UTC."""
    parked_s: float
    backed_off_s: float


class QueuedPod(msgspec.Struct, eq=False):
    """A pending pod; one per uid for as long as it is pending. Times are seconds since 1970, UTC.

    Source: pkg/scheduler/framework/types.go, QueuedPodInfo.
    """

    pod: Pod
    """The joined object as last seen."""
    key: tuple[str, str]
    """(namespace, name)."""
    uid: str
    priority: int
    profile: str
    """schedulerName: whose plugins judge it."""
    timestamp: float
    """When it was added, or put back after its last attempt: orders pods of equal priority."""
    sequence: int = 0
    """CLUSTER sequence of that version of the object."""
    causes: tuple[str, ...] = ()
    """Traceparents of what made the pod: the request that wrote it, the eviction that it replaces."""
    replaces: tuple[str, ...] = ()
    """Those of what ended the pod that it replaces, ..."""
    replaced: str = ""
    """... and that pod's name."""
    earlier: tuple[Version, ...] = ()
    """Versions before it that a scheduler may count on a node: from the one that was handed out on, oldest
    first.
    """
    pool: Pool = Pool.NOWHERE
    """Written by `enter` alone."""
    initial_attempt_at: float | None = None
    """When it first entered activeQ."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_expiry: int | None = None
    """Whole second within which its backoff ends; None before the first failure."""
    unschedulable_plugins: frozenset[str] = NOBODY
    """Rejectors of the last attempt; they stay until the next failure."""
    pending_plugins: frozenset[str] = NOBODY
    obstacles: Mapping[str, tuple[str, ...]] = NO_OBSTACLES
    """What these plugins said stands in its way, by plugin; it stays as long as they do."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps it out of activeQ and backoffQ."""
    gate_message: str = ""
    gate_failed: bool = False
    """Whether the gating plugin could not say, rather than said no."""
    was_flushed: bool = False
    """Whether the safety flush rescued it: scheduled right after, some hint is wrong."""
    park_order: int = 0
    """Grows with every parking: pods are judged in this order."""
    woken_by: WakeUp | None = None
    """What ended its last parking."""
    was_parked: bool = False
    """Since it was added or put back."""
    backing_off_since: float | None = None
    """When it entered backoffQ or errorBackoffQ, since it was added or put back."""
    ready_since: float | None = None
    """When it entered activeQ, since it was added or put back; None while it has not."""
    previous_trace: str = ""
    """Traceparent of the root span of the last attempt whose trace is kept, or that is under way."""
    failure: str = ""
    """What the last attempt that failed is compared by (`queue_api.failure_of`)."""
    failures: int = 0
    """How many attempts in a row failed like that."""
    unkept: int = 0
    """How many of them, the last ones, have no trace."""
    attempt: str = ""
    """Id of the attempt that it is in flight or binding by."""
    deadline: float | None = None
    """In `binding`: when it goes back."""
    message: str = ""
    """Why the last attempt failed, for people."""
    ref: PodRef = NO_REF
    """What effects name it by."""

    def __post_init__(self) -> None:
        self.ref = PodRef(namespace=self.key[0], name=self.key[1], uid=self.uid)

    def waited(self, now: float) -> Waited:
        """How it has waited, as it is handed out; from here on its next wait is counted."""
        ready = now if self.ready_since is None else self.ready_since
        self.ready_since = None
        if self.backing_off_since is None and not self.was_parked:
            return Waited(ready, 0.0, 0.0)
        backing_off = ready if self.backing_off_since is None else self.backing_off_since
        parked_s = backing_off - self.timestamp if self.was_parked else 0.0
        self.was_parked, self.backing_off_since = False, None
        return Waited(ready, max(0.0, parked_s), max(0.0, ready - backing_off))

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose hints may wake it."""
        return self.unschedulable_plugins | self.pending_plugins if self.pending_plugins else self.unschedulable_plugins

    def enter(self, pool: Pool) -> None:
        """It is in this pool now.

        :raises WrongPoolError: if it cannot go there from where it is
        """
        if pool is not self.pool:
            if pool not in NEXT[self.pool]:
                raise WrongPoolError(self.uid, self.pool, pool)
            self.pool = pool

    def replace(self, pod: Pod, sequence: int, *, missed: bool = False) -> None:
        """Its object is another now. While somebody may have assumed it, what it was is kept.

        :param missed: there may have been versions in between
        """
        if sequence != self.sequence:
            kept: tuple[Version, ...] = ()
            if self.pool is Pool.IN_FLIGHT or self.pool is Pool.BINDING:
                hole: tuple[Version, ...] = ((self.sequence + 1, None),) if missed else ()
                kept = (*self.earlier, (self.sequence, self.pod), *hole)
            self.earlier = kept[-KEPT_VERSIONS:]
        self.pod, self.sequence = pod, sequence

    def version(self, sequence: int) -> Pod | None:
        """The version of this CLUSTER sequence, if it is known."""
        if sequence == self.sequence:
            return self.pod
        return next((pod for number, pod in self.earlier if number == sequence), None)

    def version_at(self, position: int) -> Pod | None:
        """The version that was the last one at this position of CLUSTER, if it is known."""
        if self.sequence <= position:
            return self.pod
        return next((pod for number, pod in reversed(self.earlier) if number <= position), None)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """Whose events reach it while it is parked, by name: its gating plugin's, or those of its
        rejectors.
        """
        if self.gating_plugin:
            return (Watcher(self.gating_plugin),)
        own = [Watcher(plugin, True) for plugin in sorted(self.obstacles)]
        return (*map(Watcher, sorted(self.rejectors)), *own)

    @property
    def queued_at(self) -> float:
        """The time that orders pods of equal priority, as QueueSort plugins call it."""
        return self.timestamp
