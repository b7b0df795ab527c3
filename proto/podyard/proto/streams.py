"""Which JetStream streams exist, and with which settings. `podyard.bus` makes them so."""

from typing import Final, Literal, NamedTuple

import msgspec

MEBIBYTE: Final = 1024 * 1024
MARKER_TTL_S: Final = 600
"""Seconds that a deletion marker and a commit record are kept. A reader without contact for half of it lists
again."""

LEASE_TTL_S: Final = 10
"""Seconds a lease lives without renewal: above the 6 s that NATS needs to elect a leader (NATS 2.15,
measured)."""


class LeaseTimes(NamedTuple):
    """Times of one lease, seconds, by the names of client-go's LeaderElectionConfig (v0.36.2).

    Two things differ from there. The server counts the duration, not the one who waits. And the renew
    deadline counts from when the last good renewal was sent, so that who leads has stepped down before the
    lease ends; in client-go a retry period comes before it.
    """

    duration_s: int
    """The lease is free so long after it was last renewed; whole seconds, as the server keeps it."""
    renew_deadline_s: float
    """Who leads steps down if no renewal went well for so long."""
    retry_period_s: float
    """Between two renewals, and at most between two looks of who waits for the lease."""


LEASE_TIMES: Final = LeaseTimes(LEASE_TTL_S, 0.8 * LEASE_TTL_S, LEASE_TTL_S / 3)

MAX_PAYLOAD_BYTES: Final = 4 * MEBIBYTE
"""Largest message: a request with 256 objects of 16 KiB. The server's `max_payload` is set to it."""

BATCHES_IN_FLIGHT: Final = 1000
"""Atomic batches of one stream that may be begun and not ended. nats-server allows 50 unless told: agents
that are cut off in the middle of theirs would leave none to the binder, until they are forgotten after ten
seconds."""

MAX_BATCH: Final = 256
"""Objects in a request, decisions in a commit, pods in a pop."""


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one stream.

    `max_age_s` and `max_bytes` 0 mean unlimited; `max_msgs_per_subject` -1 means unlimited. `discard` says
    what gives way when the stream is full: the publisher (`new`) or the oldest message (`old`).
    """

    name: str
    subjects: tuple[str, ...]
    purpose: str
    max_msgs_per_subject: int = -1
    max_age_s: int = 0
    max_bytes: int = 0
    duplicates_s: int = 120
    """How long the server knows message ids: it keeps each in memory so long."""
    discard: Literal["new", "old"] = "old"
    allow_atomic: bool = False
    allow_msg_ttl: bool = False
    allow_direct: bool = True
    deny_delete: bool = False
    deny_purge: bool = False


CLUSTER: Final = StreamSpec(
    name="CLUSTER",
    subjects=("cluster.>", "placement.>"),
    purpose="current state: objects and placements, one message a subject, in the order in which everything happened",
    max_msgs_per_subject=1,
    max_bytes=8192 * MEBIBYTE,
    discard="new",
    allow_atomic=True,
    allow_msg_ttl=True,
    deny_delete=True,
    deny_purge=True,
)
DECISIONS: Final = StreamSpec(
    name="DECISIONS",
    subjects=("decisions.>",),
    purpose="attempts that did not bind, the last 20 of each pod, purged after the pod",
    max_msgs_per_subject=20,
    max_age_s=7 * 24 * 3600,
    max_bytes=1024 * MEBIBYTE,
)
REQUEUES: Final = StreamSpec(
    name="REQUEUES",
    subjects=("requeues.>",),
    purpose="for each event that reached a hint: what it moved and what not, by which plugin and reason",
    max_msgs_per_subject=1,
    max_age_s=24 * 3600,
    max_bytes=512 * MEBIBYTE,
)
MOVES: Final = StreamSpec(
    name="MOVES",
    subjects=("moves.>",),
    purpose="pods that the descheduler moved, and what came of it: the last 20 records of each workload",
    max_msgs_per_subject=20,
    max_age_s=7 * 24 * 3600,
    max_bytes=256 * MEBIBYTE,
)
K8SEVENTS: Final = StreamSpec(
    name="K8SEVENTS",
    subjects=("k8sevents.>",),
    purpose="Kubernetes-like events for people, the last version of each",
    max_msgs_per_subject=1,
    max_age_s=3600,
    max_bytes=256 * MEBIBYTE,
)
LEASES: Final = StreamSpec(
    name="LEASES",
    subjects=("leases.>",),
    purpose="who leads; an optimisation, the fence is the safety",
    max_msgs_per_subject=1,
    max_bytes=16 * MEBIBYTE,
    discard="new",
    allow_msg_ttl=True,
)
DEAD: Final = StreamSpec(
    name="DEAD",
    subjects=("dead.>",),
    purpose="messages that could not be used, with the reason",
    max_age_s=7 * 24 * 3600,
    max_bytes=256 * MEBIBYTE,
)

ALL_STREAMS: Final = (CLUSTER, DECISIONS, REQUEUES, MOVES, K8SEVENTS, LEASES, DEAD)


def kept_for(spec: StreamSpec, max_age_s: int | None, max_mib: int | None, *, duplicates_s: int) -> StreamSpec:
    """The stream with another age and size of what it keeps; `None`: its own. The server knows message ids
    for `duplicates_s` seconds."""
    return msgspec.structs.replace(
        spec,
        max_age_s=spec.max_age_s if max_age_s is None else max_age_s,
        max_bytes=spec.max_bytes if max_mib is None else max_mib * MEBIBYTE,
        duplicates_s=duplicates_s,
    )
