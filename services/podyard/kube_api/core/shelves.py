"""The objects of one resource in the order of lists, as they are and as they were. Pure."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from podyard.kube_api.core.items import Item


class Scope(NamedTuple):
    """Where objects are looked for."""

    resource: str
    """Plural of a core kind, or `<plural>.<version>.<group>`."""
    namespace: str = ""
    """Empty: all of them, and what is in none."""


class Shelf:
    """The objects of one resource."""

    __slots__ = ("items", "paths")

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.paths: list[str] = []
        """In order."""

    def put(self, item: Item) -> None:
        """In the place of the one of its path, if there is one."""
        if item.path not in self.items:
            insort(self.paths, item.path)
        self.items[item.path] = item

    def remove(self, path: str) -> None:
        """If it is there."""
        if self.items.pop(path, None) is not None:
            del self.paths[bisect_left(self.paths, path)]

    def between(self, namespace: str, start: str) -> Iterator[Item]:
        """Those of a namespace, of all if it is empty, from the path `start` on, in order; not to be used
        after the next change."""
        begin, end = _range(self.paths, namespace, start)
        items = self.items
        return (items[self.paths[at]] for at in range(begin, end))

    def as_before(self, before: Mapping[str, Item | None], namespace: str, start: str) -> list[Item]:
        """The same with what has changed taken back.

        :param before: what stood in the place of what has changed since; `None` where nothing was
        """
        if not before:
            return list(self.between(namespace, start))
        begin, end = _range(self.paths, namespace, start)
        paths = [path for path in self.paths[begin:end] if before.get(path, self) is not None]
        back = [path for path, item in before.items() if item is not None and path not in self.items]
        if back:
            back.sort()
            begin, end = _range(back, namespace, start)
            paths = sorted((*paths, *back[begin:end]))
        return [before.get(path) or self.items[path] for path in paths]


EMPTY: Final = Shelf()


def _range(paths: Sequence[str], namespace: str, start: str) -> tuple[int, int]:
    """Where the paths of a namespace begin and end, from `start` on."""
    begin, end = start, len(paths)
    if namespace:
        begin = max(start, f"{namespace}/")
        end = bisect_left(paths, f"{namespace}0")  # the character after the slash
    return min(bisect_left(paths, begin), end), end
