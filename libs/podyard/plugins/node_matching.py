"""Node selectors on all nodes at once.

A condition is judged once for each distinct value of its label, then looked up by row.

Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go; the one-node reading is
`objects.selectors`.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import ABSENT, LabelColumn
from podyard.cluster.node_table import NodeTable
from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import FieldRequirement, NodeTerm, NodeTerms, RequiredNodeAffinity, Requirement, Selector

Mask: TypeAlias = NDArray[np.bool_]
"""Aligned with rows."""


def required(affinity: RequiredNodeAffinity, nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    """Which nodes have what a pod needs: its nodeSelector and one of its required terms."""
    mask = labels(affinity.selector, nodes, rows)
    return mask if affinity.affinity is None else mask & terms(affinity.affinity, nodes, rows)


def required_one(affinity: RequiredNodeAffinity, nodes: NodeTable, row: int) -> bool:
    """The same for one node."""
    node = nodes.nodes[row]
    if node is None:
        return False
    try:
        return affinity.matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


def terms(compiled: NodeTerms, nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    """Which nodes fulfil one of the terms. A term that could not be compiled matches nothing."""
    mask = np.zeros(len(rows), dtype=np.bool_)
    for one in compiled.terms:
        mask |= term(one, nodes, rows)
    return mask


def terms_one(compiled: NodeTerms, nodes: NodeTable, row: int) -> bool:
    """The same for one node."""
    node = nodes.nodes[row]
    if node is None:
        return False
    return any(one.matches(node.metadata.labels, node.metadata.name) for one in compiled.terms)


def term(compiled: NodeTerm, nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    """Which nodes fulfil all requirements of one term."""
    if compiled.fault is not None:
        return np.zeros(len(rows), dtype=np.bool_)
    mask = _all(compiled.labels, nodes, rows)
    for field in compiled.fields:
        mask &= _field(field, nodes, rows)
    return mask


def labels(selector: Selector, nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    """Which nodes' labels a label selector matches."""
    if selector.nothing:
        return np.zeros(len(rows), dtype=np.bool_)
    return _all(selector.requirements, nodes, rows)


def _all(requirements: Sequence[Requirement], nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    mask = np.ones(len(rows), dtype=np.bool_)
    for requirement in requirements:
        column = nodes.label_column(requirement.key)
        mask &= _accepted(requirement, column)[column.cells[rows]]
    return mask


def _accepted(requirement: Requirement, column: LabelColumn) -> Mask:
    """By value id: whether a node with that value fulfils the requirement."""
    accepted = np.zeros(len(column.values), dtype=np.bool_)
    match requirement.operator:
        case selectors.IN | selectors.NOT_IN:
            accepted[[column.ids[value] for value in requirement.values if value in column.ids]] = True
            return accepted if requirement.operator == selectors.IN else ~accepted
        case selectors.EXISTS | selectors.DOES_NOT_EXIST:
            accepted[ABSENT] = True
            return accepted if requirement.operator == selectors.DOES_NOT_EXIST else ~accepted
        case _:
            key = requirement.key
            accepted[1:] = [requirement.matches({key: value}) for value in column.values[1:]]
            return accepted


def _field(field: FieldRequirement, nodes: NodeTable, rows: NDArray[np.intp]) -> Mask:
    if field.key != selectors.NODE_NAME_FIELD:
        return np.full(len(rows), field.matches(""), dtype=np.bool_)
    equal = rows == nodes.row_of.get(field.value, -1)
    return equal if field.equal else ~equal
