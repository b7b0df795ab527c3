"""What cycles and attempts took, for the shell to take: no effect tells it, since nobody acts on it."""

from typing import Final, NamedTuple

import msgspec

from podyard.framework.cycle import PointTime
from podyard.framework.plugin_times import Evaluated, PluginTime, PluginTimes
from podyard.proto.queue_api import PoppedPod

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
"""How an attempt ended. Source: kube-scheduler v1.36.2, pkg/scheduler/metrics/profile_metrics.go."""

DEFAULT_PREEMPTION: Final = "DefaultPreemption"


class CycleTimes(msgspec.Struct, frozen=True, gc=False):
    """One cycle."""

    profile: str
    algorithm_s: float
    """From its start to the choice of a node, or to the end of PostFilter."""
    points: list[PointTime]
    evaluated: list[Evaluated]


class AttemptTime(msgspec.Struct, frozen=True, gc=False):
    """One attempt that has ended."""

    result: str
    profile: str
    seconds: float
    """From the start of its first cycle to its end: the binding, or whatever went wrong."""
    trace: str
    """Traceparent of its last cycle."""
    at: float
    """When it ended, in seconds since 1970, UTC."""


class Measured(NamedTuple):
    """Since it was last taken."""

    cycles: list[CycleTimes]
    attempts: list[AttemptTime]
    plugins: list[PluginTime]
    """Of the cycles that were timed plugin by plugin."""
    permit_waits: list[tuple[str, float]]
    """Waits at Permit that ended: label of how, and seconds."""
    preemptions: int
    """How often DefaultPreemption was asked."""


class Measuring:
    """Of one core."""

    __slots__ = ("_attempts", "_cycles", "_permit_waits", "_plugins", "_preemptions")

    def __init__(self, plugins: PluginTimes) -> None:
        """:param plugins: what cycles leave there"""
        self._plugins = plugins
        self._cycles: list[CycleTimes] = []
        self._attempts: list[AttemptTime] = []
        self._permit_waits: list[tuple[str, float]] = []
        self._preemptions = 0

    def cycle(self, times: CycleTimes, post_filters: tuple[str, ...]) -> None:
        """A cycle is over. :param post_filters: plugins of PostFilter that were asked"""
        self._cycles.append(times)
        if DEFAULT_PREEMPTION in post_filters:
            self._preemptions += 1

    def attempt(self, result: str, popped: PoppedPod, started: float, now: float, trace: str) -> None:
        """An attempt has ended. :param started: when its first cycle began"""
        self._attempts.append(AttemptTime(result, popped.profile, max(0.0, now - started), trace, now))

    def permit_wait(self, label: str, seconds: float) -> None:
        """A wait at Permit has ended."""
        self._permit_waits.append((label, seconds))

    @property
    def held(self) -> int:
        """How many cycles, attempts and waits nobody has taken yet."""
        return len(self._cycles) + len(self._attempts) + len(self._permit_waits)

    def take(self) -> Measured | None:
        """All since last asked; None: nothing."""
        if not self.held:
            return None
        taken = Measured(self._cycles, self._attempts, self._plugins.take(), self._permit_waits, self._preemptions)
        self._cycles, self._attempts, self._permit_waits, self._preemptions = [], [], [], 0
        return taken
