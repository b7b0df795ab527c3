"""Facts that others than the creator know about an object, each on a subject of its own with one writer."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.message import Count, Int64, Message

PodPhase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]


class Condition(Message, frozen=True, kw_only=True):
    """A condition of a pod or node, as Kubernetes spells it."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: Annotated[str, Meta(description="RFC 3339, UTC")] = ""


class TaintFact(Message, frozen=True, kw_only=True):
    """A taint that an agent or controller puts on a node."""

    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""
    time_added: Annotated[str, Meta(description="RFC 3339, UTC")] = ""


class PodStatusFact(Message, frozen=True, kw_only=True):
    """What a node's agent says about a pod bound to it, on `cluster.podstatus.<node>.<ns>.<pod>.<uid>`.

    Read by the binder (an ended pod is released), workloads and people. A fact about another uid than the living pod's is
    ignored.
    """

    namespace: str
    name: str
    uid: str
    node: str
    phase: PodPhase
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: Annotated[str, Meta(description="RFC 3339, UTC; when the agent accepted the pod")] = ""
    ended: Annotated[bool, Meta(description="nothing of the pod runs any more: its room may be given away")] = False
    at: Annotated[str, Meta(description="RFC 3339, UTC; when this was observed")] = ""


class NodeStatusFact(Message, frozen=True, kw_only=True):
    """What a node's agent (or, for a lost node, workloads) says about the node, on `cluster.nodestatus.<node>`.

    Joined to the node before it is classified: `conditions` replace those of the same type, `taints` are added.
    """

    node: str
    node_uid: str = ""
    conditions: tuple[Condition, ...] = ()
    taints: tuple[TaintFact, ...] = ()
    at: Annotated[str, Meta(description="RFC 3339, UTC")] = ""


class Nomination(Message, frozen=True, kw_only=True):
    """The node a pod preempted for, on `cluster.nominations.<ns>.<pod>.<uid>`; an empty node ends the nomination."""

    namespace: str
    name: str
    uid: str
    node: str
    priority: Int64 = 0
    epoch: Annotated[Count, Meta(description="the queue leader's epoch; the highest counts")] = 0
