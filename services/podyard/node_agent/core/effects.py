"""What the core asks its shell for. Facts about one object are carried out in the order in which they were
handed out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from podyard.node_agent.core.claims import Player
from podyard.node_agent.core.eviction.dialogue import Question
from podyard.node_agent.core.eviction.file_systems import Collector
from podyard.node_agent.core.programs import Bounds, Program
from podyard.proto.agents_api import PreviewReply
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.proto.signals import NodeUsage


class PutPodStatus(NamedTuple):
    """Store a fact about a pod. `trace`: traceparent of what led to it, empty if nothing did."""

    fact: PodStatusFact
    trace: str = ""


class RemovePodStatus(NamedTuple):
    """The pod's object is gone: replace its fact by a marker."""

    node: str
    namespace: str
    name: str
    uid: str


class RemovePod(NamedTuple):
    """Have the object of a deleted pod removed, of which nothing is left on its node."""

    about: ObjectRef
    node: str


class PutNodeStatus(NamedTuple):
    """Store a fact about a node.

    `expect`: the sequence of the version that it replaces, 0 for none; nothing is stored over another. None:
    over whatever the agent itself has said.
    """

    fact: NodeStatusFact
    expect: int | None = None


class RemoveNodeStatus(NamedTuple):
    """The node's object is gone: replace its fact by a marker."""

    node: str


class Awaits(NamedTuple):
    """These nodes are another agent's: the core is to be told of their heartbeats from now on."""

    nodes: Sequence[str]
    by: Player
    lost: bool
    """They were the agent's own before; nothing more is to be said of them or of their pods."""


class ListAgain(NamedTuple):
    """List everything once more: facts about pods of these nodes came meanwhile."""

    nodes: Sequence[str]


class PodStarted(NamedTuple):
    """A pod runs: the end of its way through the services. Times in UTC seconds."""

    namespace: str
    name: str
    uid: str
    node: str
    bound_trace: str
    """Traceparent of its binding."""
    accepted_at: float
    running_at: float


class PodEnded(NamedTuple):
    """Nothing of a pod runs any more, and a trace that is kept tells of it. Handed out before its status."""

    about: ObjectRef
    node: str
    bound_trace: str
    """Traceparent of its binding."""
    ended_by: str
    """Traceparent of its deletion; empty if it was not deleted."""
    since: float
    """When its end began, UTC seconds."""
    at: float
    phase: str
    reason: str
    evicted: bool
    """By its node: `PodEvicted` came before."""


class PodRefused(NamedTuple):
    """A node does not take a pod that was bound to it; its status says so, too."""

    about: ObjectRef
    node: str
    reason: Reason
    message: str
    at: float


class PodPreempted(NamedTuple):
    """A pod goes so that a critical one finds room."""

    resource: str
    """The first that was short."""


class MustEvict(NamedTuple):
    """A node has to end a pod to reclaim something."""

    ages: tuple[tuple[str, float], ...]
    """The signal of each threshold that acts, and how many seconds ago it was measured."""


class PodEvicted(NamedTuple):
    """A pod was chosen for eviction: it ends within its grace period."""

    namespace: str
    name: str
    uid: str
    node: str
    signal: str
    """The signal whose threshold is met."""
    message: str
    grace_s: int
    annotations: dict[str, str]
    at: float
    priority: int
    bound_trace: str
    """Traceparent of the pod's binding."""
    sooner: bool
    """It was being evicted already, and now has less time: no further eviction."""


class Announce(NamedTuple):
    """Tell people about a pod or node, by an event of the kubelet of `node`."""

    about: ObjectRef
    node: str
    reason: Reason
    message: str
    at: float
    warning: bool = True
    field_path: str = ""
    """Which part of it is meant."""


class RoundFailed(NamedTuple):
    """A round of a node's eviction manager found out nothing, or something could not be collected or ended.
    Handed out once for each cause."""

    about: ObjectRef
    fault: str
    at: float
    unread: bool = False
    """There was no reading that is of use."""


class ImagesCollected(NamedTuple):
    """A node has collected images by itself: bytes of those that nobody used for too long, and of those that
    made room."""

    about: ObjectRef
    for_age: int
    for_space: int


class PublishUsage(NamedTuple):
    """Publish what a node uses."""

    usage: NodeUsage


class Heartbeat(NamedTuple):
    """Publish a node's sign of life."""

    node: str


class KillPod(NamedTuple):
    """Begin to end a pod of a host, as of `StopPod`: all of it is gone within so many seconds."""

    uid: str
    grace_s: int
    last: tuple[str, ...] = ()


class AskHost(NamedTuple):
    """A round of a host's eviction manager asks this: `Answered` with the same ticket goes on with it."""

    ticket: int
    node: str
    ask: Question | Collector | KillPod


class LookUpPod(NamedTuple):
    """Say by `Planned` what the containers of a pod run: its object knows more than readers keep of it."""

    about: ObjectRef


class StartContainer(NamedTuple):
    """Run a container as a process: `ContainerStarted` or `ContainerEnded` says what came of it."""

    about: ObjectRef
    """Its pod."""
    container: str
    attempt: int
    """How often it was started before."""
    program: Program
    bounds: Bounds
    pod_bounds: Bounds


class LimitPod(NamedTuple):
    """Let other limits hold for a pod that runs as processes."""

    about: ObjectRef
    bounds: Mapping[str, Bounds]
    """By container; of the pod itself under the empty name."""


class StopPod(NamedTuple):
    """End all processes of a pod: asked to at once, killed after so many seconds. `PodGone` says that none is
    left. Again with less time: sooner."""

    uid: str
    grace_s: float
    last: tuple[str, ...] = ()
    """Containers that are asked only when the others have ended, the first of them last: sidecars. Source:
    pkg/kubelet/kuberuntime/kuberuntime_termination_order.go."""


class Reply(NamedTuple):
    """Answer the request `ticket`."""

    ticket: int
    reply: PreviewReply


class Declined(NamedTuple):
    """The request `ticket` gets no answer but this error."""

    ticket: int
    reason: str


class NotPlayed(NamedTuple):
    """The request `ticket` is about a node that another agent plays, or none: say nothing."""

    ticket: int


Effect: TypeAlias = (
    PutPodStatus
    | RemovePodStatus
    | RemovePod
    | PutNodeStatus
    | RemoveNodeStatus
    | Awaits
    | ListAgain
    | PodStarted
    | PodEnded
    | PodRefused
    | PodPreempted
    | MustEvict
    | PodEvicted
    | Announce
    | RoundFailed
    | ImagesCollected
    | PublishUsage
    | Heartbeat
    | AskHost
    | LookUpPod
    | StartContainer
    | LimitPod
    | StopPod
    | Reply
    | Declined
    | NotPlayed
)
