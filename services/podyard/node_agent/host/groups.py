"""What one cgroup uses, and may use.

Sources: cadvisor v0.56.2, container/libcontainer/handler.go, setMemoryStats, and container/raw/handler.go,
GetSpec; opencontainers/cgroups v0.0.6, fs2/memory.go, rootStatsFromMeminfo; kubernetes v1.36.2,
pkg/kubelet/stats/helper.go, isMemoryUnlimited.
"""

from pathlib import Path
from typing import Final, NamedTuple

from podyard.node_agent.host import files, machine
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.files import Missing
from podyard.node_agent.host.hierarchies import ACCOUNTING, CPU, MEMORY, PIDS, Hierarchy

_UNLIMITED: Final = 1 << 62
"""A larger limit is none: version 1 rounds the largest number down to whole pages."""
_LIMIT: Final = "memory.limit_in_bytes"
_MICROSECOND: Final = 1000
"""Nanoseconds."""


class Memory(NamedTuple):
    """Bytes."""

    usage: int
    inactive_file: int
    """Cached pages of files that can be dropped first."""
    capacity: int | None
    """None: no limit."""

    @property
    def working_set(self) -> int:
        """What cannot be had back at once, as the kubelet counts it."""
        return max(self.usage - self.inactive_file, 0)

    @property
    def available(self) -> int:
        """What is left of the capacity. For moments the kernel charges more than that: nothing is left."""
        return max((self.capacity or 0) - self.working_set, 0)


def node_memory(hierarchy: Hierarchy, group: str, proc: Path) -> Memory:
    """Memory of the node: of the machine (""), or of a cgroup whose limit is the capacity.

    :raises HostError: if it cannot be read, or if the cgroup has no limit
    """
    directory = hierarchy.directory(MEMORY, group)
    if not directory.is_dir():
        raise Missing(f"there is no cgroup {directory}: make it, and give it a limit of memory")
    total = machine.memory_capacity(proc)
    used = memory(hierarchy, group)
    if not group:
        return used._replace(capacity=total)
    if used.capacity is None:
        limit = directory / ("memory.max" if hierarchy.version == 2 else _LIMIT)
        raise HostError(
            f"the cgroup {group} has no memory limit, and so the node no capacity: write one to {limit}, for "
            f"example 256M"
        )
    return used._replace(capacity=min(used.capacity, total))


def memory(hierarchy: Hierarchy, group: str) -> Memory:
    """Memory of a cgroup and of those below it.

    :raises HostError: if it cannot be read
    """
    directory = hierarchy.directory(MEMORY, group)
    stat = files.read_table(directory / "memory.stat")
    if hierarchy.version == 1:
        usage, limit = _number(directory / "memory.usage_in_bytes"), _number(directory / _LIMIT)
        return Memory(usage, stat.get("total_inactive_file", 0), None if limit > _UNLIMITED else limit)
    inactive = stat.get("inactive_file", 0)
    if not group:  # the root of version 2 has only statistics
        return Memory(stat.get("anon", 0) + stat.get("file", 0), inactive, None)
    return Memory(_number(directory / "memory.current"), inactive, files.read_number(directory / "memory.max"))


def cpu_ns(hierarchy: Hierarchy, group: str) -> int:
    """Nanoseconds that CPUs worked for a cgroup and those below it.

    :raises HostError: if it cannot be read
    """
    if hierarchy.version == 1:
        return _number(hierarchy.directory(ACCOUNTING, group) / "cpuacct.usage")
    path = hierarchy.directory(CPU, group) / "cpu.stat"
    usage = files.read_table(path).get("usage_usec")
    if usage is None:
        raise HostError(f"{path} has no line usage_usec")
    return usage * _MICROSECOND


def tasks(hierarchy: Hierarchy, group: str) -> tuple[int, int | None]:
    """How many tasks a cgroup and those below it have, and how many they may have (None: any number).

    :raises HostError: if it cannot be read
    """
    directory = hierarchy.directory(PIDS, group)
    return _number(directory / "pids.current"), files.read_number(directory / "pids.max")


def _number(path: Path) -> int:
    found = files.read_number(path)
    if found is None:
        raise HostError(f"{path} says 'max' where a number should be")
    return found
