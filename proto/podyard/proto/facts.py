"""Facts that others than the creator know about an object, each on a subject of its own with one writer."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Name, Time, Word
from podyard.proto.message import Count, Int64, Message

PodPhase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]


MOST_CONDITIONS: Final = 256
"""Conditions, or taints, of a pod or node: public nodes have some twenty."""


class Condition(Message, frozen=True, kw_only=True):
    """A condition of a pod or node, as Kubernetes spells it."""

    type: Word
    status: Literal["True", "False", "Unknown"]
    reason: Word = ""
    message: str = ""
    last_transition_time: Time = ""


class TaintFact(Message, frozen=True, kw_only=True):
    """A taint that an agent or controller puts on a node."""

    key: Annotated[str, Meta(max_length=317)]
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: Annotated[str, Meta(max_length=63)] = ""
    time_added: Time = ""


class PodStatusFact(Message, frozen=True, kw_only=True):
    """What a node's agent says about a pod bound to it, on `cluster.podstatus.<node>.<ns>.<pod>.<uid>`.

    Read by the binder (an ended pod is released), workloads and people. A fact about another uid than the
    living pod's is ignored.
    """

    namespace: Name
    name: Name
    uid: Name
    node: Name
    phase: PodPhase
    reason: Word = ""
    message: str = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    start_time: Annotated[Time, Meta(description="RFC 3339, UTC; when the agent accepted the pod")] = ""
    ended: Annotated[bool, Meta(description="nothing of the pod runs any more: its room may be given away")] = False
    at: Annotated[Time, Meta(description="RFC 3339, UTC; when this was observed")] = ""


class NodeStatusFact(Message, frozen=True, kw_only=True):
    """What a node's agent says about the node, on `cluster.nodestatus.<node>`.

    Joined to the node before it is classified: `conditions` replace those of the same type, `taints` are
    added.
    """

    node: Name
    node_uid: Name = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    taints: Annotated[tuple[TaintFact, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    at: Time = ""


class NodeLifeFact(Message, frozen=True, kw_only=True):
    """What `workloads` says about a node of which too little is heard, on `cluster.nodelife.<node>`; none of
    a node with which all is well.

    Joined to the node after what its agent says, and in the same way. The agent's own words stay as they are.
    """

    node: Name
    node_uid: Name = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    taints: Annotated[tuple[TaintFact, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    at: Time = ""

    @property
    def lost(self) -> Condition | None:
        """The condition Ready, which is said only of a node of which nothing is heard; else None."""
        return next((one for one in self.conditions if one.type == "Ready"), None)


class Nomination(Message, frozen=True, kw_only=True):
    """The node a pod preempted for, on `cluster.nominations.<ns>.<pod>.<uid>`; an empty node ends the
    nomination."""

    namespace: str
    name: str
    uid: str
    node: str
    priority: Int64 = 0
    epoch: Annotated[Count, Meta(description="the queue leader's epoch; the highest counts")] = 0
