"""Usage: synthetic signals that people publish, and what agents report. Not stored."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import LAST_S, Moment, Name, Word
from podyard.proto.message import Count, Int64, Message

MOST_SIGNALS: Final = 64
"""Signals of a node. The kubelet has nine."""

MOST_PODS: Final = 10_000
"""Pods of a node that signals name. A kubelet runs 110 unless told."""

AskedOfNode: TypeAlias = Literal["layout", "reading", "containers", "images", "kill"]
"""What an eviction manager asks of its node: where images and writable layers live, what is left and used, to
collect dead containers, to collect unused images, to end a pod."""

MOST_FAILING: Final = 5
"""Each thing that is asked once."""

MOST_IMAGES: Final = 1000
"""Images of a node that signals tell apart. A kubelet reports 50."""

MOST_PARTS: Final = 256
"""Containers, or volumes, of a pod that signals name."""

MOST_POINTS: Final = 1000
"""Points of one course: an hour of samples, one every four seconds."""

USAGE_PERIOD_S: Final = 30.0
"""Usage of a node is published at least so often, and on a change."""

UsedResource: TypeAlias = Literal["cpu", "memory", "disk", "inodes", "processes"]
"""What is used: nanocores, bytes, bytes, pieces, pieces."""

FIELDS: Final[dict[UsedResource, str]] = {
    "cpu": "cpu_nanocores",
    "memory": "memory_bytes",
    "disk": "disk_bytes",
    "inodes": "inodes",
    "processes": "processes",
}
"""Where usage says it; containers and volumes have some of them."""


class SignalValue(Message, frozen=True, kw_only=True):
    """One eviction signal: what is left of what there is, bytes (inodes, processes for those signals). What
    cannot be, such as less than nothing, is told by who reads it."""

    available: Int64
    capacity: Int64


class ContainerUsage(Message, frozen=True, kw_only=True):
    """What one container of a pod uses now; disk and inodes: of its writable layer."""

    name: Name
    cpu_nanocores: Int64 = 0
    memory_bytes: Int64 = 0
    disk_bytes: Int64 = 0
    inodes: Int64 = 0


class VolumeUsage(Message, frozen=True, kw_only=True):
    """What lies in one volume of a pod."""

    name: Name
    disk_bytes: Int64 = 0
    inodes: Int64 = 0


class PodUsage(Message, frozen=True, kw_only=True):
    """What one pod uses now, containers and volumes included: never less than they use together. What none of
    those that are named uses is shared out among the other containers."""

    namespace: Name
    name: Name
    cpu_nanocores: Int64 = 0
    memory_bytes: Int64 = 0
    disk_bytes: Int64 = 0
    inodes: Int64 = 0
    processes: Int64 = 0
    containers: Annotated[tuple[ContainerUsage, ...], Meta(max_length=MOST_PARTS)] = ()
    volumes: Annotated[tuple[VolumeUsage, ...], Meta(max_length=MOST_PARTS)] = ()

    def in_all(self, resource: UsedResource) -> int:
        """What the pod uses: no less than its parts together."""
        field = FIELDS[resource]
        own: int = getattr(self, field)
        parts = (*self.containers, *self.volumes)
        return max(own, sum(getattr(part, field, 0) for part in parts)) if parts else own


class Point(Message, frozen=True, kw_only=True):
    """Where a course is at one time."""

    after_s: Annotated[float, Meta(ge=0, le=LAST_S, description="since the message came in")]
    amount: Annotated[Int64 | None, Meta(description="none: as it stood when the message came in")] = None


class Course(Message, frozen=True, kw_only=True):
    """An amount that changes with time: on straight lines from point to point, then as at the last. It begins
    where the amount stands when the message comes in. Constant, ramp, leak, spike and replayed series are all
    such.

    It is that of the signal, if one is named; of the pod, or of its container or volume; else of the node's
    cpu. For a signal the amount is what is available.
    """

    signal: Name = ""
    capacity: Annotated[Count, Meta(description="of the signal; 0: as the node's object says")] = 0
    namespace: Name = ""
    pod: Name = ""
    container: Name = ""
    volume: Name = ""
    resource: UsedResource = "memory"
    points: Annotated[tuple[Point, ...], Meta(min_length=1, max_length=MOST_POINTS, description="in order of time")]


class Unused(Message, frozen=True, kw_only=True):
    """What the node has that its eviction manager may collect: that much more is left afterwards."""

    disk_bytes: Count = 0
    inodes: Count = 0


class UnusedImage(Message, frozen=True, kw_only=True):
    """An image that no container uses; it is collected as a whole. Ages are those when the message came
    in."""

    name: Name
    disk_bytes: Count = 0
    inodes: Count = 0
    pulled_s: Annotated[float, Meta(ge=0, le=LAST_S, description="seconds since it was pulled")] = 0.0
    used_s: Annotated[
        Annotated[float, Meta(ge=0, le=LAST_S)] | None,
        Meta(description="seconds since a container used it last; none: never"),
    ] = None


class Failing(Message, frozen=True, kw_only=True):
    """What the node cannot do when its eviction manager asks for it, and why."""

    what: AskedOfNode
    why: Annotated[str, Meta(min_length=1, max_length=1024)]


class NodeSignals(Message, frozen=True, kw_only=True):
    """Synthetic usage for one node, on `signals.<node>`; replaces the node's earlier one. No signals = as if
    idle.

    Unless it stands, or has courses, it is one measurement: it is old after three looks of the eviction
    manager, and then nothing is done on it. Else its agent reads all of it anew at each look.
    """

    node: Name
    signals: Annotated[
        dict[Name, SignalValue], Meta(max_length=MOST_SIGNALS, description="by signal name, e.g. memory.available")
    ] = {}
    cpu_nanocores: Annotated[Int64 | None, Meta(description="of the node; none: as much as its pods use")] = None
    pods: Annotated[tuple[PodUsage, ...], Meta(max_length=MOST_PODS)] = ()
    courses: Annotated[tuple[Course, ...], Meta(max_length=MOST_PODS)] = ()
    standing: Annotated[bool, Meta(description="it holds until the next one")] = False
    images: Annotated[
        Unused, Meta(description="that no container uses, in parts of any size, and old enough to be collected")
    ] = Unused()
    single_images: Annotated[
        tuple[UnusedImage, ...], Meta(max_length=MOST_IMAGES, description="beside those, each with its age")
    ] = ()
    dead_containers: Unused = Unused()
    failing: Annotated[tuple[Failing, ...], Meta(max_length=MOST_FAILING)] = ()
    who: Word = ""
    at: Annotated[Moment, Meta(description="seconds since 1970, UTC; when it was observed; 0 = on receipt")] = 0.0


class NodeUsage(Message, frozen=True, kw_only=True):
    """Usage as the agent sees it, on `usage.<node>`: when something has changed by 5 %, and every 30 s. Not
    of a node whose readings are of no use.

    Pods of the node that are not named use nothing. The descheduler reads it, and `kube_api` for
    `metrics.k8s.io`.
    """

    node: Name
    signals: Annotated[dict[Name, SignalValue], Meta(max_length=MOST_SIGNALS)] = {}
    cpu_nanocores: Count = 0
    memory_bytes: Count = 0
    pods: Annotated[tuple[PodUsage, ...], Meta(max_length=MOST_PODS)] = ()
    at: Moment = 0.0
    window_s: Annotated[
        float, Meta(ge=0, le=LAST_S, description="for how long cpu was measured until then; 0: it is that of a moment")
    ] = 0.0


class NodeHeartbeat(Message, frozen=True, kw_only=True):
    """A node's sign of life, on `heartbeat.<node>`."""

    node: Name
    agent: Name = ""
    at: Moment = 0.0
