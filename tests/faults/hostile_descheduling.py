"""Plugins of the descheduler that do all that they can do amiss, each one thing, in one cycle."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from podyard.descheduler.core.framework import Evict, Verdict
from tests.faults.hostile_plugin import AMISS
from tests.unit.descheduler.test_plugins_that_fail import POINTS, Sweep, bad

OWNED: Final = "owned"
"""The label `app` of pods that have an owner: others are refused before a plugin is asked."""
FILTERS: Final = ("filter", "preevictionfilter")


class Leaving(Sweep):
    """Wants pods to go that say so, and asks both filters about those of an owner."""

    NAME = "Leaving"

    def deschedule(self, nodes: Any) -> Any:
        evictor = self.handle.evictor
        for one in list(self.handle.state.pods.values()):
            if one.metadata.labels.get("app") == "leaving":
                yield Evict(one)
            elif one.metadata.labels.get("app") == OWNED:
                evictor.filter(one)
                evictor.pre_eviction_filter(one)


class Descheduling(NamedTuple):
    """A policy file, and the plugins that it names."""

    policy: str
    plugins: dict[str, type]
    hostile: set[str]
    """Names of those that do amiss."""

    @classmethod
    def of(cls, faults: Sequence[str], folder: Path) -> "Descheduling":
        """Every point and filter with each of these, of `AMISS`. In a cycle a filter is asked until one
        refuses, so each has a profile of its own."""
        runs = [_named(f"Bad{n}", bad(point, AMISS[what])) for n, point, what in _pairs(POINTS, faults)]
        asked = [(point, _named(f"Picky{n}", picky(point, what))) for n, point, what in _pairs(FILTERS, faults)]
        profiles = [_profile(one.NAME, **{point: [one], "deschedule": [Leaving]}) for point, one in asked]
        balance = [one for one in runs if hasattr(one, "balance")]
        profiles.append(_profile("runs", deschedule=runs, balance=balance))  # last: some of them evict the bad pod
        file = folder / "policy.yaml"
        head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": profiles}
        file.write_bytes(msgspec.json.encode(head))
        hostile = {one.NAME: one for one in (*runs, *(one for _, one in asked))}
        return cls(str(file), {**hostile, Leaving.NAME: Leaving}, set(hostile))


def picky(point: str, what: str) -> type:
    """A plugin that does amiss when it is asked at one point whether a pod of an owner may go."""

    class Picky(Sweep):
        def filter(self, one: Any) -> Any:
            return self._says(one, "filter")

        def pre_eviction_filter(self, one: Any) -> Any:
            return self._says(one, "preevictionfilter")

        def _says(self, one: Any, asked: str) -> Any:
            return AMISS[what]() if asked == point and one.metadata.labels.get("app") == OWNED else Verdict(True)

    return Picky


def _pairs(points: Sequence[str], faults: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    return ((number, *pair) for number, pair in enumerate(itertools.product(points, faults)))


def _named(name: str, plugin: type) -> Any:
    return type(name, (plugin,), {"NAME": name})


def _profile(name: str, **points: Sequence[Any]) -> dict[str, Any]:
    plugins = {one.NAME: {"name": one.NAME, "args": {}} for each in points.values() for one in each}
    evictor = {"name": "DefaultEvictor", "args": {"nodeFit": False}}
    enabled = {point: {"enabled": [one.NAME for one in each]} for point, each in points.items()}
    return {"name": name.lower(), "pluginConfig": [evictor, *plugins.values()], "plugins": enabled}
