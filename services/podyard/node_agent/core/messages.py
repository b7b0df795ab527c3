"""What the agent's core is told."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.node_agent.core.eviction.dialogue import Done, Failed
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.stats import Summary
from podyard.node_agent.core.programs import Faults, Plan
from podyard.proto.agents_api import PreviewRequest
from podyard.proto.signals import NodeSignals


class StoredStatus(NamedTuple):
    """A stored fact about a pod, by its subject."""

    node: str
    namespace: str
    name: str
    uid: str


class Changed(NamedTuple):
    """The view changed."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view has listed everything (again). Its differences came before, as `Changed`; here is what was
    said of objects that went while nobody looked."""

    nodes: Sequence[str]
    """Nodes that somebody reported about."""
    pods: Sequence[StoredStatus]


class Observed(NamedTuple):
    """Synthetic signals of a node came in."""

    signals: NodeSignals


class Asked(NamedTuple):
    """Somebody asks about a node; `ticket` names the request until its answer."""

    ticket: int
    request: PreviewRequest


class Hearing(NamedTuple):
    """We hear the bus now, or do not any more; until it is said we do not."""

    hears: bool


class Listening(NamedTuple):
    """Heartbeats of a node that another agent plays would reach us from now on."""

    node: str


class Beat(NamedTuple):
    """A heartbeat of such a node."""

    node: str


class Measured(NamedTuple):
    """What was read of a host."""

    summary: Summary
    cpu_nanocores: int | None = None
    """Of the host; None: not known yet."""
    pods_cpu: Mapping[str, int] = {}
    """Nanocores by uid."""
    containers_cpu: Mapping[tuple[str, str], int] = {}
    """By uid and name."""
    window_s: float = 0.0
    """For how long all of these were measured."""


class Answered(NamedTuple):
    """What a round of an eviction manager asked of a host, under this ticket."""

    ticket: int
    answer: Layout | Measured | Done | Failed


class Run(NamedTuple):
    """The last run of a container that an agent before this one started. Times in UTC seconds."""

    container: str
    attempt: int
    started_at: float
    end: "RunEnd | None" = None
    """None: it runs still."""


class RunEnd(NamedTuple):
    """How a run ended."""

    code: int
    at: float
    """UTC seconds."""
    reason: str = ""
    """Empty: as its code says."""
    why: str = ""
    """What people should know about it."""


class Found(NamedTuple):
    """What runs on the host when the term begins, by the uid of its pod."""

    runs: Mapping[str, Sequence[Run]]


class Planned(NamedTuple):
    """What the containers of a pod run, or why it cannot run here."""

    uid: str
    plan: Plan | Faults


class ContainerStarted(NamedTuple):
    """A container that was to start runs."""

    uid: str
    """Of its pod."""
    container: str
    attempt: int
    at: float
    """UTC seconds."""


class ContainerEnded(NamedTuple):
    """A container has ended, or could not be started."""

    uid: str
    """Of its pod."""
    container: str
    attempt: int
    started_at: float
    """UTC seconds."""
    end: RunEnd


class PodGone(NamedTuple):
    """Nothing of a pod runs any more that was to end."""

    uid: str


class Noticed(NamedTuple):
    """The kernel says that a threshold of memory was passed on a host."""

    node: str


class Tick(NamedTuple):
    """Time passed."""


OfProcesses: TypeAlias = Found | Planned | ContainerStarted | ContainerEnded | PodGone
"""What comes from a host whose pods are processes."""

Message: TypeAlias = (
    Changed | Listed | Observed | Asked | Hearing | Listening | Beat | Answered | Noticed | OfProcesses | Tick
)
