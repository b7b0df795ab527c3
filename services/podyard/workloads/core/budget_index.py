"""Which disruption budgets select a pod."""

from typing import Final

from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.selectors import Selector
from podyard.workloads.core.ownership import View

BUDGETS: Final = "poddisruptionbudgets"
_NOTHING: Final = selectors.compile_labels(None)


class BudgetIndex:
    """Selectors of budgets, compiled once a version."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._compiled: dict[ObjectKey, Selector] = {}

    def of_namespace(self, namespace: str) -> list[ObjectKey]:
        """All budgets of a namespace."""
        return [ObjectKey(BUDGETS, *found) for found in self._budgets() if found[0] == namespace]

    def selecting(self, pod: PodView) -> list[ObjectKey]:
        """Budgets that select a pod."""
        if not self._budgets():
            return []
        return [key for key in self.of_namespace(pod.namespace) if self.selector(key).matches(pod.labels)]

    def pods_of(self, key: ObjectKey) -> list[PodView]:
        """Pods with a living object that a budget selects."""
        selector = self.selector(key)
        return [
            pod for pod in self._view.pods.values() if pod.namespace == key.namespace and selector.matches(pod.labels)
        ]

    def forget(self, key: ObjectKey) -> None:
        """The budget has changed."""
        self._compiled.pop(key, None)

    def selector(self, key: ObjectKey) -> Selector:
        """What a budget selects; one that cannot be compiled selects nothing (the API server refuses it)."""
        found = self._compiled.get(key)
        if found is None:
            budget = self._budgets().get(key.namespaced_name)
            try:
                found = _NOTHING if budget is None else selectors.compile_labels(budget.spec.selector)
            except SelectorError:
                found = _NOTHING
            self._compiled[key] = found
        return found

    def _budgets(self) -> "dict[NamespacedName, PodDisruptionBudget]":
        return self._view.others.get(BUDGETS, {})  # pyright: ignore[reportReturnType] - a read-only mapping of that type
