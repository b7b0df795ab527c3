"""What is left of a real host, and what its pods use.

Sources: kubernetes v1.36.2, pkg/kubelet/server/stats/summary.go, and pkg/kubelet/eviction/helpers.go,
makeSignalObservations.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import anyio.to_thread

from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.signals import (
    ALLOCATABLE_MEMORY_AVAILABLE,
    MEMORY_AVAILABLE,
    PID_AVAILABLE,
)
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, Observation, PodStats, Summary
from podyard.node_agent.host import disks, groups, hierarchies, machine
from podyard.node_agent.host.disks import FileSystem
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.files import Missing
from podyard.node_agent.host.groups import Memory
from podyard.node_agent.host.hierarchies import ACCOUNTING, MEMORY, PIDS, Hierarchy
from podyard.node_agent.host.records import ContainerPlace, PodPlace

DISKS_EVERY_S: Final = 10.0
"""How long what was counted of a pod's directories is good. cadvisor counts once a minute."""
DISKS_SHARE: Final = 20
"""Counting takes at most one part in so many of the time: many small files are counted less often."""

_Value = TypeVar("_Value")


class Cpu(NamedTuple):
    """Nanocores since the reading before; who was not measured then is left out."""

    node: int | None
    pods: Mapping[str, int]
    """By uid."""
    containers: Mapping[tuple[str, str], int]
    """By uid and name."""
    window_s: float = 0.0
    """How long ago that was."""


class Measured(NamedTuple):
    """One reading of a host."""

    at: float
    """UTC seconds."""
    summary: Summary
    memory: Memory
    """Of the node."""
    cpu: Cpu
    unread: tuple[str, ...]
    """What of single pods could not be read: sentences. Such a pod has no stats."""


