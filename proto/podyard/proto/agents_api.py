"""Requests to the agent that plays a node, on `svc.agents.<node>.<verb>`, and its replies. Who does not play
the node says nothing.
"""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Name
from podyard.proto.message import Count, Int64, Message

MOST_PREVIEWED: Final = 110
"""Pods of one preview: as many as a kubelet runs unless told. Each is a round, and the agent plays them all
at one go."""

RankKey: TypeAlias = Literal["noUsage", "request", "priority", "usage", "name", "last", "limit", "hurried"]
"""What puts a pod before the one that would go after it: nothing is known of its usage; it exceeds its
request; its priority; its usage over its request; only its name; nobody is left after it. `limit`: it goes
for a limit of its own. `hurried`: it is being ended already, and would have less time."""


State: TypeAlias = Literal["notObserved", "notMet", "waits", "acts"]
"""Of a threshold. waits: its grace period is not over."""


class PreviewRequest(Message, frozen=True, kw_only=True):
    """`preview`: whom the node's eviction manager would evict, as it is now or with other signals. Nothing is
    changed."""

    node: Name
    signals: Annotated[
        dict[Name, Name],
        Meta(max_length=64, description="signal -> AVAILABLE or AVAILABLE of CAPACITY: 200Mi, 5%, 200Mi of 8Gi"),
    ] = {}
    limit: Annotated[int, Meta(ge=1, le=MOST_PREVIEWED, description="most pods that go")] = 20


class PreviewedThreshold(Message, frozen=True, kw_only=True):
    """One threshold, and what it makes of its signal."""

    signal: str
    value: Annotated[str, Meta(description="quantity or percentage, as configured")]
    state: State
    min_reclaim: str = ""
    grace_s: Annotated[float, Meta(ge=0, description="0: a hard one")] = 0.0
    until: Annotated[float, Meta(description="when its grace period ends, seconds since 1970, UTC; 0: it has none")] = (
        0.0
    )
    available: Int64 | None = None
    capacity: Int64 | None = None
    bound: Annotated[Int64 | None, Meta(description="the value in bytes (inodes, processes), of that capacity")] = None


class PreviewedCollection(Message, frozen=True, kw_only=True):
    """What would be collected before a pod goes. It frees what the node's signals say."""

    what: Literal["containers", "images"]
    resource: str
    at: Annotated[float, Meta(description="seconds since 1970, UTC")]


class PreviewedPod(Message, frozen=True, kw_only=True):
    """A pod that would go. Amounts are bytes (inodes, processes) of what is to be relieved."""

    namespace: str
    name: str
    uid: str
    at: Annotated[
        float,
        Meta(description="when, seconds since 1970, UTC, if each pod before takes all the time that it is given"),
    ]
    signal: Annotated[str, Meta(description="the signal, or the limit of local storage that the pod exceeds")]
    by: RankKey
    priority: Int64 = 0
    used: Int64 | None = None
    request: Count | None = None
    over: Annotated[Int64 | None, Meta(description="usage over request, as it is ranked by")] = None
    grace_s: Count = 0
    message: Annotated[str, Meta(description="what the pod would be told")] = ""


class SparedPod(Message, frozen=True, kw_only=True):
    """A pod of the node that would not go, and why."""

    namespace: str
    name: str
    uid: str
    why: str


class PreviewReply(Message, frozen=True, kw_only=True):
    """Thresholds in the order in which they are configured, pods in the order in which they would go while
    nothing gets better."""

    node: str
    at: Annotated[float, Meta(description="seconds since 1970, UTC")]
    conditions: Annotated[tuple[str, ...], Meta(description="pressure conditions, by name")] = ()
    thresholds: tuple[PreviewedThreshold, ...] = ()
    collections: tuple[PreviewedCollection, ...] = ()
    pods: tuple[PreviewedPod, ...] = ()
    spared: tuple[SparedPod, ...] = ()
    left_out: Annotated[Count, Meta(description="pods that may go too, beyond `limit`")] = 0
    faults: Annotated[
        tuple[str, ...], Meta(description="what the rounds would find wrong; the preview ends there")
    ] = ()
