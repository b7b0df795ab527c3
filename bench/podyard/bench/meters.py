"""What a run costs: CPU seconds of processes, and messages through the NATS server."""

import os
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import psutil

if TYPE_CHECKING:
    from podyard.cli.lab.lab import Lab


VARZ_TIMEOUT_S: Final = 5.0
SERVER: Final = "nats-server"
CLIENT: Final = "client"
"""The benchmark itself, among the processes."""


class ServerCounts(msgspec.Struct, frozen=True):
    """Messages since the server started: `in_msgs` it received, `out_msgs` it delivered (replies and
    acknowledgements included)."""

    in_msgs: int = 0
    out_msgs: int = 0


def server_counts(monitor_port: int) -> ServerCounts:
    """The server's message counts, from its monitoring endpoint."""
    url = f"http://127.0.0.1:{monitor_port}/varz"
    with urllib.request.urlopen(url, timeout=VARZ_TIMEOUT_S) as answer:
        return msgspec.json.decode(answer.read(), type=ServerCounts)


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """User and system CPU seconds that each process has used, by name."""
    used: dict[str, float] = {}
    for name, pid in pids.items():
        times = psutil.Process(pid).cpu_times()
        used[name] = times.user + times.system
    return used


def memory_mib(pids: Mapping[str, int]) -> dict[str, float]:
    """Resident memory of each process in MiB, by name."""
    return {name: psutil.Process(pid).memory_info().rss / 1024**2 for name, pid in pids.items()}


def pss_mib(pids: Mapping[str, int]) -> dict[str, float]:
    """Proportional set size of each process in MiB, by name: pages that several share count in parts."""
    return {name: psutil.Process(pid).memory_full_info().pss / 1024**2 for name, pid in pids.items()}


def processes(lab: "Lab") -> dict[str, int]:
    """Processes that a benchmark accounts for, by name: the services (of several of one, the instances), the
    NATS server and the benchmark."""
    return named({child.instance: child.pid for child in lab.children}) | {SERVER: lab.server.pid} | itself()


def named(pids: Mapping[str, int]) -> dict[str, int]:
    """Processes of instances, as `binder-1`, by what they are called here: by their service, if it has no
    other."""
    services = {instance: instance.rpartition("-")[0] for instance in pids}
    number = Counter(services.values())
    return {services[name] if number[services[name]] == 1 else name: pid for name, pid in pids.items()}


def itself() -> dict[str, int]:
    """The benchmark's own process."""
    return {CLIENT: os.getpid()}


def difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """What was used between two readings, by name."""
    return {name: used - before.get(name, 0.0) for name, used in after.items()}


class CpuOverStarts:
    """CPU seconds of processes that may be killed and started again: what each start used, added up.

    What a process used dies with it, so that it counts as far as the last `take` before.
    """

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._last: dict[tuple[str, int], float] = {}

    def begin(self, pids: Mapping[str, int]) -> None:
        """Count from here on: what these have used does not count."""
        for name, pid in pids.items():
            self._before[pid] = self._last[name, pid] = cpu_seconds({name: pid})[name]

    def take(self, pids: Mapping[str, int]) -> None:
        """Look at all that run; one that has just ended stays as it was."""
        for name, pid in pids.items():
            with suppress(psutil.NoSuchProcess):
                self._last[name, pid] = cpu_seconds({name: pid})[name]

    def used(self) -> dict[str, float]:
        """Seconds by name, over all starts."""
        found: dict[str, float] = {}
        for (name, pid), seconds in self._last.items():
            found[name] = found.get(name, 0.0) + seconds - self._before.get(pid, 0.0)
        return found
