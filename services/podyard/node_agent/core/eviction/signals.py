"""The eviction signals, the resource each is about, and the node condition it raises.

Source: pkg/kubelet/eviction/helpers.go, signalToNodeCondition and signalToResource.
"""

from typing import Final, NamedTuple

MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"

MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
INODES: Final = "inodes"
PIDS: Final = "pids"

MEMORY_AVAILABLE: Final = "memory.available"
ALLOCATABLE_MEMORY_AVAILABLE: Final = "allocatableMemory.available"
PID_AVAILABLE: Final = "pid.available"


class Signal(NamedTuple):
    """What one signal measures."""

    name: str
    resource: str
    condition: str

    @property
    def in_bytes(self) -> bool:
        """Whether amounts are bytes, printed in binary units; else pieces (inodes, processes)."""
        return self.resource in {MEMORY, EPHEMERAL_STORAGE}


_FILE_SYSTEMS: Final = ("nodefs", "imagefs", "containerfs")

ALL: Final[dict[str, Signal]] = {
    signal.name: signal
    for signal in (
        Signal(MEMORY_AVAILABLE, MEMORY, MEMORY_PRESSURE),
        Signal(ALLOCATABLE_MEMORY_AVAILABLE, MEMORY, MEMORY_PRESSURE),
        *(Signal(f"{system}.available", EPHEMERAL_STORAGE, DISK_PRESSURE) for system in _FILE_SYSTEMS),
        *(Signal(f"{system}.inodesFree", INODES, DISK_PRESSURE) for system in _FILE_SYSTEMS),
        Signal(PID_AVAILABLE, PIDS, PID_PRESSURE),
    )
}
"""Signals by name, in the order in which thresholds that starve together are served: memory first
(docs/rules.md, memory-comes-first)."""

_ORDER: Final = {name: index for index, name in enumerate(ALL)}


def urgency(name: str) -> int:
    """Sort key: the lower, the sooner a threshold of this signal is served. Total, unlike the reference's
    comparator."""
    return _ORDER[name]
