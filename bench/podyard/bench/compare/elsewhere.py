"""What of the machine went elsewhere during a run: to other processes, or to others on the host of a virtual
machine."""

import resource
import time
from typing import NamedTuple

import psutil


class Elsewhere(NamedTuple):
    """What of the machine was not the run's, in cores on average."""

    others: float
    """That other processes kept busy."""
    stolen: float
    """That a virtual machine wanted and its host gave to others."""


class Besides:
    """What of the machine goes to processes that are no children of this one, since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy, self._stolen = _machine_s()
        self._ours = _ours_s()

    def elsewhere(self) -> Elsewhere:
        """So far, on average."""
        passed = max(time.monotonic() - self._began, 1e-9)
        busy, stolen = _machine_s()
        theirs = (busy - self._busy) - (_ours_s() - self._ours)
        return Elsewhere(max(theirs, 0.0) / passed, (stolen - self._stolen) / passed)


def _machine_s() -> tuple[float, float]:
    """CPU seconds of the whole machine so far: spent, and stolen."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq, times.steal


def _ours_s() -> float:
    """Of this process and of all its children that have ended."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)
