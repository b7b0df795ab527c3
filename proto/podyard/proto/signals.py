"""Usage: synthetic signals that people publish, and what agents report. Not stored."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Moment, Name, Word
from podyard.proto.message import Count, Message

MOST_SIGNALS: Final = 64
"""Signals of a node. The kubelet has nine."""

MOST_PODS: Final = 10_000
"""Pods of a node that signals name. A kubelet runs 110 unless told."""

AskedOfNode: TypeAlias = Literal["layout", "reading", "containers", "images", "kill"]
"""What an eviction manager asks of its node: where images and writable layers live, what is left and used, to
collect dead containers, to collect unused images, to end a pod."""

MOST_FAILING: Final = 5
"""Each thing that is asked once."""


class SignalValue(Message, frozen=True, kw_only=True):
    """One eviction signal: what is left of what there is, bytes (inodes, processes for those signals)."""

    available: Count
    capacity: Count


class PodUsage(Message, frozen=True, kw_only=True):
    """What one pod uses now."""

    namespace: Name
    name: Name
    memory_bytes: Count = 0
    disk_bytes: Count = 0
    inodes: Count = 0
    processes: Count = 0


class Failing(Message, frozen=True, kw_only=True):
    """What the node cannot do when its eviction manager asks for it, and why."""

    what: AskedOfNode
    why: Annotated[str, Meta(min_length=1, max_length=1024)]


class NodeSignals(Message, frozen=True, kw_only=True):
    """Synthetic usage for one node, on `signals.<node>`; replaces the node's earlier one. No signals = as if
    idle."""

    node: Name
    signals: Annotated[
        dict[Name, SignalValue], Meta(max_length=MOST_SIGNALS, description="by signal name, e.g. memory.available")
    ] = {}
    pods: Annotated[tuple[PodUsage, ...], Meta(max_length=MOST_PODS)] = ()
    failing: Annotated[tuple[Failing, ...], Meta(max_length=MOST_FAILING)] = ()
    who: Word = ""
    at: Annotated[Moment, Meta(description="seconds since 1970, UTC; when it was observed; 0 = on receipt")] = 0.0


class NodeUsage(Message, frozen=True, kw_only=True):
    """Usage as the agent sees it, on `usage.<node>`."""

    node: Name
    signals: dict[str, SignalValue] = {}
    pods: tuple[PodUsage, ...] = ()
    at: Moment = 0.0


class NodeHeartbeat(Message, frozen=True, kw_only=True):
    """A node's sign of life, on `heartbeat.<node>`."""

    node: Name
    agent: Name = ""
    at: Moment = 0.0
