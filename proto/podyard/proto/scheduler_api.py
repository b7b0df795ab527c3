"""Requests to a scheduler on `svc.scheduler.<verb>`, and its replies. Any scheduler answers."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from podyard.proto.bounds import Name
from podyard.proto.decisions import NodeScore, Rejection, Victim
from podyard.proto.message import Count, Message

MOST_NODES: Final = 10_000
"""Nodes that one answer tells of by name."""


class WouldGoRequest(Message, frozen=True, kw_only=True):
    """`would`: where a pod would go if it were tried now. One scheduling cycle is rehearsed: nothing is
    changed, nothing is recorded. The pod is either a stored one, by namespace and name, or `pod`."""

    namespace: Name = ""
    name: Name = ""
    pod: Annotated[
        msgspec.Raw, Meta(description="a pod as the api would store it (a dry run says); null: the stored one")
    ]
    position: Annotated[Count, Meta(description="CLUSTER sequence that the scheduler is to have read")] = 0
    limit: Annotated[
        int,
        Meta(ge=0, le=MOST_NODES, description="nodes that are told by name: of each verdict, and of those that fit"),
    ] = 0


class PluginVerdict(Message, frozen=True, kw_only=True):
    """What one plugin has against nodes, or against the pod."""

    plugin: str
    reasons: tuple[str, ...] = ()
    unresolvable: Annotated[bool, Meta(description="preemption cannot help")] = False


class NodesVerdict(Message, frozen=True, kw_only=True):
    """Nodes that do not take the pod, and against which all plugins say the same. In a cycle only the first
    of them says it."""

    nodes: Count
    verdicts: Annotated[tuple[PluginVerdict, ...], Meta(description="in the order in which they are asked")] = ()
    names: Annotated[tuple[str, ...], Meta(description="the first, sorted, at most `limit`")] = ()


class WouldGoReply(Message, frozen=True, kw_only=True):
    """What the cycle would find, up to the choice of a node: nobody reserves or permits anything."""

    scheduler: Annotated[str, Meta(description="who answers")]
    position: Annotated[Count, Meta(description="CLUSTER sequence that it had read")]
    duration_us: Annotated[Count, Meta(description="that it took")] = 0
    namespace: str
    name: str
    profile: str
    gates: Annotated[
        tuple[PluginVerdict, ...],
        Meta(description="what keeps the pod from being tried at all; the rest is told for then"),
    ] = ()
    placed_on: Annotated[
        str, Meta(description="the node that the pod is on, or that it names: the rest is told of one more like it")
    ] = ""
    node: Annotated[str, Meta(description="where it would go; empty: nowhere")] = ""
    equals: Annotated[
        Count, Meta(description="nodes with the highest total, from which the pod's uid chooses one; 0: nobody scores")
    ] = 0
    nodes_total: Count = 0
    nodes_feasible: Count = 0
    rejections: Annotated[tuple[Rejection, ...], Meta(description="by who is the first to reject, as in a record")] = ()
    nearest: Annotated[str, Meta(description="if it would go nowhere: the node that lacks least")] = ""
    scores: Annotated[
        tuple[NodeScore, ...], Meta(description="the best nodes, the chosen one first; the best 3, or `limit`")
    ] = ()
    message: Annotated[str, Meta(description="the reference's text about a pod that fits nowhere")] = ""
    nominated_node: Annotated[
        str, Meta(description="where it would take the place of others; the node that it waits for already")
    ] = ""
    victims: Annotated[tuple[Victim, ...], Meta(description="who would have to go for it")] = ()
    error: Annotated[str, Meta(description="nobody can say where it would go, and why")] = ""
    verdicts: Annotated[tuple[NodesVerdict, ...], Meta(description="of all nodes that do not take it, most first")] = ()
    left_out: Annotated[
        Count,
        Meta(description="nodes that are not told of: by name above the limit, or at all, what a message cannot hold"),
    ] = 0
