"""How a pod's status is worded. Sources: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go."""

from functools import lru_cache

from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.core.virtual_pod import Ending, VirtualPod
from podyard.objects.times import rfc3339, rfc3339_micro
from podyard.proto.facts import Condition, PodStatusFact

TERMINATION_BY_KUBELET = "TerminationByKubelet"
"""Reason of the condition DisruptionTarget. Source: api/core/v1, PodReasonTerminationByKubelet."""


def running(pod: VirtualPod, now: float) -> PodStatusFact:
    """All its containers run and are ready."""
    return PodStatusFact(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase="Running",
        conditions=_ready(rfc3339(now)),
        start_time=rfc3339(pod.accepted_at),
        at=rfc3339_micro(now),
    )


def ended(pod: VirtualPod, ending: Ending, now: float) -> PodStatusFact:
    """Nothing of it runs any more."""
    return PodStatusFact(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase=ending.phase,
        reason=ending.reason,
        message=ending.message,
        conditions=_ended(ending, rfc3339(now)),
        start_time=rfc3339(pod.accepted_at),
        ended=True,
        at=rfc3339_micro(now),
    )


@lru_cache(maxsize=8)
def _ready(at: str) -> tuple[Condition, ...]:
    return tuple(
        Condition(type=kind, status="True", last_transition_time=at)
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    )


def _ended(ending: Ending, at: str) -> tuple[Condition, ...]:
    reason = "PodCompleted" if ending.phase == "Succeeded" else "PodFailed"
    found = tuple(
        Condition(type=kind, status="False", reason=reason, last_transition_time=at)
        for kind in ("Ready", "ContainersReady")
    )
    if ending.reason != REASON or not ending.disruption:
        return found
    return (
        *found,
        Condition(
            type="DisruptionTarget",
            status="True",
            reason=TERMINATION_BY_KUBELET,
            message=ending.message,
            last_transition_time=at,
        ),
    )
