"""Preferred affinity and anti-affinity, and placed pods' required affinity, in scores.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.plugins.inter_pod_affinity.domain_counts import ByDomain, Counts
from podyard.plugins.inter_pod_affinity.domain_places import Places
from podyard.plugins.inter_pod_affinity.placed_terms import Group

PointsByKey: TypeAlias = tuple[tuple[str, ByDomain], ...]
"""For each topology key the points of its domains."""

FEW_DOMAINS: Final = 4
"""With so many times more nodes than domains, points are worked out by domain."""

NO_POINTS: Final[PointsByKey] = ()


def points(weighted: Iterable[tuple[Counts, int]]) -> PointsByKey:
    """What being in a domain is worth; nothing at all if no term means a pod in any domain, or the pod
    itself.

    :param weighted: pods by domain, and what each of them is worth
    """
    found: dict[str, ByDomain] = {}
    for counts, weight in weighted:
        if not counts.occupied:
            continue
        worth = counts.by_domain() * weight
        known = found.get(counts.key)
        found[counts.key] = worth if known is None else known + worth
    return tuple(found.items())


def of_groups(groups: Iterable[Group], weight: int | None = None) -> list[tuple[Counts, int]]:
    """Placed pods that have terms which mean the incoming pod.

    :param weight: what each is worth; None: the term's own weight
    """
    return [(group.counts, group.weight if weight is None else weight) for group in groups]


def scores(found: PointsByKey, nodes: NodeTable, places: Places, rows: Rows) -> Scores:
    """The points of each node: the sum over the domains it is in."""
    total: Scores | None = None
    for key, worth in found:
        # all are in range, so that "clip" only saves the check
        part = worth.take(places.of(key, nodes, rows).domains, mode="clip")
        total = part if total is None else total + part
    return np.zeros(len(rows), dtype=np.int64) if total is None else total


def score_one(found: PointsByKey, nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    return sum([worth.item(nodes.label_column(key).cells.item(row)) for key, worth in found])


def normalized(raw: Scores) -> Scores:
    """From the lowest points (0) to the highest (100), cut off to whole numbers; 0 for all if they are
    equal."""
    if not len(raw):
        return raw
    lowest, highest = int(raw.min()), int(raw.max())
    if lowest == highest:
        return np.zeros_like(raw)
    return _between(raw, lowest, highest)


def normalized_by_domain(found: tuple[str, ByDomain], nodes: NodeTable, places: Places, rows: Rows) -> Scores | None:
    """The same of what `scores` says of `rows`, if one topology key gives all points: worked out for each
    domain.

    :return: `None` if there are too many domains for that; else an array that must not be changed
    """
    key, worth = found
    if len(worth) * FEW_DOMAINS > len(rows):
        return None
    placed = places.of(key, nodes, rows)
    shown = worth.take(placed.present())
    lowest, highest = int(np.minimum.reduce(shown)), int(np.maximum.reduce(shown))
    return placed.by_row(np.zeros_like(shown) if lowest == highest else _between(shown, lowest, highest))


def _between(raw: Scores, lowest: int, highest: int) -> Scores:
    share = (raw - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_SCORE) * share).astype(np.int64)
