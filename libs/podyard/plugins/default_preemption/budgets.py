"""Which victims would break a disruption budget.

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from podyard.cluster.node_table import PlacedPod
from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.selectors import Selector

RESOURCE: Final = "poddisruptionbudgets"


class _Budget(NamedTuple):
    number: int
    selector: Selector
    disrupted: frozenset[str]
    """Names of pods whose eviction is counted already (docs/rules.md, budgets-are-shared-by-victims)."""


class Split(NamedTuple):
    """Pods in the order in which they were given."""

    violating: list[PlacedPod]
    others: list[PlacedPod]


class Budgets:
    """The budgets of all namespaces, ready to be asked."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = (), version: int = 0) -> None:
        """
        :param version: another number when any of them is another
        """
        self.version = version
        self._by_namespace: dict[str, list[_Budget]] = {}
        self._allowed: list[int] = []
        """Disruptions that each budget allows, by its number."""
        for budget in budgets:
            selector = _selector(budget)
            if selector is not None:
                found = _Budget(len(self._allowed), selector, frozenset(budget.status.disrupted_pods))
                self._allowed.append(budget.status.disruptions_allowed)
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(found)

    def split(self, pods: Sequence[PlacedPod]) -> Split:
        """Take every pod from the budgets that select it; one that overdraws any of them violates, and counts
        once.

        :param pods: most important first: they use the budgets up in this order
        """
        if not self._by_namespace:
            return Split([], list(pods))
        split, left = Split([], []), self._allowed.copy()
        for pod in pods:
            (split.violating if self._overdraws(pod, left) else split.others).append(pod)
        return split

    def _overdraws(self, pod: PlacedPod, left: list[int]) -> bool:
        """
        :param left: what is left of each budget, by its number; drawn on
        """
        if not pod.labels:
            return False
        overdrawn = False
        for budget in self._by_namespace.get(pod.namespace, ()):
            if pod.name in budget.disrupted or not budget.selector.matches(pod.labels):
                continue
            left[budget.number] -= 1
            overdrawn = overdrawn or left[budget.number] < 0
        return overdrawn


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """`None` for a budget that counts for nothing: unlike in the eviction API, an empty selector selects
    nothing here."""
    try:
        selector = selectors.compile_labels(budget.spec.selector)
    except SelectorError:
        return None
    return None if selector.nothing or selector.everything else selector
