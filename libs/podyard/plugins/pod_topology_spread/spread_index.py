"""Which parked pods' hard spread constraints an event can concern.

A pod counts for a constraint only in the parked pod's namespace, and if the constraint's selector means it,
before or after. A node counts only with all topology keys, and changes something only if the value of one of
them changes, or its taints do.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from podyard.objects.core import Node, Pod
from podyard.objects.errors import SelectorError
from podyard.plugins import hinted, pod_keys
from podyard.plugins.hint_indexes import KeyIndex
from podyard.plugins.pod_topology_spread.constraints import Constraint
from podyard.plugins.pod_topology_spread.reading import ReadOfPod

ANY_POD: Final = "any pod"
"""Second part of a key: every pod of the namespace."""
CHANGED: Final = "changed"
PRESENT: Final = "present"
ANY_NODE: Final = "any node"
"""Kinds of keys of nodes: a label that changed; one that is there, before or after; nodes that come, go or
have other taints.
"""

HardOf = Callable[[ReadOfPod], "Sequence[Constraint] | None"]
"""The hard constraints of what was read of a pod; `None`: not to be told from it alone. May raise
`SelectorError`.
"""


def of_pods(hard_of: HardOf) -> KeyIndex[Any]:
    """An empty index for events of pods."""

    def keys_of(read: Any) -> Iterable[Hashable] | None:
        if not isinstance(read, ReadOfPod):
            return None
        listed = _listed(hard_of, read)
        if listed is None:
            return [(read.namespace, ANY_POD)]
        return [(read.namespace, part) for one in listed for part in pod_keys.wanted(one.selector)]

    return KeyIndex(keys_of, _keys_of_pods)


def of_nodes(hard_of: HardOf) -> KeyIndex[Any]:
    """An empty index for events of nodes."""

    def keys_of(read: Any) -> Iterable[Hashable] | None:
        listed = _listed(hard_of, read) if isinstance(read, ReadOfPod) else None
        if listed is None:
            return None
        if not listed:
            return [ANY_NODE]
        keys = [one.topology_key for one in listed]
        return [(PRESENT, keys[0]), *((CHANGED, key) for key in keys)]

    return KeyIndex(keys_of, _keys_of_nodes)


def _listed(hard_of: HardOf, read: ReadOfPod) -> Sequence[Constraint] | None:
    """`None` also if the hint would raise, which counts as Queue."""
    try:
        return hard_of(read)
    except SelectorError:
        return None


def _keys_of_pods(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    found: dict[Hashable, None] = {}
    for one in (old, new):
        if one is None:
            continue
        if not isinstance(one, Pod):
            return None
        if not hinted.place_of(one):
            return ()  # on no node it counts for nobody
        namespace = one.metadata.namespace
        found[namespace, ANY_POD] = None
        for part in pod_keys.carried(one.metadata.labels):
            found[namespace, part] = None
    return found or None


def _keys_of_nodes(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Node | None) or not isinstance(new, Node | None):
        return None
    was = {} if old is None else old.metadata.labels
    now = {} if new is None else new.metadata.labels
    if old is None or new is None or old.spec.taints != new.spec.taints:
        return [ANY_NODE, *((PRESENT, key) for key in {*was, *now})]
    return [(CHANGED, key) for key in {*was, *now} if was.get(key) != now.get(key)]
