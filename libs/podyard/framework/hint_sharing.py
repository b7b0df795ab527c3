"""How an event avoids asking every parked pod: pods of which a plugin's hints read the same share an answer, and an index may name those
that an event can help at all.

Both only save work: what they leave out would have been answered Skip.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from podyard.framework.events import Hint, HintAnswer
from podyard.framework.profile import Profile
from podyard.objects.core import Pod

_NO_POD: Final = Pod()

HintSigner: TypeAlias = Callable[[Pod], Hashable]


@runtime_checkable
class SharesHints(Protocol):
    """A plugin whose hints read only a part of the parked pod. Without the method every pod is asked for itself."""

    def hint_signature(self, pod: Pod) -> Hashable:
        """All that the plugin's hints read of a parked pod, but its uid: an event about a parked pod itself is judged for it alone."""
        ...


class OwnRead(NamedTuple):
    """All that the plugin's own hints read of a parked pod: the signature of an `OwnRegistration`'s index."""

    read: Hashable
    """The plugin's `hint_signature`; the pod's uid if it has none."""
    obstacles: tuple[str, ...]


class HintIndex(Protocol):
    """Keeps the signatures of a plugin's parked pods so that an event finds those whose hint may not say Skip."""

    def add(self, signature: Hashable) -> None:
        """The first pod of this signature was parked."""
        ...

    def remove(self, signature: Hashable) -> None:
        """The last one is not parked any more."""
        ...

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        """Signatures that must be asked, the others would say Skip; `None`: all.

        The parked pod that the event is about, if it is one, is asked in any case.
        """
        ...


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
    """For hints that say Skip to everybody unless the event itself is of a certain sort: nothing of the parked pods has to be kept.

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
    """For a hint whose answer (not its reason) depends on the event alone: what it says of any pod, it says of all."""
    return EventFilter(lambda old, new: hint(_NO_POD, old, new).answer is not HintAnswer.SKIP)


def only_itself() -> EventFilter:
    """For hints about the changed pod itself, which is asked in any case."""
    return EventFilter(lambda old, new: not isinstance(new, Pod))


def signers_of(profile: Profile) -> Mapping[str, HintSigner]:
    """The plugins of a profile that say what their hints read, by name."""
    return {plugin.name: plugin.hint_signature for plugin in profile.plugins if isinstance(plugin, SharesHints)}
