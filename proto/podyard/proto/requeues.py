"""What one cluster event did to parked pods, kept so that people can ask why a pod was or was not retried."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.message import INT64_MAX, Count, Message
from podyard.proto.pools import Pool

HintAnswer: TypeAlias = Literal["Queue", "QueueSkip", "Error"]


class HintCall(Message, frozen=True, kw_only=True):
    """A plugin's hint about one pod and one event: its answer, and why, in words."""

    plugin: str
    answer: HintAnswer
    reason: str = ""
    duration_us: Count = 0
    own: Annotated[bool, Meta(description="a hint of Podyard's own, which kube-scheduler does not have")] = False


class PodMove(Message, frozen=True, kw_only=True):
    """A parked pod that the event moved."""

    namespace: str
    name: str
    uid: str
    from_: Annotated[Pool, Meta(description="pool it was parked in")] = Pool.UNSCHEDULABLE
    to: Pool
    plugin: Annotated[str, Meta(description="whose hint decided; empty if no hint was needed")] = ""
    hints: tuple[HintCall, ...] = ()
    own: Annotated[bool, Meta(description="by a hint of Podyard's own, which kube-scheduler lacks")] = False


class PodSkip(Message, frozen=True, kw_only=True):
    """A parked pod whose hints were asked and that stayed."""

    namespace: str
    name: str
    uid: str
    hints: tuple[HintCall, ...] = ()


class SkipCount(Message, frozen=True, kw_only=True):
    """Above 256 skipped pods: how many, by plugin and reason."""

    plugin: str
    reason: str
    pods: Annotated[int, Meta(ge=1, le=INT64_MAX)]


class RequeueRecord(Message, frozen=True, kw_only=True):
    """One event that reached at least one hint, on `requeues.<event id>`. Sent by the queue's leader; key:
    `event_id`.
    """

    event_id: str
    event: Annotated[str, Meta(description="label, e.g. NodeUpdateNodeTaint")]
    resource: str
    object: Annotated[str, Meta(description="namespace/name of the object that changed, or its name")] = ""
    position: Annotated[Count, Meta(description="CLUSTER sequence; 0 for a bare event")] = 0
    at: Annotated[float, Meta(description="seconds since 1970, UTC")]
    who: str = ""
    why: str = ""
    moved: tuple[PodMove, ...] = ()
    moved_unnamed: Annotated[Count, Meta(description="moved pods beyond those that `moved` names")] = 0
    skipped: Annotated[tuple[PodSkip, ...], Meta(max_length=256)] = ()
    skipped_counts: tuple[SkipCount, ...] = ()
    trace: Annotated[str, Meta(description="traceparent of the event")] = ""
