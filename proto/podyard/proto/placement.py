"""Placements: what the binder writes, and `podyard mend` in its place."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import INT64_MAX, Count, Int64, Message

ReleaseReason: TypeAlias = Literal["completed", "terminated", "nodeGone", "orphan"]


class HostPort(Message, frozen=True, kw_only=True):
    """A port that a pod takes on its node."""

    port: Annotated[int, Meta(ge=1, le=65535)]
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    ip: str = "0.0.0.0"


class Usage(Message, frozen=True, kw_only=True):
    """What a pod takes from its node: everything that a table of usage needs, without the pod object.

    `requests` are milli-units for `cpu`, whole units for everything else; the pod itself (`pods`: 1) is
    implied. The two non-zero amounts are what scoring assumes for containers that request nothing (100m and
    200 MB each). All are sums, and as large as these get: they alone have no bound.
    """

    requests: Annotated[dict[str, int], Meta(description="cpu in milli-CPU, others in bytes or pieces")] = {}
    nonzero_cpu_milli: Annotated[int, Meta(ge=0)] = 0
    nonzero_memory_bytes: Annotated[int, Meta(ge=0)] = 0
    ports: tuple[HostPort, ...] = ()


class VolumeChoice(Message, frozen=True, kw_only=True):
    """Which volume a claim of the pod got."""

    claim: str
    volume: str


class BoundPod(Message, frozen=True, kw_only=True):
    """One pod on one node: an entry of a commit record."""

    namespace: str
    name: str
    uid: str
    node: str
    attempt: Annotated[str, Meta(description="empty for a forced binding")] = ""
    decided_at: Annotated[Count, Meta(description="CLUSTER sequence the decision was made at")] = 0
    priority: Int64 = 0
    labels: dict[str, str] = {}
    usage: Usage = Usage()
    volumes: tuple[VolumeChoice, ...] = ()
    forced: Annotated[bool, Meta(description="created with nodeName: bound without judgement")] = False
    trace: Annotated[str, Meta(description="traceparent of the bind span, parent of the start on the node")] = ""


class Binding(BoundPod, frozen=True, kw_only=True, tag_field="fact", tag="binding"):
    """A pod's binding, on `placement.bindings.<ns>.<pod>.<uid>`; written once, must not exist before."""

    decision: AttemptRecord | None = None
    bound_at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0


class Tombstone(Message, frozen=True, kw_only=True, tag_field="fact", tag="tombstone"):
    """A binding that has ended. It stays while the pod's object lives, so that a uid is never bound twice;
    then it gets a TTL."""

    namespace: str
    name: str
    uid: str
    node: str
    reason: ReleaseReason
    attempt: str = ""
    bound_at: float = 0.0
    released_at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0
    decision: AttemptRecord | None = None


Placement: TypeAlias = Binding | Tombstone
"""What the subject of a binding may hold: a closed set."""


class Release(Message, frozen=True, kw_only=True):
    """A binding that a commit ended: the only fact that frees bound room. Acts by uid."""

    namespace: str
    name: str
    uid: str
    node: str
    reason: ReleaseReason
    trace: Annotated[
        str,
        Meta(description="traceparent of what ended the pod (an eviction, a deletion), if its trace is kept"),
    ] = ""


class CommitRecord(Message, frozen=True, kw_only=True):
    """What one batch did, on `placement.commits.<n>`, for readers; kept 10 minutes. n grows by one a
    commit."""

    n: Annotated[int, Meta(ge=1, le=INT64_MAX)]
    epoch: Count
    batch: Annotated[str, Meta(description="batch id")]
    bindings: tuple[BoundPod, ...] = ()
    releases: tuple[Release, ...] = ()
    position: Annotated[Count, Meta(description="how far the binder had read objects when it judged")] = 0
    at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0


class Fence(Message, frozen=True, kw_only=True):
    """Last message of every commit, compare-and-set on its own last sequence: who may write placements, and
    the last n."""

    epoch: Count
    n: Count
    batch: str = ""
    holder: str = ""


def binding_of(bound: BoundPod, *, bound_at: float, decision: AttemptRecord | None = None) -> Binding:
    """What is stored of a record's entry.

    :param bound_at: seconds since 1970, UTC
    """
    return Binding(
        namespace=bound.namespace,
        name=bound.name,
        uid=bound.uid,
        node=bound.node,
        attempt=bound.attempt,
        decided_at=bound.decided_at,
        priority=bound.priority,
        labels=bound.labels,
        usage=bound.usage,
        volumes=bound.volumes,
        forced=bound.forced,
        trace=bound.trace,
        decision=decision,
        bound_at=bound_at,
    )


def entry_of(binding: Binding) -> BoundPod:
    """A stored binding as its commit's record told it."""
    return BoundPod(**{name: getattr(binding, name) for name in BoundPod.__struct_fields__})


def release_of(placed: BoundPod | Tombstone, reason: ReleaseReason, trace: str = "") -> Release:
    """The end of a binding, as a commit's record tells it."""
    return Release(
        namespace=placed.namespace, name=placed.name, uid=placed.uid, node=placed.node, reason=reason, trace=trace
    )


def tombstone_of(release: Release, *, released_at: float, binding: Binding | None = None) -> Tombstone:
    """What is stored of a binding that a record ends.

    :param released_at: seconds since 1970, UTC
    :param binding: what is stored until then; None: nobody can read it
    """
    return Tombstone(
        namespace=release.namespace,
        name=release.name,
        uid=release.uid,
        node=release.node,
        reason=release.reason,
        attempt="" if binding is None else binding.attempt,
        bound_at=0.0 if binding is None else binding.bound_at,
        released_at=released_at,
        decision=None if binding is None else binding.decision,
    )
