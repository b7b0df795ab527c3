"""What changed lately, by resource, as much of it as so many bytes hold: what a watch from an earlier version
begins with, and how a list of an earlier version is told. Pure.

Source: kubernetes v1.36.2, staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.kube_api.core.items import Item, Step

HISTORY_BYTES: Final = 64 * 1024 * 1024
"""Of the steps of all resources together."""

MOST_GAPS: Final = 64
"""Listings anew that are remembered. What was before the oldest of more is forgotten."""


class Gap(NamedTuple):
    """Between two positions of one reader's messages were missed: only what came of them is known. Nobody can
    be told what happened since a version in between."""

    after: int
    to: int

    def holds(self, version: int) -> bool:
        return self.after < version < self.to


class _Ring:
    """The steps of one resource, oldest first."""

    def __init__(self, floor: int) -> None:
        self.floor = floor
        """From this version on every step is known."""
        self.steps: deque[Step] = deque()
        self.bytes = 0

    def drop_oldest(self) -> None:
        oldest = self.steps.popleft()
        self.bytes -= oldest.bytes
        self.floor = max(self.floor, oldest.at)


class History:
    """The last steps of all resources."""

    def __init__(self, most_bytes: int = HISTORY_BYTES) -> None:
        """
        :param most_bytes: that all steps may take; the oldest ones of the resource with the most go first
        """
        self._most_bytes = most_bytes
        self._rings: dict[str, _Ring] = {}
        self._gaps: list[Gap] = []
        self._floor = 0
        """Since when this reader reads."""
        self.bytes = 0
        """What the steps take together."""

    def floor(self, resource: str) -> int:
        """The lowest version since which every step is known."""
        ring = self._rings.get(resource)
        return self._floor if ring is None else ring.floor

    def reaches(self, resource: str, version: int) -> bool:
        """Whether all that happened to a resource since a version is known."""
        return version >= self.floor(resource) and not any(gap.holds(version) for gap in self._gaps)

    def since(self, resource: str, version: int) -> list[Step]:
        """The steps after a version that `reaches` allows, oldest first."""
        found: list[Step] = []
        ring = self._rings.get(resource)
        for step in reversed(ring.steps) if ring is not None else ():
            if step.at <= version:
                break
            found.append(step)
        found.reverse()
        return found

    def before(self, resource: str, version: int) -> dict[str, Item | None]:
        """What stood at a version that `reaches` allows in the place of what has changed since, by path;
        `None` where nothing was."""
        return {step.path: step.before for step in reversed(self.since(resource, version))}

    def add(self, steps: Sequence[Step]) -> None:
        """What happened now, in order."""
        for step in steps:
            ring = self._rings.get(step.resource)
            if ring is None:
                ring = self._rings[step.resource] = _Ring(self._floor)
            ring.steps.append(step)
            cost = step.bytes
            ring.bytes += cost
            self.bytes += cost
        while self.bytes > self._most_bytes:
            fullest = max(self._rings.values(), key=lambda ring: ring.bytes)
            self.bytes -= fullest.steps[0].bytes
            fullest.drop_oldest()

    def missed(self, gap: Gap) -> None:
        """All was listed anew: of what happened in between the outcome alone is known."""
        self._gaps.append(gap)
        if len(self._gaps) > MOST_GAPS:
            self._begin_at(self._gaps.pop(0).to)

    def _begin_at(self, floor: int) -> None:
        self._floor = max(self._floor, floor)
        for ring in self._rings.values():
            while ring.steps and ring.steps[0].at <= floor:
                self.bytes -= ring.steps[0].bytes
                ring.drop_oldest()
            ring.floor = max(ring.floor, floor)

    def forget(self, position: int) -> None:
        """Nothing is known of what was before `position`."""
        self._rings.clear()
        self._gaps.clear()
        self._floor = position
        self.bytes = 0
