"""How an event avoids asking every parked pod: pods of which a plugin's hints read the same share an answer, and an index may name those
that an event can help at all.

Both only save work: what they leave out would have been answered Skip.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from podyard.framework.profile import Profile
from podyard.objects.core import Pod

HintSigner: TypeAlias = Callable[[Pod], Hashable]


@runtime_checkable
class SharesHints(Protocol):
    """A plugin whose hints read only a part of the parked pod. Without the method every pod is asked for itself."""

    def hint_signature(self, pod: Pod) -> Hashable:
        """All that the plugin's hints read of a parked pod, but its uid: an event about a parked pod itself is judged for it alone."""
        ...


class HintIndex(Protocol):
    """Keeps the signatures of a plugin's parked pods so that an event finds those whose hint may not say Skip."""

    def add(self, signature: Hashable) -> None:
        """The first pod of this signature was parked."""
        ...

    def remove(self, signature: Hashable) -> None:
        """The last one is not parked any more."""
        ...

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        """Signatures that must be asked, the others would say Skip; `None`: all."""
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

    def add(self, signature: S) -> None:
        """The first pod of this signature was parked."""
        keys = self._keys_of(signature)
        if keys is None:
            self._any[signature] = None
            return
        for key in keys:
            self._by_key.setdefault(key, {})[signature] = None

    def remove(self, signature: S) -> None:
        """The last one is not parked any more."""
        keys = self._keys_of(signature)
        if keys is None:
            self._any.pop(signature, None)
            return
        for key in keys:
            found = self._by_key.get(key)
            if found is not None:
                found.pop(signature, None)
                if not found:
                    del self._by_key[key]

    def candidates(self, old: object | None, new: object | None) -> Iterable[S] | None:
        """Signatures with one of the event's keys."""
        keys = self._keys_of_event(old, new)
        if keys is None:
            return None
        found = dict(self._any)
        for key in keys:
            found.update(self._by_key.get(key, {}))
        return found


def signers_of(profile: Profile) -> Mapping[str, HintSigner]:
    """The plugins of a profile that say what their hints read, by name."""
    return {plugin.name: plugin.hint_signature for plugin in profile.plugins if isinstance(plugin, SharesHints)}
