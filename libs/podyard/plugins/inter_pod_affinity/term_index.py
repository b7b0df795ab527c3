"""Which parked pods' affinity terms an event of a pod or a node can concern.

A pod that comes must be meant by all affinity terms of the parked pod, one that goes by all its anti-affinity
terms, or by its own anti-affinity terms mean the parked pod. So one of the terms, the one easiest to look up,
is enough to find them by: namespaces and parts of labels (`pod_keys`).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from podyard.objects.affinity import Affinity, PodAffinity, PodAntiAffinity
from podyard.objects.core import Node, Pod
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import PodSpec
from podyard.plugins import hinted, pod_keys
from podyard.plugins.hint_indexes import KeyIndex
from podyard.plugins.inter_pod_affinity import terms
from podyard.plugins.inter_pod_affinity.terms import PodTerms, Term

ANYWHERE: Final = "*"
"""Instead of a namespace, of which no name is like this: a term for pods of every namespace."""
NEAR: Final = "near"
APART: Final = "apart"
OWN: Final = "own"
"""Kinds of keys of pods: wanted by affinity, by anti-affinity, carried by the parked pod itself."""
CHANGED: Final = "changed"
JOINED: Final = "joined"
NEW_NODE: Final = "new node"
"""Kinds of keys of nodes: a label that changed; one of a new node; any new node."""

Key = tuple[str, pod_keys.Part]
KeptOut: TypeAlias = Callable[[Pod], Iterable[Hashable] | None]
"""Keys of those that the terms of a pod that is gone may have kept out; `None`: it may be anybody."""


class ReadOfPod(NamedTuple):
    """All that the hints read of a parked pod, but its uid."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    near: bytes
    apart: bytes

    def terms(self) -> PodTerms:
        """Its terms."""
        affinity = Affinity(pod_affinity=_NEAR.decode(self.near), pod_anti_affinity=_APART.decode(self.apart))
        metadata = ObjectMeta(namespace=self.namespace, labels=dict(self.labels))
        return terms.of_pod(Pod(metadata=metadata, spec=PodSpec(affinity=affinity)))


_ENCODER: Final = msgspec.json.Encoder()
_NEAR: Final = msgspec.json.Decoder(PodAffinity | None)
_APART: Final = msgspec.json.Decoder(PodAntiAffinity | None)
_NOTHING: Final = _ENCODER.encode(None)


def read_of(pod: Pod) -> ReadOfPod:
    """What the hints read of `pod`."""
    affinity, metadata = pod.spec.affinity, pod.metadata
    labels = tuple(sorted(metadata.labels.items()))
    if affinity is None:
        return ReadOfPod(metadata.namespace, labels, _NOTHING, _NOTHING)
    near, apart = _ENCODER.encode(affinity.pod_affinity), _ENCODER.encode(affinity.pod_anti_affinity)
    return ReadOfPod(metadata.namespace, labels, near, apart)


def of_pods() -> KeyIndex[Any]:
    """An empty index for events of pods."""
    return KeyIndex(_keys_by_pods, partial(keys_of_pods, NEAR, APART, _kept_out))


def of_nodes() -> KeyIndex[Any]:
    """An empty index for events of nodes."""
    return KeyIndex(_keys_by_nodes, _keys_of_nodes)


def _keys_by_pods(read: Any) -> Iterable[Hashable] | None:
    own = read.terms() if isinstance(read, ReadOfPod) else None
    if own is None or own.fault:
        return None  # its hint raises, which counts as Queue
    return [
        *((NEAR, key) for key in easiest(own.affinity, _chooses_any)),
        *((APART, key) for key in easiest(own.anti_affinity, _chooses_any)),
        *((OWN, key) for key in carried(read.namespace, dict(read.labels))),
    ]


def easiest(listed: Sequence[Term], chooses_any: Callable[[Term], bool]) -> list[Key]:
    """Keys of which every pod that all of the terms mean carries at least one; none if they can mean no pod.

    :param chooses_any: whether a term is taken to mean pods of every namespace
    """
    best: list[Key] | None = None
    for term in listed:
        places = (ANYWHERE,) if chooses_any(term) else term.namespaces
        keys = [(place, part) for part in pod_keys.wanted(term.selector) for place in places]
        if best is None or _cost(keys) < _cost(best):
            best = keys
    return best or []


def _chooses_any(term: Term) -> bool:
    return term.namespace_selector.matches(terms.NO_LABELS)


def _cost(keys: Sequence[Key]) -> tuple[int, int]:
    """Prefer pairs to labels to nothing, then few keys."""
    return (2 - min((len(part) for _, part in keys), default=2), len(keys))


def carried(namespace: str, labels: Mapping[str, str]) -> list[Key]:
    """All keys of a pod."""
    parts = pod_keys.carried(labels)
    return [*[(namespace, part) for part in parts], *[(ANYWHERE, part) for part in parts]]


def keys_of_pods(
    came: str, went: str, kept_out: KeptOut, old: object | None, new: object | None
) -> Iterable[Hashable] | None:
    """Keys of an event of a pod, by what it is now, what it was, and whom its own terms kept out if it is
    gone.

    :param came: kind of the keys of what it is now
    :param went: kind of the keys of what it was
    """
    if not isinstance(old, Pod | None) or not isinstance(new, Pod | None) or (old is None and new is None):
        return None
    if hinted.on_no_node(old, new):
        return ()  # it matters to nobody
    found: list[Hashable] = []
    if new is not None:
        found += [(came, key) for key in carried(new.metadata.namespace, new.metadata.labels)]
    if old is not None:
        found += [(went, key) for key in carried(old.metadata.namespace, old.metadata.labels)]
    if old is None or new is not None:
        return found
    left = kept_out(old)
    return None if left is None else [*found, *left]


def _kept_out(gone: Pod) -> Iterable[Hashable] | None:
    own = terms.of_pod(gone)
    if own.fault:
        return None  # the hint raises, which counts as Queue
    return [(OWN, key) for key in easiest(own.anti_affinity, _chooses_any)]


def _keys_by_nodes(read: Any) -> Iterable[Hashable] | None:
    own = read.terms() if isinstance(read, ReadOfPod) else None
    if own is None or own.fault:
        return None
    near = [(JOINED, term.topology_key) for term in own.affinity]
    changed = [(CHANGED, term.topology_key) for term in (*own.affinity, *own.anti_affinity)]
    return [*near, *changed, *([NEW_NODE] if own.anti_affinity else [])]


def _keys_of_nodes(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Node | None) or not isinstance(new, Node):
        return None
    now = new.metadata.labels
    if old is None:
        return [NEW_NODE, *((JOINED, key) for key in now)]
    was = old.metadata.labels
    return [(CHANGED, key) for key in {*was, *now} if was.get(key) != now.get(key)]
