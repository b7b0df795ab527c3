"""Whether a node has room: the rule of filter and binder, on all nodes at once and on one.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest).
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import numpy as np

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Detail, Rows, Verdicts
from podyard.objects import spoken_amounts

REASON_PODS: Final = "Too many pods"
REASON_RESOURCE: Final = "Insufficient {resource}"

TOO_MANY_PODS: Final = 1
"""Bit of the code: the node has as many pods as it takes. Bit i + 1 is resource i of the wanted ones."""
UNRESOLVABLE: Final = 1 << 62
"""Bit of the code: a request is above all that the node has, so that preemption cannot help."""
MOST_RESOURCES: Final = 60
"""As many kinds of resources as the code has bits for."""

NATIVE: Final = ("cpu", "memory", "ephemeral-storage")


class Wanted(NamedTuple):
    """What a pod requests of the resources that Filter looks at: names and amounts above 0, cpu in
    milli-CPU."""

    resources: tuple[tuple[str, int], ...]


def is_extended(resource: str) -> bool:
    """Source: v1helper.IsExtendedResourceName."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def wanted(requests: Mapping[str, int], ignored: Collection[str], ignored_groups: Collection[str]) -> Wanted:
    """What to look at: cpu, memory, ephemeral storage, then the others by name, without ignored extended
    resources."""
    found = [(name, requests[name]) for name in NATIVE if requests.get(name, 0) > 0]
    if len(found) < len(requests):
        found += [
            (name, requests[name])
            for name in sorted(requests)
            if name not in NATIVE and requests[name] > 0 and not _ignored(name, ignored, ignored_groups)
        ]
    return Wanted(tuple(found))


def _ignored(name: str, ignored: Collection[str], groups: Collection[str]) -> bool:
    return is_extended(name) and (name in ignored or name.split("/", 1)[0] in groups)


def shortages(want: Wanted, nodes: NodeTable, rows: Rows) -> Verdicts:
    """For each row the bits of what it lacks; 0 if the pod fits. Most nodes lack nothing, so what nobody
    lacks costs no bits.

    Nothing wraps: what a node has is 0 or more, what the pod wants above 0, and a sum above int64 stands in
    its column as the largest number, which is more than any node has left beside the pod.
    """
    codes = np.zeros(len(rows), dtype=np.int64)
    full = (nodes.pod_count >= nodes.pod_limit).take(rows)
    if full.any():
        codes[full] = TOO_MANY_PODS
    bit = TOO_MANY_PODS
    room = nodes.room
    for resource, amount in want.resources:
        bit <<= 1
        line = room.line(resource)
        if line is None:
            codes |= bit | UNRESOLVABLE
            continue
        left_beside = room.allocatable[line] - amount
        lacking = (room.requested[line] > left_beside).take(rows)
        if lacking.any():
            codes[lacking] |= bit
            codes[(left_beside < 0).take(rows)] |= bit | UNRESOLVABLE
    return codes


def shortages_one(want: Wanted, nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    code = TOO_MANY_PODS if nodes.pod_count.item(row) >= nodes.pod_limit.item(row) else 0
    bit = TOO_MANY_PODS
    room = nodes.room
    for resource, amount in want.resources:
        bit <<= 1
        line = room.line_of.get(resource)
        if line is None:
            line = room.line(resource)
        allocatable = 0 if line is None else room.allocatable.item(line, row)
        if amount > allocatable:
            code |= bit | UNRESOLVABLE
        elif line is not None and amount > allocatable - room.requested.item(line, row):
            code |= bit
    return code


def reasons(want: Wanted, code: int) -> tuple[str, ...]:
    """What a code says, in the reference's words."""
    found = [REASON_PODS] if code & TOO_MANY_PODS else []
    for index, (resource, _) in enumerate(want.resources):
        if code & (TOO_MANY_PODS << (index + 1)):
            found.append(REASON_RESOURCE.format(resource=resource))
    return tuple(found)


def detail(want: Wanted, nodes: NodeTable, rows: Rows, reason: str) -> Detail | None:
    """How much the pod wants, and how much is left on the node of `rows` that has most of it left; if none of
    them is large enough, what the largest one has."""
    if not len(rows):
        return None
    if reason == REASON_PODS:
        above = (nodes.pod_count - nodes.pod_limit).take(rows)
        row, limit = int(rows[above.argmin()]), nodes.pod_limit
        lack = 1 + int(above.min())
        told = f"has {nodes.pod_count.item(row)} of at most {limit.item(row)} pods"
        return Detail(told, row, float(lack), f"room for {lack} pod{'' if lack == 1 else 's'}")
    for resource, amount in want.resources:
        if reason == REASON_RESOURCE.format(resource=resource):
            return _shortage(resource, amount, nodes, rows)
    return None


def _shortage(resource: str, amount: int, nodes: NodeTable, rows: Rows) -> Detail:
    wants, line = f"wants {spoken_amounts.spoken(resource, amount)}", nodes.room.line(resource)
    number = spoken_amounts.number
    if line is None:
        return Detail(f"{wants}, no node has any", lacks=number(resource, amount))
    whole = nodes.room.allocatable[line].take(rows)
    largest = int(whole.max())
    if largest < amount:
        told, row = f"{wants}, the whole node has {number(resource, largest)}", int(rows[whole.argmax()])
        return Detail(told, row, 2 - largest / amount, number(resource, amount - largest))
    # a node that is too small is not nearest, however much of it is free
    free = np.where(whole < amount, -1, whole - nodes.room.requested[line].take(rows))
    at = int(free.argmax())
    left = max(free.item(at), 0)
    told = f"free {number(resource, left)} of {number(resource, whole.item(at))}"
    return Detail(f"{wants}, {told}", int(rows[at]), 1 - left / amount, number(resource, amount - left))
