"""What plugins took, and which plugins looked at a pod: values that a caller who counts takes away.

Nothing is decided by them. A cycle is timed plugin by plugin only if its caller wants that, and then one
cycle in ten: that many calls cannot all be timed at no cost.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (pluginMetricsSamplePercent),
framework/runtime/instrumented_plugins.go.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

TIMED_EVERY: Final = 10
"""One cycle in so many is timed plugin by plugin."""

MOST: Final = 16_384
"""Times that are kept until they are taken; what comes after that is not kept."""

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
"""Labels of a Filter call that rejects none of its nodes, or some: it is about many, and has no one
status."""


class PluginTime(NamedTuple):
    """One call of a plugin."""

    plugin: str
    point: str
    """As the reference's metrics call it."""
    status: str
    """Label of the code that it answered."""
    seconds: float
    started: float = 0.0
    """On the stopwatch."""


class PluginTimes:
    """Calls of the cycles that are timed, until somebody takes them."""

    __slots__ = ("_taken", "every", "watch")

    def __init__(self, watch: Callable[[], float], every: int = TIMED_EVERY) -> None:
        """
        :param watch: seconds of a monotonic clock
        :param every: one cycle in so many is timed
        """
        self.watch = watch
        self.every = every
        self._taken: list[PluginTime] = []

    def note(self, plugin: str, point: str, status: str, started: float) -> None:
        """A call has ended. :param started: by `watch`"""
        if len(self._taken) < MOST:
            self._taken.append(PluginTime(plugin, point, status, self.watch() - started, started))

    @property
    def tell_each_call(self) -> bool:
        """Whether people are to see each call of each cycle: none is left out for a short cut then."""
        return self.every == 1

    @property
    def held(self) -> int:
        """How many nobody has taken yet."""
        return len(self._taken)

    def since(self, held: int) -> tuple[PluginTime, ...]:
        """Those that came after there were so many, if none was taken meanwhile."""
        return tuple(self._taken[held:])

    def take(self) -> list[PluginTime]:
        """All since last asked."""
        taken, self._taken = self._taken, []
        return taken


class Evaluated:
    """Plugins that looked at a pod, or whose kept answers stood for it, by extension point. Equal only to
    itself: pods that share results share it, and are counted by it."""

    __slots__ = ("points",)

    def __init__(self, points: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
        self.points = points
        """Extension point, and names of plugins. Those that said Skip to the pod are not among them."""
