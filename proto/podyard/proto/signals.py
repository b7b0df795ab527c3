"""Usage: synthetic signals that people publish, and what agents report. Not stored."""

from typing import Annotated

from msgspec import Meta

from podyard.proto.message import Count, Message


class SignalValue(Message, frozen=True, kw_only=True):
    """One eviction signal: what is left of what there is, bytes (inodes, processes for those signals)."""

    available: Count
    capacity: Count


class PodUsage(Message, frozen=True, kw_only=True):
    """What one pod uses now."""

    namespace: str
    name: str
    memory_bytes: Count = 0
    disk_bytes: Count = 0
    inodes: Count = 0
    processes: Count = 0


class NodeSignals(Message, frozen=True, kw_only=True):
    """Synthetic usage for one node, on `signals.<node>`; replaces the node's earlier one. No signals = as if idle."""

    node: str
    signals: Annotated[dict[str, SignalValue], Meta(description="by signal name, e.g. memory.available")] = {}
    pods: tuple[PodUsage, ...] = ()
    who: str = ""
    at: Annotated[float, Meta(description="seconds since 1970, UTC; when it was observed; 0 = on receipt")] = 0.0


class NodeUsage(Message, frozen=True, kw_only=True):
    """Usage as the agent sees it, on `usage.<node>`."""

    node: str
    signals: dict[str, SignalValue] = {}
    pods: tuple[PodUsage, ...] = ()
    at: float = 0.0


class NodeHeartbeat(Message, frozen=True, kw_only=True):
    """A node's sign of life, on `heartbeat.<node>`."""

    node: str
    agent: str = ""
    at: float = 0.0
