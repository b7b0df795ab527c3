"""Which parked pods' node selectors a node event can concern: by the labels that changed, or by what a new
node has.

A selector that did not match a node before, and does now, has a requirement that did not hold before: of a
label that changed, to one of the values if it lists some. A new node can match a term only if it has one of
the values, or labels, or the name that the term asks for.
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias, cast

from podyard.objects import selectors
from podyard.objects.affinity import NodeAffinity
from podyard.objects.core import Node
from podyard.objects.selectors import NodeTerm, NodeTerms
from podyard.plugins.hint_indexes import KeyIndex

Signature: TypeAlias = tuple[tuple[tuple[str, str], ...], NodeAffinity | None]
"""As `NodeAffinity.hint_signature` makes it: the node selector's labels, and the node affinity."""

CHANGED: Final = "changed"
BECAME: Final = "became"
VALUE: Final = "value"
LABEL: Final = "label"
NAME: Final = "name"
"""Kinds of keys: a label that changed; the value that it has now; a value, a label or the name of a new node.
"""


def keys_of(signature: Any) -> Iterable[Hashable] | None:
    """Keys of a parked pod's `hint_signature`: its node selector and its node affinity.

    :return: `None` if any event may concern it
    """
    if not isinstance(signature, tuple):
        return None
    pairs, affinity = cast("Signature", signature)
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    terms = None if required is None else selectors.compile_nodes(required).terms
    if terms is not None and any(term.fault is not None for term in terms):
        return None  # its hint raises, which counts as Queue
    changed: set[Hashable] = {(BECAME, *pair) for pair in pairs}
    for wanted in (wanted for term in terms or () for wanted in term.labels):
        if wanted.operator == selectors.IN:
            changed |= {(BECAME, wanted.key, value) for value in wanted.values}
        else:
            changed.add((CHANGED, wanted.key))
    new = [(VALUE, *pairs[0])] if pairs else _of_new_nodes(terms)
    return None if new is None else (*changed, *new)


def _of_new_nodes(terms: Iterable[NodeTerm] | None) -> Iterable[Hashable] | None:
    """Keys of which every new node that matches one of the terms has at least one."""
    if terms is None:
        return None
    found: list[Hashable] = []
    for term in terms:
        keys = _of_new_node(term)
        if keys is None:
            return None
        found += keys
    return found


def _of_new_node(term: NodeTerm) -> Iterable[Hashable] | None:
    for field in term.fields:
        if field.equal and field.key == selectors.NODE_NAME_FIELD:
            return [(NAME, field.value)]
    for wanted in term.labels:
        if wanted.operator == selectors.IN:
            return [(VALUE, wanted.key, value) for value in wanted.values]
        if wanted.operator not in (selectors.NOT_IN, selectors.DOES_NOT_EXIST):
            return [(LABEL, wanted.key)]
    return None


def keys_of_event(added: NodeTerms | None, old: object | None, new: object | None) -> Iterable[Hashable] | None:
    """Keys of a node event.

    :param added: what the plugin's arguments demand of nodes on top: if there is any, every event may concern
        everybody
    """
    if added is not None or not isinstance(new, Node) or not isinstance(old, Node | None):
        return None
    labels = new.metadata.labels
    if old is None:
        return [
            (NAME, new.metadata.name),
            *((VALUE, key, value) for key, value in labels.items()),
            *((LABEL, key) for key in labels),
        ]
    before = old.metadata.labels
    changed = [key for key in {*before, *labels} if before.get(key) != labels.get(key)]
    return [*((CHANGED, key) for key in changed), *((BECAME, key, labels[key]) for key in changed if key in labels)]


def new_index(added: NodeTerms | None) -> KeyIndex[Any]:
    """An empty index.

    :param added: see `keys_of_event`
    """
    return KeyIndex(keys_of, partial(keys_of_event, added))
