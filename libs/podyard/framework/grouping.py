"""Rejected nodes by first rejector and status, from the layers of a judgement and the rows that were judged
apart from them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import EXAMPLES, RejectedGroup
from podyard.framework.layers import MIXED, Layer, Mask
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
    """All groups, by plugin and code. Those of a layer that did not change are the same objects as before.

    :param apart: rows that no layer counts
    :raises PluginError: an ERROR for one node is one of the attempt. Source: schedule_one.go,
        findNodesThatPassFilters
    """
    found: list[RejectedGroup] = []
    for layer in layers:
        if layer.groups is None:
            layer.set_groups(_groups(layer, state, nodes))
        found += layer.groups or ()
    if not apart:
        return found
    by_status = {group.status: group for group in found}
    for rejector, rows in _by_rejector(apart).items():
        status = status_of(layers, rejector, state)
        others = by_status.get(status)
        count, examples = (0, ()) if others is None else (others.nodes, others.examples)
        by_status[status] = _group(status, count + len(rows), (*examples, *[nodes.names[row] for row in rows]))
    return list(by_status.values())


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
    if apart:
        codes[list(apart)] = Code.SUCCESS
    for rejector, rows in _by_rejector(apart).items():
        codes[rows] = status_of(layers, rejector, state).code
    return codes


def _by_rejector(apart: Mapping[int, Rejector]) -> dict[Rejector, list[int]]:
    """The rejected ones of these rows, by who rejects them."""
    found: dict[Rejector, list[int]] = {}
    for row, rejector in apart.items():
        if rejector[0] != PASSES:
            found.setdefault(rejector, []).append(row)
    return found


def _groups(layer: Layer, state: CycleState, nodes: NodeTable) -> list[RejectedGroup]:
    """What one layer rejects, with the first nodes by name."""
    rejected = layer.rejected()
    count = int(np.count_nonzero(rejected))
    if not count:
        return []
    names, order = nodes.names, nodes.order
    by_name = order.arranged(rejected)
    if layer.only != MIXED:
        examples = [names[order.rows.item(place)] for place in _first(by_name, EXAMPLES)]
        return [_group(layer.status(layer.only, state), count, examples)]
    found: list[RejectedGroup] = []
    for code, rows in layer.split(order.rows[by_name.nonzero()[0]]):
        first: list[int] = rows[:EXAMPLES].tolist()
        found.append(_group(layer.status(code, state), len(rows), [names[row] for row in first]))
    return found


def _group(status: Status, count: int, examples: Sequence[str]) -> RejectedGroup:
    if status.code == Code.ERROR:
        raise PluginError(status.plugin, "filter", status.message)
    return RejectedGroup(status=status, nodes=count, examples=tuple(sorted(examples)[:EXAMPLES]))


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
