"""How empty a node is: the LeastAllocated score, on all nodes at once and on one.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/resource_allocation.go and least_allocated.go.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from podyard.cluster.node_table import CPU, MEMORY, NodeTable
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.objects import pod_requests
from podyard.plugins.node_resources_fit.args import ResourceSpec
from podyard.proto.placement import Usage


class Counted(NamedTuple):
    """A resource that counts in this pod's score: its weight, and what the pod adds."""

    resource: str
    weight: int
    amount: int


def scored_usage(pod: PodInfo) -> Usage:
    """What scoring believes the pod takes.

    The score ignores requests of the pod as a whole, though Filter counts them; a quirk of v1.36.2 that the conformance data shows
    (`pod-level-resources-fit-score`).
    """
    spec = pod.pod.spec
    if spec.resources is None:
        return pod.usage
    containers_only = msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(spec, resources=None))
    return pod_requests.usage(containers_only)


def counted(resources: Iterable[ResourceSpec], usage: Usage) -> tuple[Counted, ...]:
    """The resources that count for this pod.

    cpu and memory always, as assumed where the pod requests none; others by the real requests, and named ones (with a domain,
    huge pages) only if the pod requests them.
    """
    assumed = {"cpu": usage.nonzero_cpu_milli, "memory": usage.nonzero_memory_bytes}
    found: list[Counted] = []
    for spec in resources:
        amount = assumed.get(spec.name, usage.requests.get(spec.name, 0))
        if pod_requests.is_counted(spec.name) and (amount != 0 or spec.name in ("cpu", "memory", "ephemeral-storage")):
            found.append(Counted(spec.name, spec.weight, amount))
    return tuple(found)


def scores(resources: Iterable[Counted], nodes: NodeTable, rows: Rows) -> Scores:
    """For each row the weighted mean of the free shares, 0 to 100; resources that a node does not have are left out."""
    points = np.zeros(len(rows), dtype=np.int64)
    weights = np.zeros(len(rows), dtype=np.int64)
    for resource, weight, amount in resources:
        line = nodes.resource_of.get(resource)
        if line is None:
            continue
        allocatable = nodes.allocatable[line][rows]
        used = nodes.nonzero if line in (CPU, MEMORY) else nodes.requested
        free = allocatable - used[line][rows] - amount
        points += _shares(np.maximum(free, 0), np.maximum(allocatable, 1)) * weight
        weights += np.where(allocatable != 0, weight, 0)
    heaviest = int(weights.max(initial=0))
    if heaviest and int(weights.min()) == heaviest:
        return points // heaviest  # by one number: numpy divides by it ten times as fast as by an array
    return points // np.maximum(weights, 1)


def _shares(free: Scores, allocatable: Scores) -> Scores:
    """Percent, rounded down. Both are at least 0, so they may be divided without signs, which takes half the time."""
    return ((free * MAX_SCORE).view(np.uint64) // allocatable.view(np.uint64)).view(np.int64)


def score_one(resources: Iterable[Counted], nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    points = weights = 0
    for resource, weight, amount in resources:
        line = nodes.resource_of.get(resource)
        allocatable = 0 if line is None else nodes.allocatable.item(line, row)
        if line is None or allocatable == 0:
            continue
        used = nodes.nonzero if line in (CPU, MEMORY) else nodes.requested
        free = allocatable - used.item(line, row) - amount
        if free > 0:
            points += free * MAX_SCORE // allocatable * weight
        weights += weight
    return points // weights if weights else 0
