"""A recording: the nodes that there were, and the pods with their times. Pure."""

from typing import Final

import msgspec

WHOLE_GPU: Final = 1000
"""Thousandths."""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    model: str = ""
    """Of its GPUs; "": it has none."""


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod. Times are seconds since the recording began."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    gpu_milli: int = 0
    """Of each of its GPUs, in thousandths: less than a whole one only of a single GPU."""
    models: tuple[str, ...] = ()
    """GPUs that it takes; none: any."""
    qos: str
    phase: str
    """That the recording ended with."""
    created: int
    deleted: int
    scheduled: int | None = None
    """None: it never was."""

    @property
    def gpu_total_milli(self) -> int:
        """Of all its GPUs."""
        return self.gpus * self.gpu_milli

    @property
    def gpu_class(self) -> str:
        """What pods of its kind are called."""
        if not self.gpus:
            return "no GPU"
        if self.gpus > 1:
            return "several GPUs"
        return "one GPU" if self.gpu_milli == WHOLE_GPU else "part of a GPU"


class Recorded(msgspec.Struct, frozen=True):
    """All of it."""

    nodes: tuple[NodeRow, ...]
    pods: tuple[PodRow, ...]
