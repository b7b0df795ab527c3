"""Counters of processes that are killed and started again: what each start counted, added up.

A counter dies with its process, so that is asked once more just before it is killed.
"""

from collections.abc import Iterable

from podyard.cli.lab.child import Child
from podyard.cli.top import looking
from podyard.cli.top.figures import Look
from podyard.cli.top.looking import Place


class Tally:
    """The last look at every start of every process."""

    def __init__(self, children: Iterable[Child]) -> None:
        self._children = list(children)
        self._looks: dict[tuple[str, int], Look] = {}

    async def take(self) -> None:
        """Look at all that answer."""
        starts = [child.starts for child in self._children]
        places = [Place(child.service, child.instance, child.http) for child in self._children]
        for start, look in zip(starts, await looking.look(places), strict=True):
            if look.samples:
                self._looks[look.instance, start] = look

    def of(self, instance: str) -> list[Look]:
        """The last look at each start of one process."""
        return [look for (name, _), look in self._looks.items() if name == instance]

    def total(self, instance: str, name: str, **labels: str) -> int:
        """Sum over all starts of one process."""
        return int(sum(look.total(name, **labels) for look in self.of(instance)))

    def by(self, instance: str, name: str, label: str) -> dict[str, int]:
        """Sums over all starts by the values of one label, sorted by value of the label."""
        found: dict[str, int] = {}
        for look in self.of(instance):
            for key, value in look.by(name, label).items():
                found[key] = found.get(key, 0) + int(value)
        return dict(sorted(found.items()))
