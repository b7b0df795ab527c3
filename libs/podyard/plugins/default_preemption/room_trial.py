"""What would have to go from nodes for the pod to have room: worked out by sums, where nothing else counts.

The same as `dry_run` finds by trying it out with all plugins. What it costs to preempt on a node is kept
until something changes there: a preemption looks at hundreds of nodes, and few of them changed since the
last.

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.interfaces import Rows
from podyard.memory.latest import Latest
from podyard.plugins.default_preemption import choice, importance
from podyard.plugins.default_preemption.budgets import Budgets
from podyard.plugins.default_preemption.choice import Candidate, Costs

MOST_KEPT: Final = 8
"""Sizes of pods, each with a priority, whose costs are kept: 56 bytes a row."""

Wanted: TypeAlias = tuple[tuple[str, int], ...]
"""Resources with amounts above 0, of which a node must have so much left."""


class KeptCosts:
    """Of pods of one size and priority, by row."""

    __slots__ = ("budgets", "costs", "generation")

    def __init__(self, capacity: int, budgets: int) -> None:
        """
        :param budgets: the version of the budgets that count
        """
        self.costs: Costs = choice.no_costs(capacity)
        self.generation = np.full(capacity, -1, dtype=np.int64)
        """That of the row when its costs were worked out; -1: they were not."""
        self.budgets = budgets


class RoomTrials:
    """An index of the node table: costs of the sizes of pods that preempted last.

    It need not be told of pods: a row that changed has another generation.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._kept: Latest[tuple[Wanted, int], KeptCosts] = Latest(MOST_KEPT)

    def add(self, pod: PlacedPod, row: int) -> None:
        """Nothing to count."""

    def remove(self, pod: PlacedPod, row: int) -> None:
        """Nothing to count."""

    def of(self, wanted: Wanted, priority: int, budgets: int) -> KeptCosts:
        """What is kept for pods of a size and priority; nothing, if budgets are others now.

        :param budgets: their version
        """
        key = wanted, priority
        found = self._kept.get(key)
        if found is None or found.budgets != budgets or len(found.generation) != self._table.capacity:
            found = KeptCosts(self._table.capacity, budgets)
        self._kept.keep(key, found)
        return found


class RoomTrial:
    """For one pod."""

    def __init__(self, wanted: Wanted, priority: int, nodes: NodeTable, budgets: Budgets) -> None:
        """
        :param priority: of the pod: who has less may go
        """
        self._wanted = wanted
        self._priority = priority
        self._nodes = nodes
        self._budgets = budgets
        self._kept = nodes.index(RoomTrials).of(wanted, priority, budgets.version)

    def costs(self, rows: Rows) -> Costs:
        """What it costs to preempt on the nodes of these rows, in their order; `choice.NO_COST` where one has
        no room even without those that may go, or has room with all of them."""
        kept, generation = self._kept, self._nodes.generation
        for row in rows[kept.generation[rows] != generation[rows]].tolist():
            candidate = self.on(row)
            kept.costs[row] = choice.NO_COST if candidate is None else choice.cost(candidate)
            kept.generation[row] = generation.item(row)
        return kept.costs[rows]

    def on(self, row: int) -> Candidate | None:
        """The node of this row with its victims; `None`: it has no room even without those that may go, or
        has room with all of them."""
        nodes = self._nodes
        name = nodes.names[row]
        ordered = importance.most_important_first(
            [pod for pod in nodes.pods_on(name).values() if pod.priority < self._priority]
        )
        amounts = {pod.uid: self._takes(pod) for pod in ordered}
        left = self._left(row, amounts.values())
        spare = nodes.pod_limit.item(row) - nodes.pod_count.item(row) + len(ordered) - 1
        if spare < 0 or min(left, default=0) < 0:
            return None
        violating, others = self._budgets.split(ordered)
        victims: set[str] = set()
        spare = self._spare(violating, amounts, left, spare, victims)
        broken = frozenset(victims)
        self._spare(others, amounts, left, spare, victims)
        if not victims:
            return None
        doomed = tuple([pod for pod in ordered if pod.uid in victims])
        return Candidate(node=name, victims=doomed, violations=len(broken), violating=broken)

    def _takes(self, pod: PlacedPod) -> list[int]:
        """Of each wanted resource."""
        requests = pod.usage.requests
        return [requests.get(resource, 0) for resource, _ in self._wanted]

    def _left(self, row: int, amounts: Collection[Sequence[int]]) -> list[int]:
        """What is left of each wanted resource beside the pod once those are gone that take these amounts;
        below 0: it has no room."""
        room = self._nodes.room
        whole, taken = room.whole(row), room.taken(row).requests
        return [
            whole.get(resource, 0) - taken.get(resource, 0) - amount + sum([one[at] for one in amounts])
            for at, (resource, amount) in enumerate(self._wanted)
        ]

    def _spare(
        self,
        pods: Sequence[PlacedPod],
        amounts: Mapping[str, Sequence[int]],
        left: list[int],
        spare: int,
        victims: set[str],
    ) -> int:
        """Bring back whom there is room for, in this order; the others become victims.

        :param amounts: what each takes, by uid
        :param left: drawn on
        :param spare: how many more pods the node takes
        :return: how many more it takes then
        """
        for pod in pods:
            takes = amounts[pod.uid]
            if spare > 0 and not [at for at, amount in enumerate(takes) if amount > left[at]]:
                spare -= 1
                for at, amount in enumerate(takes):
                    left[at] -= amount
            else:
                victims.add(pod.uid)
        return spare
