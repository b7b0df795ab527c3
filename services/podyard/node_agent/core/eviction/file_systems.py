"""How a node's file systems are laid out, and what follows from it: whose use counts, what is collected, and
which thresholds there are.

Source: pkg/kubelet/eviction/helpers.go (v1.36.2), buildSignalToRankFunc, buildSignalToNodeReclaimFuncs,
UpdateContainerFsThresholds.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from podyard.node_agent.core.eviction.thresholds import Threshold


class Layout(Enum):
    """Where images and writable layers live."""

    SINGLE = "single"
    """One file system for all."""
    DEDICATED = "dedicated imagefs"
    """Images and writable layers together on a file system of their own."""
    SPLIT = "split containerfs"
    """Image layers on a file system of their own, writable layers with the kubelet."""


class Part(Enum):
    """What of a pod takes disk space."""

    ROOTFS = "rootfs"
    LOGS = "logs"
    VOLUMES = "local volumes"


_ALL_PARTS: Final = frozenset(Part)
PARTS: Final[dict[tuple[Layout, str], frozenset[Part]]] = {
    (Layout.SINGLE, "nodefs"): _ALL_PARTS,
    (Layout.SINGLE, "imagefs"): _ALL_PARTS,
    (Layout.SINGLE, "containerfs"): _ALL_PARTS,
    (Layout.DEDICATED, "nodefs"): frozenset({Part.LOGS, Part.VOLUMES}),
    (Layout.DEDICATED, "imagefs"): frozenset({Part.ROOTFS}),
    (Layout.DEDICATED, "containerfs"): frozenset({Part.ROOTFS}),
    (Layout.SPLIT, "nodefs"): _ALL_PARTS,
    (Layout.SPLIT, "imagefs"): frozenset(),
    (Layout.SPLIT, "containerfs"): _ALL_PARTS,
}
"""What of a pod counts for a file system's signals."""


class Collector(Enum):
    """What of a node can be removed before a pod has to go."""

    CONTAINERS = "containers"
    """All containers that are dead."""
    IMAGES = "images"
    """All images that no container uses."""


_BOTH: Final = (Collector.CONTAINERS, Collector.IMAGES)
_COLLECTED: Final[dict[tuple[Layout, str], tuple[Collector, ...]]] = {
    (Layout.SINGLE, "nodefs"): _BOTH,
    (Layout.SINGLE, "imagefs"): _BOTH,
    (Layout.SINGLE, "containerfs"): _BOTH,
    (Layout.DEDICATED, "imagefs"): _BOTH,
    (Layout.DEDICATED, "containerfs"): _BOTH,
    (Layout.SPLIT, "nodefs"): (Collector.CONTAINERS,),
    (Layout.SPLIT, "imagefs"): (Collector.IMAGES,),
    (Layout.SPLIT, "containerfs"): (Collector.CONTAINERS,),
}


def file_system(signal: str) -> str:
    """`nodefs` of `nodefs.available`; for other signals a word that is no file system."""
    return signal.partition(".")[0]


def collected(layout: Layout, signal: str) -> tuple[Collector, ...]:
    """What is collected, in this order, before a pod goes for `signal`; nothing for memory and processes."""
    return _COLLECTED.get((layout, file_system(signal)), ())


def overridden(thresholds: Sequence[Threshold], layout: Layout) -> tuple[Threshold, ...]:
    """The thresholds with those of containerfs that the user gave replaced, each where it was, by what holds
    for the file system that containerfs is on; left out if nothing does."""
    return tuple(one for one in _replaced(thresholds, layout) if one is not None)


def derived(thresholds: Sequence[Threshold], layout: Layout) -> tuple[Threshold, ...]:
    """The thresholds as of `overridden`, and those of containerfs that the user did not give."""
    given = _positions(thresholds)
    added = [_of_source(thresholds, layout, *key) for key in _CONTAINERFS if key not in given]
    return (*overridden(thresholds, layout), *(one for one in added if one is not None))


_CONTAINERFS: Final = (
    ("containerfs.available", True),
    ("containerfs.available", False),
    ("containerfs.inodesFree", True),
    ("containerfs.inodesFree", False),
)
"""Signal, and whether hard."""


def _positions(thresholds: Sequence[Threshold]) -> dict[tuple[str, bool], int]:
    """Of each kind the last one counts: a soft threshold without delay is a hard one."""
    return {(one.signal, one.hard): position for position, one in enumerate(thresholds)}


def _replaced(thresholds: Sequence[Threshold], layout: Layout) -> list[Threshold | None]:
    found: list[Threshold | None] = list(thresholds)
    positions = _positions(thresholds)
    for key in _CONTAINERFS:
        if key in positions:
            found[positions[key]] = _of_source(thresholds, layout, *key)
    return found


def _of_source(thresholds: Sequence[Threshold], layout: Layout, signal: str, hard: bool) -> Threshold | None:
    source = "imagefs" if layout is Layout.DEDICATED else "nodefs"
    position = _positions(thresholds).get((signal.replace("containerfs", source), hard))
    return None if position is None else msgspec.structs.replace(thresholds[position], signal=signal)
