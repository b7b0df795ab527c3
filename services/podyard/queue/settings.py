"""What can be set of the queue."""

from typing import Annotated

import msgspec
from msgspec import Meta

from podyard.queue.core import leader


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `queue` of the options file. Defaults of the first two: KubeSchedulerConfiguration."""

    pod_initial_backoff_s: Annotated[float, Meta(ge=0)] = 1.0
    """Seconds a pod waits after its first failed attempt; doubles with each further one."""
    pod_max_backoff_s: Annotated[float, Meta(ge=0)] = 10.0
    """Longest such wait; 0 means none at all (kubernetes#131661)."""
    session_timeout_s: Annotated[float, Meta(gt=0)] = leader.SESSION_TIMEOUT_S
    """Silence after which a scheduler's session counts as dead; heartbeats come every 2 s."""
    binding_timeout_s: Annotated[float, Meta(gt=0)] = leader.BINDING_TIMEOUT_S
    """How long a scheduled pod waits for its binding fact before it is tried again."""
    pop_linger_s: Annotated[float, Meta(ge=0, le=0.1)] = 0.002
    """How long a pop that had to wait goes on waiting for more pods: batches are cheaper than single pods, and the binder
    gathers for 10 ms anyway."""
    lease_ttl_s: Annotated[int, Meta(ge=1)] = 10
    """Seconds the leader's lease lives without renewal; above the 6 s that NATS needs to elect a leader of its own."""
