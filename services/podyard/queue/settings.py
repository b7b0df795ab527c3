"""What can be set of the queue."""

from typing import Annotated

import msgspec
from msgspec import Meta

from podyard.configuration import Configuration
from podyard.queue.core import leader
from podyard.queue.core.backoff import Backoff


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `queue` of the options file."""

    pod_initial_backoff_s: Annotated[float, Meta(ge=0)] | None = None
    """Seconds a pod waits after its first failed attempt; doubles with each further one. None:
    podInitialBackoffSeconds of the scheduler configuration, 1 without one."""
    pod_max_backoff_s: Annotated[float, Meta(ge=0)] | None = None
    """Longest such wait; 0 means none at all (kubernetes#131661). None: podMaxBackoffSeconds of the scheduler
    configuration, 10 without one."""
    session_timeout_s: Annotated[float, Meta(gt=0)] = leader.SESSION_TIMEOUT_S
    """Silence after which a scheduler's session counts as dead; heartbeats come every 2 s."""
    binding_timeout_s: Annotated[float, Meta(gt=0)] = leader.BINDING_TIMEOUT_S
    """How long a scheduled pod waits for its binding fact before it is tried again."""
    pop_linger_s: Annotated[float, Meta(ge=0, le=0.1)] = 0.002
    """How long a pop that had to wait goes on waiting for more pods: batches are cheaper than single pods,
    and the binder gathers for 10 ms anyway."""
    own_hints: bool = True
    """Whether plugins' own hints count, which retry parked pods that kube-scheduler v1.36 would leave to its
    flush after five minutes."""
    lease_ttl_s: Annotated[int, Meta(ge=1)] = 10
    """Seconds the leader's lease lives without renewal; above the 6 s that NATS needs to elect a leader of
    its own."""

    def backoff(self) -> Backoff:
        """How long pods wait."""
        default = Backoff()
        return Backoff(
            initial_s=default.initial_s if self.pod_initial_backoff_s is None else self.pod_initial_backoff_s,
            max_s=default.max_s if self.pod_max_backoff_s is None else self.pod_max_backoff_s,
        )

    def completed(self, configuration: Configuration) -> "QueueSettings":
        """These settings, what is not set taken from the scheduler configuration."""
        values = configuration.values
        given = {
            "pod_initial_backoff_s": values.pod_initial_backoff_seconds,
            "pod_max_backoff_s": values.pod_max_backoff_seconds,
        }
        unset = {name: value for name, value in given.items() if getattr(self, name) is None}
        return msgspec.structs.replace(self, **unset)
