"""Facts that others than the creator know about an object, each on a subject of its own with one writer."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Name, Time, Word
from podyard.proto.message import Count, Int64, Message

PodPhase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]


REFUSED: Final = "Pod was rejected: "
"""How the message of a pod begins that its node did not take. Source: pkg/kubelet/kubelet.go, rejectPod."""

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


MOST_CONTAINERS: Final = 256
"""Containers of a pod of which is told: public pods have some twenty. Of more the first ones count."""


class ContainerEnd(Message, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: Int64 = 0
    reason: Word = ""
    started_at: Time = ""
    finished_at: Time = ""


MOST_RESOURCES: Final = 256
"""Resources of one container."""


class ContainerResources(Message, frozen=True, kw_only=True):
    """What a container has of its node, as quantities."""

    requests: Annotated[dict[Name, Name], Meta(max_length=MOST_RESOURCES)] = {}
    limits: Annotated[dict[Name, Name], Meta(max_length=MOST_RESOURCES)] = {}


class ContainerFact(Message, frozen=True, kw_only=True):
    """One container of a pod: it runs (`started_at`), has ended (`end`), or waits (`reason`)."""

    name: Name
    started_at: Annotated[Time, Meta(description="RFC 3339, UTC; since when it runs")] = ""
    end: ContainerEnd | None = None
    reason: Annotated[Word, Meta(description="why it waits")] = ""
    message: str = ""
    ready: bool = False
    restarts: Count = 0
    last: Annotated[ContainerEnd | None, Meta(description="how it ended before")] = None
    resources: Annotated[
        ContainerResources | None, Meta(description="what it has, of a pod that was asked to be resized")
    ] = None


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
    containers: Annotated[tuple[ContainerFact, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    init_containers: Annotated[tuple[ContainerFact, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    ended: Annotated[bool, Meta(description="nothing of the pod runs any more: its room may be given away")] = False
    at: Annotated[Time, Meta(description="RFC 3339, UTC; when this was observed")] = ""

    @property
    def refused(self) -> bool:
        """Whether its node did not take it: nothing of it ever ran."""
        return self.phase == "Failed" and self.message.startswith(REFUSED)


class NodeStatusFact(Message, frozen=True, kw_only=True):
    """What a node's agent says about the node, on `cluster.nodestatus.<node>`.

    Joined to the node before it is classified: `conditions` replace those of the same type, `taints` are
    added. Its `session` is the only one that plays the node: an agent plays none before its own stands there.
    """

    node: Name
    node_uid: Name = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    taints: Annotated[tuple[TaintFact, ...], Meta(max_length=MOST_CONDITIONS)] = ()
    at: Time = ""
    session: Annotated[Word, Meta(description="of the agent's process, unique to one start of it")] = ""
    lease: Annotated[Word, Meta(description="under which it leads; who gets it next plays its nodes at once")] = ""


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


MOST_LIMITS: Final = 256
"""Resources that one quota limits: there are some thirty names, and a count for each kind."""

LimitedName: TypeAlias = Annotated[str, Meta(max_length=317)]
"""A resource's name, maybe with a domain before it."""

Limits: TypeAlias = Annotated[
    dict[LimitedName, Word], Meta(max_length=MOST_LIMITS, description="quantities by resource")
]


class QuotaUsageFact(Message, frozen=True, kw_only=True):
    """What is used of a resource quota, on `cluster.quotausage.<ns>.<name>.<uid>`; joined to its status.

    `workloads` counts, and writes it anew when something ended or went. Whoever creates what the quota counts
    writes it in the same batch, as a compare-and-set: so what is used never exceeds the limits.
    """

    namespace: Name
    name: Name
    uid: Name
    hard: Annotated[Limits, Meta(description="the limits when it was counted last")] = {}
    used: Limits = {}


class PodScheduledFact(Message, frozen=True, kw_only=True):
    """Why a pod is not scheduled, on `cluster.podscheduled.<ns>.<pod>.<uid>`; joined to its conditions.

    Sent by `kube_api` out of the records of attempts, so that whoever watches pods hears of it in the order
    of CLUSTER; read by `kube_api` alone. It goes when the pod is bound or gone. A duplicate says the same.
    """

    namespace: Name
    name: Name
    uid: Name
    reason: Annotated[Word, Meta(description="of the condition PodScheduled: Unschedulable, SchedulerError")]
    message: Annotated[str, Meta(description="of the last attempt")] = ""
    since: Annotated[float, Meta(description="of the first attempt known to fail, seconds since 1970, UTC")] = 0.0
