"""Rejected nodes by first rejector and status, from the layers of a judgement and the rows that were judged apart from them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import EXAMPLES, RejectedGroup
from podyard.framework.layers import MIXED, Layer, Mask, Part
from podyard.framework.row_judge import PASSES
from podyard.framework.status import Code, PluginError, Status

Rejector: TypeAlias = tuple[int, int]
"""Number of the first Filter plugin that rejects a node, and its code; (PASSES, 0) if none does."""


def status_of(layers: Iterable[Layer], rejector: Rejector, state: CycleState) -> Status:
    """What a rejector's code means, under its name.

    :raises LookupError: if there is no layer of this number
    """
    number, code = rejector
    for layer in layers:
        if layer.number == number:
            return layer.status(code, state)
    raise LookupError(f"no plugin {number} judged this row")


def grouped(
    layers: Sequence[Layer], apart: Mapping[int, Rejector], state: CycleState, nodes: NodeTable
) -> list[RejectedGroup]:
    """All groups, by plugin and code.

    :param apart: rows that no layer counts
    :raises PluginError: an ERROR for one node is one of the attempt. Source: schedule_one.go, findNodesThatPassFilters
    """
    found: dict[Rejector, tuple[int, list[int]]] = {}
    for layer in layers:
        for code, count, rows in _parts(layer, nodes) if layer.parts is None else layer.parts:
            found[layer.number, code] = count, rows
    for row, rejector in apart.items():
        if rejector[0] != PASSES:
            count, examples = found.get(rejector, (0, []))
            found[rejector] = count + 1, [*examples, row]
    return [
        _group(status_of(layers, rejector, state), count, rows, nodes)
        for rejector, (count, rows) in sorted(found.items())
    ]


def status_codes(
    layers: Sequence[Layer], apart: Mapping[int, Rejector], absent: Status | None, state: CycleState, nodes: NodeTable
) -> NDArray[np.int8]:
    """By row: `Code` of the node's status. SUCCESS for free rows and nodes that pass.

    :param absent: status of live rows that neither a layer nor `apart` knows
    """
    codes = np.where(nodes.live, np.int8(Code.SUCCESS if absent is None else absent.code), np.int8(Code.SUCCESS))
    if layers:
        codes[layers[0].reached] = Code.SUCCESS
    for layer in layers:
        rejected = layer.rejected().nonzero()[0]
        for code, rows in layer.split(rejected) if len(rejected) else ():
            codes[rows] = layer.status(code, state).code
    for row, rejector in apart.items():
        codes[row] = Code.SUCCESS if rejector[0] == PASSES else status_of(layers, rejector, state).code
    return codes


def _parts(layer: Layer, nodes: NodeTable) -> list[Part]:
    """What one layer rejects, by code, with the first rows by name."""
    rejected = layer.rejected()
    count = int(np.count_nonzero(rejected))
    parts: list[Part] = []
    if count:
        order = nodes.order.rows
        by_name = nodes.order.arranged(rejected)
        if layer.only != MIXED:
            parts.append((layer.only, count, [order.item(place) for place in _first(by_name, EXAMPLES)]))
        else:
            for code, rows in layer.split(order[by_name.nonzero()[0]]):
                parts.append((code, len(rows), rows[:EXAMPLES].tolist()))
    layer.parts = parts
    return parts


def _group(status: Status, count: int, rows: Iterable[int], nodes: NodeTable) -> RejectedGroup:
    if status.code == Code.ERROR:
        raise PluginError(status.plugin, "filter", status.message)
    examples = tuple(sorted(nodes.names[row] for row in rows)[:EXAMPLES])
    return RejectedGroup(status=status, nodes=count, examples=examples)


def _first(mask: Mask, count: int) -> list[int]:
    """The first places where a mask holds, at most `count`."""
    found: list[int] = []
    start = 0
    while len(found) < count and start < len(mask):
        at = start + int(mask[start:].argmax())
        if not mask.item(at):
            break
        found.append(at)
        start = at + 1
    return found