class Readings:
    """Reads one host. State: what CPUs had done at the last reading, what directories take."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        node: str = "",
        *,
        nodefs: Path,
        imagefs: Path | None = None,
        proc: Path = machine.PROC,
        disks_every_s: float = DISKS_EVERY_S,
    ) -> None:
        """
        :param node: the cgroup whose limit is the node's capacity; "": the machine
        :param nodefs: a directory on the file system of logs and local volumes
        :param imagefs: one on that of images and writable layers; None: they are with the others
        :raises HostError: if the node cannot be read
        """
        self._hierarchy = hierarchy
        self._node = node
        self._nodefs = nodefs
        self._imagefs = nodefs if imagefs is None else imagefs
        self._proc = proc
        self._disks = _Disks(disks_every_s)
        self._cpus = _Cpus(hierarchy)
        self._free = threading.Lock()
        """Held by the thread that reads."""
        self._begun_at = 0.0
        self.notes = tuple(self._notes())

    def layout(self) -> Layout:
        """Where images and writable layers live.

        :raises HostError: if a file system cannot be read
        """
        devices = {disks.file_system(path).device for path in (self._nodefs, self._imagefs)}
        return Layout.SINGLE if len(devices) == 1 else Layout.DEDICATED

    async def read(self, now: float, pods: Mapping[str, PodPlace]) -> Measured:
        """Read everything.

        :param now: UTC seconds
        :param pods: by uid
        :raises HostError: with all that failed of what is about the node; or if one that was given up has not
            ended: what does not answer is not asked again meanwhile
        """
        return await anyio.to_thread.run_sync(self._read_and_free, now, pods, abandon_on_cancel=True)

    def _notes(self) -> list[str]:
        """What is measured otherwise than one would think."""
        found = [
            f"the cgroups at {self._hierarchy.root} have no controller {one}: what it counts is not measured"
            for one in self._hierarchy.missing()
        ]
        if self._node and self._tasks_of_node() is None:
            found.append(f"the cgroup {self._node} has no limit of processes: they are counted for the whole machine")
        found += [
            f"the file system of {path} does not count inodes: they are not measured"
            for path in dict.fromkeys((self._nodefs, self._imagefs))
            if not disks.file_system(path).inodes
        ]
        groups.node_memory(self._hierarchy, self._node, self._proc)
        return found

    # ---- in a thread ---------------------------------------------------------------------------------------

    def _read_and_free(self, now: float, pods: Mapping[str, PodPlace]) -> Measured:
        if not self._free.acquire(blocking=False):
            where = " or ".join(map(str, dict.fromkeys((self._nodefs, self._imagefs))))
            raise HostError(
                f"the reading that began {now - self._begun_at:.0f} s ago has not ended: the file system of {where} "
                "does not answer"
            )
        try:
            self._begun_at = now
            return self._read(now, pods)
        finally:
            self._free.release()

    def _read(self, now: float, pods: Mapping[str, PodPlace]) -> Measured:
        failures: list[str] = []
        memory = _unless(failures, lambda: groups.node_memory(self._hierarchy, self._node, self._proc))
        allocatable = _unless(failures, self._allocatable)
        tasks = _unless(failures, self._tasks)
        nodefs = _unless(failures, lambda: disks.file_system(self._nodefs))
        imagefs = _unless(failures, lambda: disks.file_system(self._imagefs))
        self._cpus.begin(now)
        cpu = _unless(failures, lambda: self._cpus.nanocores(self._node))
        if memory is None or nodefs is None or imagefs is None or tasks is None or failures:
            raise HostError("; ".join(dict.fromkeys(failures)))
        signals = {MEMORY_AVAILABLE: _left(memory.available, memory.capacity or 0, now)}
        if allocatable is not None and allocatable.capacity is not None:
            signals[ALLOCATABLE_MEMORY_AVAILABLE] = _left(allocatable.available, allocatable.capacity, now)
        signals[PID_AVAILABLE] = _left(max(tasks[1] - tasks[0], 0), tasks[1], now)
        for name, of in (("nodefs", nodefs), ("imagefs", imagefs), ("containerfs", imagefs)):
            signals.update(_of_file_system(name, of, now))
        reading = _Pods(self._hierarchy, self._disks, self._cpus, now)
        stats = {uid: found for uid, place in pods.items() if (found := reading.read(uid, place)) is not None}
        self._disks.forget_others(pods.values())
        return Measured(
            at=now,
            summary=Summary(signals=signals, pods=stats),
            memory=memory,
            cpu=Cpu(cpu, reading.pods_cpu, reading.containers_cpu, self._cpus.window_s),
            unread=tuple(reading.unread),
        )

    def _allocatable(self) -> Memory | None:
        """Memory of all pods together; None: there are none."""
        try:
            return groups.memory(self._hierarchy, hierarchies.of_pods(self._node))
        except Missing:
            return None

    def _tasks(self) -> tuple[int, int]:
        """How many there are, and may be."""
        found = self._tasks_of_node() if self._node else None
        return found or (machine.tasks(self._proc), machine.most_tasks(self._proc))

    def _tasks_of_node(self) -> tuple[int, int] | None:
        """None: the cgroup has no limit of its own."""
        if PIDS not in self._hierarchy.controllers:
            return None
        try:
            current, most = groups.tasks(self._hierarchy, self._node)
        except Missing:
            return None
        return None if most is None else (current, min(most, machine.most_tasks(self._proc)))


class _Cpus:
    """How fast CPUs work for cgroups, from one reading to the next."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._now = self._last = 0.0
        self._before: dict[str, int] = {}
        self._worked: dict[str, int] = {}
        """Nanoseconds until now, by cgroup."""

    def begin(self, now: float) -> None:
        """Another reading."""
        self._last, self._now = self._now, now
        self._before, self._worked = self._worked, {}

    @property
    def window_s(self) -> float:
        """Since the reading before; 0: there was none."""
        return max(self._now - self._last, 0.0) if self._last else 0.0

    def nanocores(self, group: str) -> int | None:
        """None: not measured, or not before.

        :raises HostError: if it cannot be read
        """
        if self._hierarchy.version == 1 and ACCOUNTING not in self._hierarchy.controllers:
            return None
        worked = self._worked[group] = groups.cpu_ns(self._hierarchy, group)
        before = self._before.get(group)
        if before is None or worked < before or self._now <= self._last:
            return None
        return round((worked - before) / (self._now - self._last))


