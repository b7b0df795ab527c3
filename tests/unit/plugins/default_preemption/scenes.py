"""Nodes with pods to be preempted, and what the plugin says of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.profile import Profile
from podyard.framework.snapshot import ObjectsByName, Snapshot
from podyard.framework.status import Status
from podyard.objects.core import Node
from podyard.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from podyard.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from podyard.plugins.default_preemption import choice
from podyard.plugins.default_preemption.plugin import dry_run
from podyard.proto.placement import BoundPod
from tests.unit.framework.builders import make_pod, profile, table_of

PREEMPTED = ("DisruptionTarget", "True", "PreemptionByScheduler")


def placed(
    name: str,
    node: str,
    *,
    start: str = "",
    decided_at: int = 0,
    conditions: Sequence[tuple[str, str, str]] = (),
    namespace: str = "default",
    **more: Any,
) -> PodView:
    """A pod on a node. `start` is minutes and seconds of some hour."""
    pod = make_pod(name, **more)
    status = {
        "startTime": f"2026-01-01T00:{start}Z" if start else None,
        "conditions": [{"type": type_, "status": status, "reason": reason} for type_, status, reason in conditions],
    }
    stored = msgspec.structs.replace(pod.stored, status=msgspec.convert(status, type(pod.stored.status)))
    bound = BoundPod(
        namespace=namespace,
        name=name,
        uid=pod.uid,
        node=node,
        decided_at=decided_at,
        priority=pod.priority,
        labels=pod.labels,
        usage=pod.usage,
    )
    return PodView(stored, (namespace, name), pod.uid, 1, bound)


def budget(
    allowed: int,
    labels: Mapping[str, str] | None,
    *,
    namespace: str = "default",
    disrupted: Sequence[str] = (),
    operator: str = "",
) -> PodDisruptionBudget:
    """A budget for pods with these labels; `None`: without a selector. `operator`: of one more expression."""
    expressions = (LabelSelectorRequirement(key="x", operator=operator),) if operator else ()
    selector = None if labels is None else LabelSelector(match_labels=dict(labels), match_expressions=expressions)
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="budget", namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
        ),
    )


class _Objects:
    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._version = 0
        self.set(budgets)

    def set(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._budgets = {("default", f"budget-{number}"): one for number, one in enumerate(budgets)}
        self._version += 1

    def objects(self, resource: str) -> ObjectsByName:
        return self._budgets if resource == "poddisruptionbudgets" else {}

    def version(self, resource: str) -> int:
        del resource
        return self._version


class Scene:
    """A cluster of the moment."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[PodView],
        *,
        budgets: Sequence[PodDisruptionBudget] = (),
        nominated: Sequence[PodView] = (),
        use: Profile | None = None,
    ) -> None:
        table = table_of(*nodes)
        for pod in pods:
            table.place(pod)
        self._objects = _Objects(budgets)
        self.snapshot = Snapshot(table, self._objects, nominated=Nominations(nominated))
        self.cycle = Cycle(use or profile(), self.snapshot)

    def set_budgets(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        """These, and no others any more."""
        self._objects.set(budgets)

    def run(self, pod: PodView) -> CycleResult:
        """A whole cycle."""
        return self.cycle.run(pod)

    def tried(self, pod: PodView, node: str) -> tuple[list[str], int] | Status:
        """A search on one node: names of the victims, most important first, and how many break a budget."""
        feasibility = self.cycle.judge(pod)
        run = dry_run(feasibility.state.clone(), pod, self.snapshot, feasibility.diagnosis())
        row = self.snapshot.nodes.row_of[node]
        found = run.search(np.array([row]), 1)
        if not len(found.costs):
            return found.statuses[row]
        [candidate] = found.candidates
        assert tuple(found.costs[0]) == choice.cost(candidate)
        return [victim.name for victim in candidate.victims], len(candidate.violating)


def names(result: CycleResult) -> list[str]:
    """The victims of a cycle, most important first."""
    return [victim.name for victim in result.victims]
