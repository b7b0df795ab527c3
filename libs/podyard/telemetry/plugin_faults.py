"""What plugins do amiss, told to people: counted each time, logged once in a while."""

import logging
import time
from collections.abc import Callable
from typing import Final

import prometheus_client

log: Final = logging.getLogger("podyard.plugins")

AGAIN_S: Final = 60.0
"""A plugin that fails in one extension point is logged once in so many seconds, with the number of times in
between."""

MOST_LABELS: Final = 256
"""Pairs of plugin and extension point with a counter of their own: more than any configuration has."""
OTHERS: Final = "others"


class PluginFaults:
    """One process' counter and log of plugins that raised, or answered nonsense."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        service: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param service: whose counter it is, as its other metrics are named
        :param clock: monotonic, seconds
        """
        self._clock = clock
        self._counter = prometheus_client.Counter(
            f"podyard_{service}_plugin_faults",
            "Times a plugin raised or answered nonsense, by extension point: the pod concerned was tried again",
            ["plugin", "point"],
            registry=registry,
        )
        self._logged: dict[tuple[str, str], float] = {}
        """When, by plugin and extension point."""
        self._unsaid: dict[tuple[str, str], int] = {}

    def told(self, plugin: str, point: str, detail: str) -> None:
        """A plugin did amiss.

        :param point: extension point or hook, as the reference spells it in messages
        :param detail: what it raised, or what is wrong with its answer
        """
        key = (plugin, point)
        if key not in self._logged and len(self._logged) >= MOST_LABELS:
            key = (OTHERS, OTHERS)
        self._counter.labels(*key).inc()
        now, last = self._clock(), self._logged.get(key)
        if last is not None and now - last < AGAIN_S:
            self._unsaid[key] = self._unsaid.get(key, 0) + 1
            return
        self._logged[key] = now
        more = self._unsaid.pop(key, 0)
        before = f" ({more} times more since this was last told)" if more else ""
        log.error("plugin %s failed in %s%s: %s", plugin, point, before, detail)
