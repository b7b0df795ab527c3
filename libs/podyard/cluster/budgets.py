"""What disruption budgets allow. Pure.

Source: pkg/registry/core/pod/storage/eviction.go, kube-apiserver v1.36.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from podyard.cluster.errors import PdbBlocked
from podyard.cluster.keys import ObjectKey
from podyard.objects import selectors, times
from podyard.objects.errors import SelectorError
from podyard.objects.pod import ENDED
from podyard.objects.policy import PodDisruptionBudget
from podyard.proto.objects_api import BudgetAnswer, BudgetHelp

RESOURCE: Final = "poddisruptionbudgets"

MAX_DISRUPTED_PODS: Final = 2000
"""Evictions that a budget's controller may leave unconfirmed. Source: eviction.go, MaxDisruptedPodSize."""

RETRY_AFTER_S: Final = 10
"""What the API server tells who meets a budget that is not up to date. Source: eviction.go,
createTooManyRequestsError."""

TOO_MANY_REQUESTS: Final = 429
FORBIDDEN: Final = 403
FAILED: Final = 500

ALLOWED: Final = "DisruptionAllowed"
"""The condition that says whether a budget allows any."""


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


def has_ended(pod: PodFacts) -> bool:
    """Whether the pod disrupts nobody any more by going: it has ended, or is on its way out. Source:
    eviction.go, canIgnorePDB."""
    return pod.deleting or pod.phase in ENDED


def is_pending(pod: PodFacts) -> bool:
    """Whether it serves nobody yet; it may do so soon. Source: eviction.go, canIgnorePDB,
    shouldEnforceResourceVersion."""
    return not pod.occupies or pod.phase not in ("Running", "Unknown")


def selects(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    """Whether a budget of the pod's namespace protects it. An empty selector selects every pod, an absent one
    none, and so does one that cannot be compiled: the API server refuses it before it is stored."""
    try:
        return selectors.compile_labels(budget.spec.selector).matches(labels)
    except SelectorError:
        return False


def only_one(pod: PodFacts, selecting: Iterable[ObjectKey]) -> ObjectKey | None:
    """The budget of a pod, None if it has none.

    :raises PdbBlocked: it has several, which the eviction API does not support
    """
    found = tuple(selecting)
    if len(found) > 1:
        names = tuple(key.name for key in found)
        told = f"the pod has more than one disruption budget ({', '.join(names)}), which is not supported"
        raise PdbBlocked(pod.key, told, BudgetAnswer(budgets=names, code=FAILED, waits_for="edit"))
    return found[0] if found else None


def unreadable(pod: PodFacts, key: ObjectKey) -> PdbBlocked:
    """A budget that may protect any pod."""
    told = f"the disruption budget {key.name} cannot be read, so it may protect any pod of its namespace: delete it, or write it anew"
    return PdbBlocked(pod.key, told, BudgetAnswer(budgets=(key.name,), code=FAILED, waits_for="edit"))


def not_listed(key: ObjectKey, within_s: float) -> PdbBlocked:
    """Nobody knows how a pod and its budgets stand."""
    told = f"its disruption budgets, or what its agent says, could not be listed within {within_s:g} s"
    answer = BudgetAnswer(code=TOO_MANY_REQUESTS, retry_after_s=RETRY_AFTER_S, waits_for="time")
    return PdbBlocked(key, told, answer)


def judge(pod: PodFacts, key: ObjectKey, budget: PodDisruptionBudget) -> BudgetAnswer:
    """How the only budget of a pod allows its eviction, and whether it is charged. Source: eviction.go,
    Create, checkAndDecrement.

    :raises PdbBlocked: it does not
    """
    status, policy = budget.status, budget.spec.unhealthy_pod_eviction_policy
    standing = BudgetAnswer(
        budgets=(key.name,),
        desired_healthy=status.desired_healthy,
        current_healthy=status.current_healthy,
        disruptions_allowed=status.disruptions_allowed,
    )
    if not pod.ready and (policy == "AlwaysAllow" or 0 < status.desired_healthy <= status.current_healthy):
        return standing

    def blocked(told: str, code: int, waits_for: BudgetHelp, retry_after_s: int = 0) -> PdbBlocked:
        answer = replace(standing, code=code, waits_for=waits_for, retry_after_s=retry_after_s)
        return PdbBlocked(pod.key, told, answer)

    if status.observed_generation < budget.metadata.generation:
        told = f"the disruption budget {key.name} is still being processed: try again in {RETRY_AFTER_S} s"
        raise blocked(told, TOO_MANY_REQUESTS, "time", RETRY_AFTER_S)
    if status.disruptions_allowed < 0:
        raise blocked(f"the disruption budget {key.name} allows a negative number of disruptions", FORBIDDEN, "edit")
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        told = f"{len(status.disrupted_pods)} evictions of {key.name} are not confirmed yet"
        raise blocked(told, FORBIDDEN, "time")
    if status.disruptions_allowed == 0:
        told = f"it would violate the pod's disruption budget: {_why_none(key.name, budget)}"
        raise blocked(told, TOO_MANY_REQUESTS, "healthyPods")
    return replace(standing, charged=True)


def _why_none(name: str, budget: PodDisruptionBudget) -> str:
    status = budget.status
    said = next((one for one in status.conditions if one.type == ALLOWED and one.status == "False"), None)
    if said is not None and said.message and said.reason == "SyncFailed":  # then the numbers cannot be trusted
        return f"{name} could not be counted: {said.message}"
    healthy = f"{name} needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    if status.current_healthy <= status.desired_healthy:
        return healthy
    if status.disrupted_pods:
        return f"{healthy}, of which {len(status.disrupted_pods)} are being evicted"
    return f"{healthy} ({said.reason}: {said.message})" if said is not None and said.message else healthy


def charge(document: dict[str, Any], pod: str, now: float) -> None:
    """Take one disruption from a budget's document, in place, for the pod called `pod`."""
    status = document.setdefault("status", {})
    status["disruptionsAllowed"] = int(status.get("disruptionsAllowed", 0)) - 1
    status.setdefault("disruptedPods", {})[pod] = times.rfc3339(now)
    if status["disruptionsAllowed"] == 0:
        conditions = [one for one in status.get("conditions", []) if one.get("type") != ALLOWED]
        conditions.append(
            {
                "type": ALLOWED,
                "status": "False",
                "reason": "InsufficientPods",
                "lastTransitionTime": times.rfc3339(now),
            }
        )
        status["conditions"] = conditions
