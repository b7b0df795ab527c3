"""What disruption budgets allow. Pure.

Source: pkg/registry/core/pod/rest/eviction.go (Create, checkAndDecrement, canIgnorePDB), kube-apiserver
v1.36.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from podyard.cluster.errors import PdbBlocked
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import selectors, times
from podyard.objects.errors import SelectorError
from podyard.objects.policy import PodDisruptionBudget

RESOURCE: Final = "poddisruptionbudgets"

MAX_DISRUPTED_PODS: Final = 2000
"""Evictions that a budget's controller may leave unconfirmed. Source: eviction.go, MaxDisruptedPodSize."""

RETRY_AFTER_S: Final = 10.0
"""What the API server tells who meets a budget that is not up to date."""


class PodFacts(NamedTuple):
    """What counts of a pod that is to be evicted."""

    key: ObjectKey
    uid: str
    labels: Mapping[str, str]
    occupies: bool
    """It is bound and not released."""
    phase: str
    """Pending, Running, Succeeded, Failed; empty counts as Pending."""
    ready: bool
    deleting: bool


class Charge(Enum):
    """How an allowed eviction counts."""

    FREE = "free"
    """No budget is charged."""
    ONE = "one"
    """The budget loses one disruption."""


def facts_of(view: PodView) -> PodFacts:
    """What counts of a pod, from its joined view."""
    status = view.pod.status
    return PodFacts(
        key=ObjectKey("pods", *view.key),
        uid=view.uid,
        labels=view.labels,
        occupies=view.bound is not None,
        phase=status.phase,
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions),
        deleting=view.deleting,
    )


def ignores_budgets(pod: PodFacts) -> bool:
    """Whether the pod serves nobody: it has ended, never ran, or is being deleted already."""
    return pod.deleting or not pod.occupies or pod.phase not in ("Running", "Unknown")


def matching(
    pod: PodFacts, budgets: Iterable[tuple[NamespacedName, PodDisruptionBudget]]
) -> list[tuple[ObjectKey, PodDisruptionBudget]]:
    """The budgets of the pod's namespace that select it. An empty selector selects every pod, an absent one
    none."""
    found: list[tuple[ObjectKey, PodDisruptionBudget]] = []
    for (namespace, name), budget in budgets:
        if namespace == pod.key.namespace and _selects(budget, pod.labels):
            found.append((ObjectKey(RESOURCE, namespace, name), budget))
    return found


def _selects(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    """A selector that cannot be compiled selects nothing: the API server refuses it before it is stored."""
    try:
        return selectors.compile_labels(budget.spec.selector).matches(labels)
    except SelectorError:
        return False


def judge(pod: PodFacts, key: ObjectKey, budget: PodDisruptionBudget) -> Charge:
    """Whether the one budget of a pod allows its eviction, and how it counts.

    :raises PdbBlocked: it does not
    """
    status, policy = budget.status, budget.spec.unhealthy_pod_eviction_policy
    if not pod.ready:
        if policy == "AlwaysAllow":
            return Charge.FREE
        if 0 < status.desired_healthy <= status.current_healthy:
            return Charge.FREE
    name = f"{key.namespace}/{key.name}"
    if status.observed_generation < budget.metadata.generation:
        reason = f"the disruption budget {key.name} is still being processed"
        raise PdbBlocked(pod.key, name, reason, retry_after_s=RETRY_AFTER_S)
    if status.disruptions_allowed < 0:
        raise PdbBlocked(pod.key, name, f"the disruption budget {key.name} allows a negative number of disruptions")
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        raise PdbBlocked(pod.key, name, f"{len(status.disrupted_pods)} evictions of {key.name} are not confirmed yet")
    if status.disruptions_allowed == 0:
        healthy = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy}"
        raise PdbBlocked(pod.key, name, f"it would violate the pod's disruption budget: {key.name} {healthy} currently")
    return Charge.ONE


def charge(document: dict[str, Any], pod: str, now: float) -> None:
    """Take one disruption from a budget's document, in place, for the pod called `pod`."""
    status = document.setdefault("status", {})
    status["disruptionsAllowed"] = int(status.get("disruptionsAllowed", 0)) - 1
    status.setdefault("disruptedPods", {})[pod] = times.rfc3339(now)
    if status["disruptionsAllowed"] == 0:
        conditions = [one for one in status.get("conditions", []) if one.get("type") != "DisruptionAllowed"]
        conditions.append(
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "lastTransitionTime": times.rfc3339(now),
            }
        )
        status["conditions"] = conditions
