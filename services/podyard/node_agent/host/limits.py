"""Writes the limits of a cgroup.

Sources: kubernetes v1.36.2, pkg/kubelet/cm/helpers_linux.go, MilliCPUToShares and MilliCPUToQuota;
opencontainers/cgroups v0.0.6, utils.go, ConvertCPUSharesToCgroupV2Value, and fs/memory.go, setMemoryAndSwap.
"""

import math
from pathlib import Path
from typing import Final

from podyard.node_agent.host import files
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.hierarchies import CPU, MEMORY, PIDS, Hierarchy
from podyard.node_agent.host.records import Limits

FEWEST_SHARES: Final = 2
MOST_SHARES: Final = 262_144
_LIGHTEST: Final = 1
_HEAVIEST: Final = 10_000
PERIOD_US: Final = 100_000
SHORTEST_QUOTA_US: Final = 1000


def put(hierarchy: Hierarchy, group: str, limits: Limits) -> None:
    """Let these limits hold for a cgroup, in place of what held before.

    :raises HostError: if one cannot be kept; others may hold already
    """
    _memory(hierarchy, group, limits)
    _cpu(hierarchy, group, limits)
    directory = _directory(hierarchy, PIDS, group, None if limits.processes is None else "limit of processes")
    if directory is not None:
        files.write(directory / "pids.max", _or_max(limits.processes))


def shares(millis: int) -> int:
    """Version 1's weight of a request of CPU."""
    return min(max(millis * 1024 // 1000, FEWEST_SHARES), MOST_SHARES)


def weight(millis: int) -> int:
    """Version 2's weight of a request of CPU."""
    of = shares(millis)
    if of <= FEWEST_SHARES:
        return _LIGHTEST
    if of >= MOST_SHARES:
        return _HEAVIEST
    log = math.log2(of)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


def quota_us(millis: int) -> int:
    """Of each period of 100 ms."""
    return max(millis * PERIOD_US // 1000, SHORTEST_QUOTA_US)


def _memory(hierarchy: Hierarchy, group: str, limits: Limits) -> None:
    wanted = limits.memory_bytes
    directory = _directory(hierarchy, MEMORY, group, None if wanted is None else "limit of memory")
    if directory is None:
        return
    if hierarchy.version == 2:
        files.write(directory / "memory.max", _or_max(wanted))
        _write_if_there(directory / "memory.swap.max", _or_max(None if wanted is None else 0))
        return
    text = "-1" if wanted is None else str(wanted)
    limit, with_swap = directory / "memory.limit_in_bytes", directory / "memory.memsw.limit_in_bytes"
    # memory may never have a higher limit than memory and swap together
    if wanted is None or wanted > (files.read_number(limit) or 0):
        _write_if_there(with_swap, text)
        files.write(limit, text)
    else:
        files.write(limit, text)
        _write_if_there(with_swap, text)


def _cpu(hierarchy: Hierarchy, group: str, limits: Limits) -> None:
    wanted = limits.cpu_limit_millis
    asked = "request or limit of CPU" if limits.cpu_request_millis or wanted is not None else None
    directory = _directory(hierarchy, CPU, group, asked)
    if directory is None:
        return
    if hierarchy.version == 2:
        files.write(directory / "cpu.weight", str(weight(limits.cpu_request_millis)))
        files.write(directory / "cpu.max", f"{_or_max(None if wanted is None else quota_us(wanted))} {PERIOD_US}")
        return
    files.write(directory / "cpu.shares", str(shares(limits.cpu_request_millis)))
    files.write(directory / "cpu.cfs_period_us", str(PERIOD_US))
    files.write(directory / "cpu.cfs_quota_us", "-1" if wanted is None else str(quota_us(wanted)))


def _directory(hierarchy: Hierarchy, controller: str, group: str, asked: str | None) -> Path | None:
    """Where to write; None if there is no such controller and nothing is asked of it."""
    if controller in hierarchy.controllers:
        return hierarchy.directory(controller, group)
    if asked is None:
        return None
    raise HostError(f"a {asked} cannot be kept: the cgroups at {hierarchy.root} have no controller {controller}")


def _or_max(wanted: int | None) -> str:
    return "max" if wanted is None else str(wanted)


def _write_if_there(path: Path, text: str) -> None:
    """A kernel without accounting of swap has no such file, and then there is nothing to limit."""
    if path.exists():
        files.write(path, text)
