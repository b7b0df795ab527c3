"""Which pods go first when there are too many.

Source: pkg/controller/controller_utils.go (ActivePodsWithRanks.Less),
pkg/controller/replicaset/replica_set.go (getPodsToDelete).
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.workloads.core import pods as pod_facts

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS: Final = 1e9


class _Rated(NamedTuple):
    """A pod with what the order looks at."""

    pod: PodView
    assigned: bool
    phase: int
    ready: bool
    cost: int
    rank: int
    ready_at: float
    restarts: int
    created_at: float


def choose(pods: Sequence[PodView], count: int, related: Sequence[PodView], now: float) -> list[PodView]:
    """The `count` pods to delete, first to go first.

    :param related: active pods of all ReplicaSets of the same owner: a node with many of them is thinned out
        first
    :param now: seconds since 1970
    """
    if count >= len(pods):
        return list(pods)
    on_node = Counter(pod.node_name for pod in related)
    rated = [_rate(pod, on_node[pod.node_name]) for pod in pods]
    rated.sort(key=cmp_to_key(lambda one, other: _compare(one, other, now)))
    return [entry.pod for entry in rated[:count]]


def _rate(pod: PodView, rank: int) -> _Rated:
    statuses = pod.stored.status.container_statuses
    return _Rated(
        pod=pod,
        assigned=bool(pod.node_name),
        phase=_PHASES.get(pod_facts.phase(pod), 0),
        ready=pod_facts.is_ready(pod),
        cost=_cost(pod),
        rank=rank,
        ready_at=pod_facts.ready_since(pod),
        restarts=max((status.restart_count for status in statuses), default=0),
        created_at=pod_facts.created_at(pod),
    )


def _cost(pod: PodView) -> int:
    """What is no number counts as 0, as in the reference."""
    text = pod.stored.metadata.annotations.get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _compare(one: _Rated, other: _Rated, now: float) -> int:
    """Negative if `one` goes first. The rules stand in the reference's order; the uid makes the order
    total."""
    if one.assigned != other.assigned:
        return -1 if other.assigned else 1
    if one.phase != other.phase:
        return one.phase - other.phase
    if one.ready != other.ready:
        return -1 if other.ready else 1
    if one.cost != other.cost:
        return one.cost - other.cost
    if one.rank != other.rank:
        return other.rank - one.rank
    if one.ready and one.ready_at != other.ready_at:
        return _younger_first(one.ready_at, other.ready_at, now) or _by_uid(one, other)
    if one.restarts != other.restarts:
        return other.restarts - one.restarts
    if one.created_at != other.created_at:
        return _younger_first(one.created_at, other.created_at, now) or _by_uid(one, other)
    return _by_uid(one, other)


def _younger_first(one: float, other: float, now: float) -> int:
    """By the logarithm of the age, so that the youngest do not always go; no time at all goes first."""
    if not one or not other:
        return -1 if not one else 1
    return _magnitude(now - one) - _magnitude(now - other)


def _magnitude(age_s: float) -> int:
    return int(math.log2(age_s * _NANOSECONDS)) if age_s * _NANOSECONDS >= 1 else -1


def _by_uid(one: _Rated, other: _Rated) -> int:
    return -1 if one.pod.uid < other.pod.uid else int(one.pod.uid > other.pod.uid)
