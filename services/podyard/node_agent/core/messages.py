"""What the agent's core is told."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from podyard.cluster.changes import Change
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


class Tick(NamedTuple):
    """Time passed."""


Message: TypeAlias = Changed | Listed | Observed | Asked | Hearing | Listening | Beat | Tick
