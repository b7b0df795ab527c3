"""Who listens on which subject."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from podyard.bus.watch import picker


class Listening(NamedTuple):
    """One subscription. `deliver(subject, reply, payload, head)` takes a message on its way to the client."""

    identity: int
    connection: int
    pattern: str
    queue: str
    deliver: Callable[[str, str, bytes, bytes], None]


_NOBODY: Final[Mapping[int, Listening]] = {}


class Routes:
    """Subscriptions of all connections. Patterns of the two frequent shapes, exact and `prefix.*`, are found
    by look-up."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[int, Listening]] = {}
        self._below: dict[str, dict[int, Listening]] = {}
        """`prefix.` of `prefix.*`."""
        self._others: dict[int, tuple[Callable[[str], bool], Listening]] = {}
        self._turn = 0

    def add(self, listening: Listening) -> None:
        """Somebody listens."""
        place = self._place(listening.pattern)
        if place is None:
            self._others[listening.identity] = (picker((listening.pattern,)), listening)
        else:
            table, key = place
            table.setdefault(key, {})[listening.identity] = listening

    def remove(self, listening: Listening) -> None:
        """Nobody listens there any more."""
        place = self._place(listening.pattern)
        if place is None:
            self._others.pop(listening.identity, None)
            return
        table, key = place
        found = table.get(key, {})
        found.pop(listening.identity, None)
        if not found:
            table.pop(key, None)

    def listening(self, subject: str) -> list[Listening]:
        """Who gets a message on `subject`: everybody, and of each queue group one, in turn."""
        matching = self._matching(subject)
        if not any(one.queue for one in matching):
            return matching
        found: list[Listening] = []
        groups: dict[str, list[Listening]] = {}
        for one in matching:
            if one.queue:
                groups.setdefault(one.queue, []).append(one)
            else:
                found.append(one)
        for members in groups.values():
            self._turn += 1
            found.append(members[self._turn % len(members)])
        return found

    def _matching(self, subject: str) -> list[Listening]:
        found = list(self._exact.get(subject, _NOBODY).values())
        found += self._below.get(subject[: subject.rfind(".") + 1], _NOBODY).values()
        for matches, one in self._others.values():
            if matches(subject):
                found.append(one)
        return found

    def _place(self, pattern: str) -> tuple[dict[str, dict[int, Listening]], str] | None:
        if "*" not in pattern and ">" not in pattern:
            return self._exact, pattern
        if pattern.endswith(".*") and "*" not in pattern[:-1]:
            return self._below, pattern[:-1]
        return None
