"""How uneven hard constraints let pods be: the part of Filter.

Source: kube-scheduler v1.36.2, podtopologyspread/filtering.go.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.domain_sums import DomainSums
from podyard.cluster.node_columns import ABSENT
from podyard.framework import details
from podyard.framework.interfaces import Detail
from podyard.plugins.pod_topology_spread.plans import Planned

SKEWED: Final = 1
"""With the pod, the node's domain would have too many more pods than the emptiest one."""
NO_LABEL: Final = 2
"""The node is in no domain."""

NOTHING_MORE: Final[Mapping[int, int]] = {}


class Skew:
    """One hard constraint, in a cluster and in trials of it.

    Never changed. `more`: by domain, the pods that a trial has more (or less) than `sums` counts.
    """

    __slots__ = ("_limit", "more", "planned", "sums")

    def __init__(self, planned: Planned, sums: DomainSums, more: Mapping[int, int] = NOTHING_MORE) -> None:
        self.planned = planned
        self.sums = sums
        self.more = more
        self._limit: int | None = None

    @property
    def limit(self) -> int:
        """With more pods than so many a domain takes no further one."""
        if self._limit is None:
            constraint = self.planned.constraint
            enough = self.sums.domains.number >= constraint.min_domains
            self._limit = constraint.max_skew - self.planned.itself + (self._lowest() if enough else 0)
        return self._limit

    def codes(self) -> NDArray[np.int64]:
        """By domain: what is wrong with its nodes, 0 for nothing."""
        codes = (self._counts() > self.limit).astype(np.int64)
        codes[ABSENT] = NO_LABEL
        return codes

    def code(self, row: int) -> int:
        """What is wrong with the node of one row."""
        domain = self.sums.domains.cells.item(row)
        if domain == ABSENT:
            return NO_LABEL
        return SKEWED if self.sums.sums.item(domain) + self.more.get(domain, 0) > self.limit else 0

    def surplus(self, row: int) -> float:
        """How many pods too many the domain of a row would have with the pod; of no domain: no end of
        them."""
        domain = self.sums.domains.cells.item(row)
        return math.inf if domain == ABSENT else self._counts().item(domain) - self.limit

    def told(self, row: int) -> str:
        """What is wrong with the node of one row, in words."""
        constraint, domains = self.planned.constraint, self.sums.domains
        key, domain = constraint.topology_key, domains.cells.item(row)
        if domain == ABSENT:
            return f"has no label {key}"
        counts = self._counts()
        held = f"{key}={domains.column.values[domain]} has {counts.item(domain)} of these pods"
        if domains.number < constraint.min_domains:
            return f"{held}, and there are {domains.number} of at least {constraint.min_domains} domains (minDomains)"
        present = domains.present.nonzero()[0]
        emptiest = int(present[counts[present].argmin()])
        least = f"{domains.column.values[emptiest]} has {counts.item(emptiest)}"
        return f"{held}, {least}: with one more they would differ by more than {constraint.max_skew} (maxSkew)"

    def with_pod(self, labels: Mapping[str, str], row: int, more: int) -> "Skew":
        """With a pod of the right namespace more, or less, on the node of `row`; whether or not it is ending.

        Taking away an ending pod, which was never counted, lowers the count all the same. Source:
        updateWithPod, which does so.
        """
        domain = self.sums.domains.homes.item(row)
        if domain == ABSENT or not self.planned.constraint.selector.matches(labels):
            return self
        return Skew(self.planned, self.sums, {**self.more, domain: self.more.get(domain, 0) + more})

    def _counts(self) -> NDArray[np.int64]:
        if not self.more:
            return self.sums.sums
        counts = self.sums.sums.copy()
        for domain, more in self.more.items():
            counts[domain] += more
        return counts

    def _lowest(self) -> int:
        return int(self._counts()[self.sums.domains.present].min()) if self.more else self.sums.lowest


Skews: TypeAlias = tuple[Skew, ...]
"""All hard constraints of a pod, in their order: the first one that a node fails says why."""


def codes(skews: Sequence[Skew], rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """What is wrong with the nodes of `rows`, 0 for nothing."""
    found: NDArray[np.int64] | None = None
    for skew in skews:
        theirs = skew.sums.domains.of(skew.codes(), rows)
        found = theirs if found is None else np.where(found, found, theirs)
    return np.zeros(len(rows), dtype=np.int64) if found is None else found


def code(skews: Sequence[Skew], row: int) -> int:
    """What is wrong with the node of one row."""
    for skew in skews:
        found = skew.code(row)
        if found:
            return found
    return 0


def detail(skews: Sequence[Skew], rows: NDArray[np.intp]) -> Detail | None:
    """The node whose domain has fewest pods too many, among the first by name, and what is wrong there."""
    found: list[tuple[float, int, Skew]] = []
    for row in rows[: details.MOST_LOOKED_AT].tolist():
        failed = next((skew for skew in skews if skew.code(row)), None)
        if failed is not None:
            found.append((failed.surplus(row), row, failed))
    if not found:
        return None
    lack, row, failed = min(found, key=lambda one: one[:1])
    return Detail(failed.told(row), row, lack)
