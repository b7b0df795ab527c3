"""Indexes over parked pods: which of them an event can help at all, by what a plugin's hints read of them.

They only save work: what they leave out would have been answered Skip. `framework.events.HintIndex` is what
the queue asks of one.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

from podyard.framework.events import Hint, HintAnswer
from podyard.objects.core import Pod

_NO_POD: Final = Pod()

S = TypeVar("S", bound=Hashable)


class KeyIndex(Generic[S]):
    """Signatures by keys: an event that carries none of a signature's keys does not concern it.

    :param keys_of: keys of a signature; `None`: any event may concern it
    :param keys_of_event: keys of an event's object before and after; `None`: it may concern everybody
    """

    def __init__(
        self,
        keys_of: Callable[[S], Iterable[Hashable] | None],
        keys_of_event: Callable[[object | None, object | None], Iterable[Hashable] | None],
    ) -> None:
        self._keys_of = keys_of
        self._keys_of_event = keys_of_event
        self._by_key: dict[Hashable, dict[S, None]] = {}
        self._any: dict[S, None] = {}
        self._keys: dict[S, tuple[Hashable, ...]] = {}

    def add(self, signature: S) -> None:
        """The first pod of this signature was parked."""
        found = self._keys_of(signature)
        if found is None:
            self._any[signature] = None
            return
        keys = self._keys[signature] = tuple(found)
        for key in keys:
            mates = self._by_key.get(key)
            if mates is None:
                self._by_key[key] = {signature: None}
            else:
                mates[signature] = None

    def remove(self, signature: S) -> None:
        """The last one is not parked any more."""
        self._any.pop(signature, None)
        for key in self._keys.pop(signature, ()):
            mates = self._by_key.get(key)
            if mates is not None:
                mates.pop(signature, None)
                if not mates:
                    del self._by_key[key]

    def candidates(self, old: object | None, new: object | None) -> Iterable[S] | None:
        """Signatures with one of the event's keys."""
        keys = self._keys_of_event(old, new)
        if keys is None:
            return None
        found = dict(self._any)
        for key in keys:
            mates = self._by_key.get(key)
            if mates is not None:
                found.update(mates)
        return found


class EventFilter:
    """For hints that say Skip to everybody unless the event itself is of a certain sort: nothing of the
    parked pods has to be kept.

    :param matters: whether the event (the object before and after) may concern anybody
    """

    def __init__(self, matters: Callable[[object | None, object | None], bool]) -> None:
        self._matters = matters

    def add(self, signature: Hashable) -> None:
        """Nothing to keep."""

    def remove(self, signature: Hashable) -> None:
        """Nothing was kept."""

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        """All or none."""
        return None if self._matters(old, new) else ()


def same_for_all(hint: Hint) -> EventFilter:
    """For a hint whose answer (not its reason) depends on the event alone: what it says of any pod, it says
    of all.
    """
    return EventFilter(lambda old, new: hint(_NO_POD, old, new).answer is not HintAnswer.SKIP)


def only_itself() -> EventFilter:
    """For hints about the changed pod itself, which is asked in any case."""
    return EventFilter(lambda old, new: not isinstance(new, Pod))
