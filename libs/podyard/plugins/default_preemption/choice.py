"""How many nodes are tried, from which on, and which of them is taken.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption),
plugins/defaultpreemption/ default_preemption.go (calculateNumCandidates, GetOffsetAndNumCandidates). Where
the reference rolls dice or walks a map, a generator seeded with the pod's uid decides
(docs/rules.md, preemption-choice-repeats).
"""

from collections.abc import Sequence
from random import Random
from typing import TypeAlias

import msgspec

from podyard.cluster.node_table import PlacedPod
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


def cost(candidate: Candidate) -> Cost:
    """What the victims are worth; the smallest is best.

    In this order: broken budgets, the highest priority, the sum of priorities, the number of victims, and how
    long the victims of highest priority have run (a late start costs less).
    """
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


def pick(candidates: Sequence[Candidate], random: Random) -> Candidate:
    """The cheapest; among equal ones any.

    :param candidates: at least one, in an order that does not change between runs
    """
    costs = [cost(candidate) for candidate in candidates]
    lowest = min(costs)
    best = [candidate for candidate, its_cost in zip(candidates, costs, strict=True) if its_cost == lowest]
    return best[0] if len(best) == 1 else best[random.randrange(len(best))]


def candidates_wanted(args: Args, potential: int) -> int:
    """How many candidates end the search, of `potential` nodes."""
    share = potential * args.min_candidate_nodes_percentage // 100
    return min(potential, max(share, args.min_candidate_nodes_absolute))
