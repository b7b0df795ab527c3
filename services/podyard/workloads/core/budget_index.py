"""Which disruption budgets select a pod, and which pods a budget selects: kept as objects change, never
looked for.

A budget stands under one label that its pods must have (an anchor), or, if it names none, among those that
any pod of its namespace may meet. A pod that changes is compared with the budgets that share a label with it.
A budget whose status changes is compared with no pod; one whose selector changes, with the pods of its
namespace.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias, TypeVar

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.meta import LabelSelector
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.selectors import Selector
from podyard.proto import subjects
from podyard.workloads.core.ownership import View

BUDGETS: Final = "poddisruptionbudgets"
_NOTHING: Final = selectors.compile_labels(None)

K = TypeVar("K")
Anchor: TypeAlias = tuple[str, str, str] | tuple[str]
"""Namespace, label and value; or the namespace alone."""


class _Followed:
    """A budget, and the pods that it selects, in the order in which they came."""

    __slots__ = ("anchors", "pods", "selector", "written")

    def __init__(self, written: LabelSelector | None, selector: Selector, anchors: tuple[Anchor, ...]) -> None:
        self.written = written
        self.selector = selector
        self.anchors = anchors
        self.pods: dict[NamespacedName, None] = {}


class BudgetIndex:
    """Budgets and the pods that they select. Owned by the core; kept by `follow`.

    Invariant: `_budgets_of` and the budgets' `pods` say the same, of living pods only.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._budgets: dict[NamespacedName, _Followed] = {}
        self._at_anchor: dict[Anchor, dict[NamespacedName, None]] = {}
        self._budgets_of: dict[NamespacedName, tuple[NamespacedName, ...]] = {}
        """By pod; of every pod with a living object, those that no budget selects included."""
        self._pods_in: dict[str, dict[NamespacedName, None]] = {}
        self._budgets_in: dict[str, dict[NamespacedName, None]] = {}

    # ---- reading -------------------------------------------------------------------------------------------

    def of_namespace(self, namespace: str) -> list[ObjectKey]:
        """All budgets of a namespace."""
        return _keys(self._budgets_in.get(namespace, ()))

    def pods_of(self, key: ObjectKey) -> list[PodView]:
        """Pods with a living object that a budget selects."""
        budget = self._budgets.get(key.namespaced_name)
        return [] if budget is None else [self._view.pods[pod] for pod in budget.pods if pod in self._view.pods]

    # ---- following -----------------------------------------------------------------------------------------

    def follow(self, change: Change) -> list[ObjectKey]:
        """One object changed; returns the budgets that count otherwise now: of a pod those that select it, or
        did."""
        key = change.key.namespaced_name
        if change.resource == subjects.PODS:
            return self._follow_pod(key)
        if change.resource == BUDGETS:
            self._follow_budget(key)
        return []

    def _follow_pod(self, key: NamespacedName) -> list[ObjectKey]:
        pod = self._view.pods.get(key)  # not the change: one of the name before may end after this one came
        before = self._budgets_of.get(key, ())
        after = () if pod is None else tuple(self._selecting(key[0], pod.labels))
        if before != after:
            for budget in before:
                if budget not in after:
                    del self._budgets[budget].pods[key]
            for budget in after:
                self._budgets[budget].pods[key] = None
        if pod is not None:
            self._budgets_of[key] = after
            self._pods_in.setdefault(key[0], {})[key] = None
        elif key in self._budgets_of:
            del self._budgets_of[key]
            _drop(self._pods_in, key[0], key)
        return _keys(dict.fromkeys((*before, *after)))

    def _follow_budget(self, key: NamespacedName) -> None:
        found: PodDisruptionBudget | None = self._view.objects(BUDGETS).get(key)
        known = self._budgets.get(key)
        if found is not None and known is not None and known.written == found.spec.selector:
            return
        if known is not None:
            self._forget(key, known)
        if found is None:
            return
        selector = _compiled(found.spec.selector)
        budget = self._budgets[key] = _Followed(found.spec.selector, selector, _anchors(key[0], selector))
        self._budgets_in.setdefault(key[0], {})[key] = None
        for anchor in budget.anchors:
            self._at_anchor.setdefault(anchor, {})[key] = None
        for pod in self._pods_in.get(key[0], ()):
            if pod in self._view.pods and selector.matches(self._view.pods[pod].labels):
                budget.pods[pod] = None
                self._budgets_of[pod] = (*self._budgets_of[pod], key)

    def _forget(self, key: NamespacedName, budget: _Followed) -> None:
        del self._budgets[key]
        _drop(self._budgets_in, key[0], key)
        for anchor in budget.anchors:
            _drop(self._at_anchor, anchor, key)
        for pod in budget.pods:
            self._budgets_of[pod] = tuple(one for one in self._budgets_of[pod] if one != key)

    def _selecting(self, namespace: str, labels: dict[str, str]) -> Iterable[NamespacedName]:
        anchors: list[Anchor] = [(namespace,), *((namespace, label, value) for label, value in labels.items())]
        for anchor in anchors:
            for key in self._at_anchor.get(anchor, ()):
                if self._budgets[key].selector.matches(labels):
                    yield key


def _anchors(namespace: str, selector: Selector) -> tuple[Anchor, ...]:
    """Of a selector that names values of a label, these; one that selects nothing has none."""
    if selector.nothing:
        return ()
    for requirement in selector.requirements:
        if requirement.operator == selectors.IN:
            return tuple((namespace, requirement.key, value) for value in sorted(requirement.values))
    return ((namespace,),)


def _compiled(selector: LabelSelector | None) -> Selector:
    """One that cannot be compiled selects nothing: the API server refuses it."""
    try:
        return selectors.compile_labels(selector)
    except SelectorError:
        return _NOTHING


def _keys(found: Iterable[NamespacedName]) -> list[ObjectKey]:
    return [ObjectKey(BUDGETS, *key) for key in found]


def _drop(sets: dict[K, dict[NamespacedName, None]], under: K, key: NamespacedName) -> None:
    """Take `key` out of one of the sets, and the set if it is empty now."""
    found = sets[under]
    del found[key]
    if not found:
        del sets[under]
