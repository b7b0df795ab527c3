"""What one run was found to be, the same of both sides."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podyard.bench.machine import Commit, Machine
from podyard.bench.scheduler_perf.figures import LONG_ENOUGH_S


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Of the measured part."""

    pods: int
    """That were bound."""
    seconds: float
    """From the first create to the last binding."""
    pods_per_second: float | None
    """By the reference's definition: the mean of samples, one a second, the first dropped; `None`: too short
    for one."""
    cpu_us_per_pod: dict[str, float]
    """Microseconds (user and system), by process: the store and the client among them."""
    memory_mib: float | None
    """Of the reference Go's heap in use, of Podyard the PSS of all processes and the NATS server, without the
    client."""
    resident_mib: dict[str, float] = {}
    """The most that each process had in memory at once, pages of files among it."""
    attempt_mean_ms: float | None
    """Of attempts that placed a pod."""
    attempt_p99_ms: float | None
    reaction_p50_ms: float | None = None
    """Where the file paces the pods: from an event (an update, a deletion, a new object) to the last binding
    before the next one."""
    reaction_p99_ms: float | None = None

    @property
    def whole_rate(self) -> float:
        """Pods a second from the first create to the last binding."""
        return self.pods / self.seconds if self.seconds > 0 else 0.0

    @property
    def cpu_us(self) -> float:
        """Of all processes, microseconds a pod."""
        return sum(self.cpu_us_per_pod.values())

    @property
    def short(self) -> bool:
        """Whether it ended before its samples could count."""
        return self.seconds < LONG_ENOUGH_S or self.pods_per_second is None

    def notes(self) -> list[str]:
        """What is to be known of the run by them."""
        if self.seconds < LONG_ENOUGH_S:
            return [f"the measured part lasted less than {LONG_ENOUGH_S:g} s"]
        return []


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one side: a result file. A later version adds fields with defaults."""

    row: str
    side: str
    pair: int
    """From 1."""
    workload: str
    """As the benchmark names it."""
    parameters: Mapping[str, int]
    """Those of its parameters that differ from the file's."""
    started: str
    """UTC, as `2026-11-22T12:00:00Z`."""
    load: float
    """Of the machine before it, over a minute."""
    others_cores: float
    """Cores that processes which are not of the run kept busy meanwhile."""
    stolen_cores: float = 0.0
    """Cores that the host of a virtual machine gave to others meanwhile."""
    machine: Machine
    versions: dict[str, str]
    """Of the programs of this side."""
    commit: Commit
    """Of the checkout."""
    figures: Figures
    notes: list[str] = []
    """What is to be known of it."""
    said: dict[str, Any] = {}
    """What the side itself wrote."""
