"""How many nodes are tried, from which on, and which of them is taken.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption),
plugins/defaultpreemption/ default_preemption.go (calculateNumCandidates, GetOffsetAndNumCandidates). Where
the reference rolls dice or walks a map, a generator seeded with the pod's uid decides
(docs/rules.md, preemption-choice-repeats).
"""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import PlacedPod
from podyard.framework.interfaces import Rows
from podyard.plugins.default_preemption import importance
from podyard.plugins.default_preemption.args import Args


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that takes the pod once these pods are gone."""

    node: str
    victims: tuple[PlacedPod, ...]
    """Most important first; at least one."""
    violations: int = 0
    """How many of them break a disruption budget."""
    violating: frozenset[str] = frozenset()
    """Their uids, as far as they are known: an extender tells the number only."""


Cost: TypeAlias = tuple[int, int, int, int, float, int]
"""What the victims on a node are worth; the smallest is best.

In this order: broken budgets, the highest priority, the sum of priorities, the number of victims, and how
long the victims of highest priority have run (a late start costs less).
"""

Costs: TypeAlias = NDArray[np.float64]
"""One row a node, six columns: those of `Cost`. All are whole numbers below 2^53 or infinite."""

NO_COST: Final[Cost] = (1 << 53, 0, 0, 0, 0.0, 0)
"""Of a node that is no candidate."""


def no_costs(count: int) -> Costs:
    """:return: for so many nodes, none of which is a candidate"""
    return np.tile(np.array(NO_COST, dtype=np.float64), (count, 1))


def cost(candidate: Candidate) -> Cost:
    """What the victims on one node are worth."""
    victims = candidate.victims
    seconds, placed_at = importance.earliest_start(victims)
    return (
        candidate.violations,
        victims[0].priority,
        sum(pod.priority + importance.PRIORITY_SHIFT for pod in victims),
        len(victims),
        -seconds,
        -placed_at,
    )


def costs(candidates: Sequence[Candidate]) -> Costs:
    """Of several, in their order."""
    return np.array([cost(one) for one in candidates], dtype=np.float64).reshape(len(candidates), len(NO_COST))


def pick(costs: Costs, random: Random) -> int:
    """The place of the cheapest; among equal ones any.

    :param costs: of at least one candidate, in an order that does not change between runs
    """
    best = np.arange(len(costs))
    for column in costs.T:
        if len(best) == 1:
            break
        values = column[best]
        best = best[values == values.min()]
    return best.item(0) if len(best) == 1 else best.item(random.randrange(len(best)))


def enough(costs: Costs, wanted: int) -> tuple[bool, Rows]:
    """Whether a search that looks at nodes in this order ends with one of these, and what it found: it ends
    with one candidate that breaks no budget and `wanted` in all.

    :return: whether it does, and the places of its candidates: at most `wanted` that break no budget, then at
        most so many that do
    """
    violations = costs[:, 0]
    clean, broken = violations == 0, (violations > 0) & (violations < NO_COST[0])
    kept_clean, kept_broken = np.minimum(clean.cumsum(), wanted), np.minimum(broken.cumsum(), wanted)
    ends = ((kept_clean > 0) & (kept_clean + kept_broken >= wanted)).nonzero()[0]
    until = ends.item(0) + 1 if len(ends) else len(costs)
    places = [kind[:until].nonzero()[0][:wanted] for kind in (clean, broken)]
    return len(ends) > 0, np.concatenate(places)


def candidates_wanted(args: Args, potential: int) -> int:
    """How many candidates end the search, of `potential` nodes."""
    share = potential * args.min_candidate_nodes_percentage // 100
    return min(potential, max(share, args.min_candidate_nodes_absolute))
