"""What kube-scheduler's benchmark tells of a run: when the measured part began and ended, on its standard
output and without a time; when each pod was bound, in its log, as klog writes it. Pure.

Sources: test/integration/scheduler_perf/executor.go and pkg/scheduler/schedule_one.go (Kubernetes v1.36.2),
at the benchmark's own verbosity (2).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

LINE: Final = re.compile(r"^[IWE](\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d+)\s+\d+ [^\]]+\] (.*)$")
"""Month, day and time, and what is said."""
BOUND: Final = re.compile(r'^"[^"]*Successfully bound pod to node".* pod="([^"/]+)/([^"]+)"')
STARTED: Final = "Started metrics collection"
STOPPED: Final = "Stopped metrics collection"


class ReferenceLogError(ValueError):
    """The log is not what is expected; the text says in what."""


class Bound(NamedTuple):
    """A pod that was bound."""

    at: float
    """Seconds since 1970."""
    namespace: str
    name: str


class Course(NamedTuple):
    """The measured part."""

    began: float
    """Seconds since 1970."""
    ended: float
    bound: list[Bound]
    """Within it, in order of time."""

    def of(self, counts: Callable[[Bound], bool]) -> "Course":
        """Only the pods that count."""
        return self._replace(bound=[one for one in self.bound if counts(one)])

    @property
    def seconds(self) -> float:
        """From the begin, which is when the first pod is created, to the last binding."""
        return (self.bound[-1].at if self.bound else self.ended) - self.began


def read(told: Sequence[tuple[float, str]], logged: Iterable[str], year: int) -> Course:
    """
    :param told: lines of the benchmark's standard output, each with the time when it came, seconds since 1970
    :param logged: lines of its log, times in UTC
    :param year: which they do not say
    :raises ReferenceLogError: it does not say when the measured part was
    """
    began = next((at for at, line in told if STARTED in line), 0.0)
    ended = next((at for at, line in told if STOPPED in line), 0.0)
    if not began or not ended:
        raise ReferenceLogError("it does not say when the measured part began and ended: it failed before")
    bound: list[Bound] = []
    for line in logged:
        match = LINE.match(line)
        found = match and BOUND.match(match[6])
        if match and found:
            bound.append(Bound(_time(match, year), found[1], found[2]))
    return Course(began, ended, sorted(one for one in bound if began <= one.at <= ended))


def _time(match: re.Match[str], year: int) -> float:
    month, day, hour, minute = (int(match[number]) for number in range(1, 5))
    second = float(match[5])
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() + second
