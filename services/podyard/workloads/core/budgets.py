"""PodDisruptionBudget: how many pods are healthy, and how many more may go.

Source: pkg/controller/disruption/disruption.go (trySync, getExpectedPodCount, countHealthyPods,
buildDisruptedPodMap).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.objects import times
from podyard.objects.policy import PodDisruptionBudget
from podyard.workloads.core import documents, rollout
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Document

DELETION_TIMEOUT_S: Final = 120.0
"""How long a granted eviction may take to show as a deletion. Source: DeletionTimeout."""


class Budgeted(NamedTuple):
    """What a budget's status is made from, besides its own evictions."""

    pods: Sequence[PodView]
    """Of its namespace, matching its selector, with a living object."""
    expected: int
    desired: int


def measure(
    budget: PodDisruptionBudget, pods: Sequence[PodView], scale_of: Callable[[PodView], tuple[str, int] | None]
) -> Budgeted:
    """How many pods are expected, and how many must be healthy.

    :param scale_of: of a pod's controller: its uid and how many replicas it wants; None if it has none that
        counts
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _expected(pods, scale_of)
        return Budgeted(pods, expected, max(0, expected - rollout.scaled(spec.max_unavailable, expected, up=True)))
    if isinstance(spec.min_available, int):
        return Budgeted(pods, len(pods), spec.min_available)
    expected = _expected(pods, scale_of)
    return Budgeted(pods, expected, rollout.scaled(spec.min_available or 0, expected, up=True))


def _expected(pods: Sequence[PodView], scale_of: Callable[[PodView], tuple[str, int] | None]) -> int:
    return sum(dict(filter(None, map(scale_of, pods))).values())


def set_status(document: Document, measured: Budgeted, now: float) -> bool:
    """Write the status into a budget's document; its list of granted evictions loses those that have happened
    or timed out.

    :return: whether anything changed
    """
    before: Document = document.get("status") or {}
    disrupted = _still_disrupted(before.get("disruptedPods") or {}, measured.pods, now)
    healthy = sum(
        1 for pod in measured.pods if pod_facts.is_ready(pod) and not pod.deleting and pod.name not in disrupted
    )
    allowed = max(0, healthy - measured.desired) if measured.expected > 0 else 0
    fields: Document = {
        "currentHealthy": healthy,
        "desiredHealthy": measured.desired,
        "disruptionsAllowed": allowed,
        "expectedPods": measured.expected,
        "observedGeneration": int(document["metadata"].get("generation", 0)),
    }
    if disrupted:
        fields["disruptedPods"] = disrupted
    return documents.set_status(document, fields, [_condition(allowed)], now)


def next_timeout(disrupted: Mapping[str, str]) -> float | None:
    """When the first granted eviction times out, seconds since 1970; None if there is none."""
    granted = [at for text in disrupted.values() if (at := times.seconds_or(text, 0.0))]
    return min(granted) + DELETION_TIMEOUT_S if granted else None


def _still_disrupted(disrupted: Mapping[str, str], pods: Sequence[PodView], now: float) -> dict[str, str]:
    alive = {pod.name for pod in pods if not pod.deleting}
    return {
        name: at
        for name, at in disrupted.items()
        if name in alive and times.seconds_or(at, 0.0) + DELETION_TIMEOUT_S > now
    }


def _condition(allowed: int) -> Document:
    return {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
