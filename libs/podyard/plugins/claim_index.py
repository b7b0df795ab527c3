"""What the hints of the plugins for volumes read of a parked pod, and an index by the claims that it
names."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from podyard.objects.core import PersistentVolumeClaim
from podyard.plugins.hint_indexes import KeyIndex


class ReadOfVolumes(NamedTuple):
    """All that a plugin's hints read of a pod."""

    namespace: str
    claims: tuple[str, ...]
    """Names of its claims, in the order of its volumes."""
    others: tuple[Hashable, ...] = ()
    """What the plugin reads of its other volumes, in their order."""


def index() -> KeyIndex[Any]:
    """An empty index for hints that say Skip for any claim that is not the pod's."""
    return KeyIndex(_keys_of, _keys_of_event)


def _keys_of(read: Any) -> Iterable[Hashable] | None:
    return [(read.namespace, name) for name in read.claims] if isinstance(read, ReadOfVolumes) else None


def _keys_of_event(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(new, PersistentVolumeClaim):
        return None
    return [(new.metadata.namespace, new.metadata.name)]