class _Pods:
    """Of one reading."""

    def __init__(self, hierarchy: Hierarchy, counted: "_Disks", cpus: _Cpus, now: float) -> None:
        self._hierarchy = hierarchy
        self._disks = counted
        self._cpus = cpus
        self._now = now
        self.pods_cpu: dict[str, int] = {}
        self.containers_cpu: dict[tuple[str, str], int] = {}
        self.unread: list[str] = []

    def read(self, uid: str, place: PodPlace) -> PodStats | None:
        """None if the pod cannot be read: it has gone, or `unread` says why."""
        try:
            memory = self._memory(place.group)
            processes = len(self._hierarchy.processes(place.group))
            cpu = self._cpus.nanocores(place.group)
            containers = tuple(self._container(uid, name, of) for name, of in place.containers.items())
        except Missing:
            return None
        except HostError as error:
            self.unread.append(f"what pod {uid} uses cannot be read: {error}")
            return None
        if cpu is not None:
            self.pods_cpu[uid] = cpu
        parts = [part for one in containers for part in (one.rootfs, one.logs) if part is not None]
        return PodStats(
            memory_bytes=memory,
            processes=processes,
            containers=containers,
            ephemeral_bytes=sum(part.used_bytes or 0 for part in parts),
        )

    def _container(self, uid: str, name: str, place: ContainerPlace) -> ContainerStats:
        memory: int | None = 0
        try:
            memory = self._memory(place.group)
            cpu = self._cpus.nanocores(place.group)
        except Missing:  # it has ended, and uses only disk
            cpu = None
        if cpu is not None:
            self.containers_cpu[uid, name] = cpu
        files, logs = self._disks.of(place.files, self._now), self._disks.of(place.logs, self._now)
        return ContainerStats(name=name, memory_bytes=memory, rootfs=files, logs=logs)

    def _memory(self, group: str) -> int | None:
        if MEMORY not in self._hierarchy.controllers:
            return None
        return groups.memory(self._hierarchy, group).working_set


class _Disks:
    """What directories take, counted not too often."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._found: dict[Path, tuple[float, FsUsage]] = {}
        """Until when it is good, and what was counted."""

    def of(self, path: Path, now: float) -> FsUsage:
        """What a directory takes; nothing if it is not there.

        :raises HostError: if it cannot be read
        """
        good_until, usage = self._found.get(path, (now, None))
        if usage is not None and now < good_until:
            return usage
        begun = time.perf_counter()
        usage = disks.directory(path) if path.exists() else FsUsage(used_bytes=0, inodes=0)
        took_s = time.perf_counter() - begun
        self._found[path] = (now + max(self._every_s, DISKS_SHARE * took_s), usage)
        return usage

    def forget_others(self, pods: Iterable[PodPlace]) -> None:
        """Only of these pods it is asked again."""
        asked = {path for pod in pods for one in pod.containers.values() for path in (one.files, one.logs)}
        self._found = {path: found for path, found in self._found.items() if path in asked}


def _unless(failures: list[str], read: Callable[[], _Value]) -> _Value | None:
    """What is read; None, and why among the failures, if it cannot be."""
    try:
        return read()
    except HostError as error:
        failures.append(str(error))
        return None


def _left(available: int, capacity: int, now: float) -> Observation:
    return Observation(available=available, capacity=capacity, observed_at=now)


def _of_file_system(name: str, of: FileSystem, now: float) -> dict[str, Observation]:
    found = {f"{name}.available": _left(of.available_bytes, of.capacity_bytes, now)}
    if of.inodes:
        found[f"{name}.inodesFree"] = _left(of.inodes_free, of.inodes, now)
    return found
