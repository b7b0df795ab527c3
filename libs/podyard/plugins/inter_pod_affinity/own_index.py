"""Which parked pods the plugin's own hints can help after an event: by what they were told to be in their
way, and parts of labels."""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from podyard.framework.hint_sharing import OwnRead
from podyard.objects.core import Node, Pod
from podyard.plugins.hint_indexes import KeyIndex
from podyard.plugins.inter_pod_affinity import terms
from podyard.plugins.inter_pod_affinity.obstacles import (
    ANY_KEY,
    ONE_OF_ITS_TERMS,
    OTHERS_OF_ITS_KIND,
    WANTED_BY_NAMESPACE,
    keys_of,
)
from podyard.plugins.inter_pod_affinity.term_index import Key, ReadOfPod, carried, easiest, keys_of_pods
from podyard.plugins.inter_pod_affinity.terms import PodTerms, Term

CAME: Final = "came"
WENT: Final = "went"
KEPT_OUT: Final = "kept out"
"""Kinds of keys of pods: wanted, in the way, and of the parked pod itself as others' terms mean it."""
LEFT: Final = "left"
NEW_NODE: Final = "new node"
"""Kinds of keys of nodes: a label that went or changed (ANY_KEY: any), and any new node."""


def of_pods() -> KeyIndex[Any]:
    """An empty index for events of pods."""
    return KeyIndex(_keys_by_pods, partial(keys_of_pods, CAME, WENT, _kept_out))


def of_nodes() -> KeyIndex[Any]:
    """An empty index for events of nodes."""
    return KeyIndex(_keys_by_nodes, _keys_of_nodes)


def _read(signature: Any) -> tuple[ReadOfPod, PodTerms] | None:
    read = signature.read if isinstance(signature, OwnRead) else None
    if not isinstance(read, ReadOfPod):
        return None
    own = read.terms()
    return None if own.fault else (read, own)


def _wanted(listed: Sequence[Term]) -> list[Key]:
    return easiest(listed, terms.may_choose_any)


def _keys_by_pods(signature: Any) -> Iterable[Hashable] | None:
    known = _read(signature)
    if known is None:
        return None
    (read, own), obstacles = known, signature.obstacles
    found: list[Hashable] = []
    if OTHERS_OF_ITS_KIND in obstacles:
        found += [(WENT, key) for key in _wanted(own.affinity)]
    if WANTED_BY_NAMESPACE in obstacles:
        found += [(CAME, key) for key in _wanted(own.affinity)]
    if ONE_OF_ITS_TERMS in obstacles:
        found += [(WENT, key) for term in own.anti_affinity for key in _wanted([term])]
    if keys_of(obstacles):
        found += [(KEPT_OUT, key) for key in carried(read.namespace, dict(read.labels))]
    return found


def _kept_out(gone: Pod) -> Iterable[Hashable]:
    return [(KEPT_OUT, key) for term in terms.of_pod(gone).anti_affinity for key in _wanted([term])]


def _keys_by_nodes(signature: Any) -> Iterable[Hashable] | None:
    known = _read(signature)
    if known is None:
        return None
    keys = keys_of(signature.obstacles)
    found: list[Hashable] = [NEW_NODE] if keys else []
    if OTHERS_OF_ITS_KIND in signature.obstacles:
        keys = keys.union(term.topology_key for term in known[1].affinity)
    return [*found, *((LEFT, key) for key in keys)]


def _keys_of_nodes(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Node | None) or not isinstance(new, Node | None):
        return None
    if old is None:
        return [NEW_NODE]
    had, has = old.metadata.labels, {} if new is None else new.metadata.labels
    left = [key for key, value in had.items() if has.get(key) != value]
    return [*((LEFT, key) for key in left), (LEFT, ANY_KEY)] if left else []
