"""Which pods of a node go so that a critical one finds room there.

As few as can be of the guaranteed, then of the burstable, then of the best-effort ones: in each class those
first that come closest to what is still missing (docs/rules.md, critical-pods-have-others-go).

Source: kubernetes v1.36.2, pkg/kubelet/preemption/preemption.go.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.node_agent.core.eviction import critical
from podyard.node_agent.core.virtual_pod import VirtualPod
from podyard.objects import pod_requests
from podyard.proto.operations import Reason

REASON: Final = Reason("Preempting")
"""Of the victim's status and event. Source: pkg/kubelet/events/event.go, PreemptContainer."""
MESSAGE: Final = "Preempted in order to admit critical pod"
DISRUPTION: Final = "Pod was preempted by Kubelet to accommodate a critical pod."
"""Of the victim's condition DisruptionTarget."""


class Shortage(NamedTuple):
    """A resource of which a node has too little for a pod; cpu in milli-CPU, all else in bytes or pieces."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """How much more has to be free."""
        return self.requested - (self.capacity - self.used)


class PreemptionError(Exception):
    """There are not enough pods that may go."""


_Missing = dict[str, int]
"""Amounts above 0 by resource."""


def victims(pod: VirtualPod, others: Sequence[VirtualPod], short: Sequence[Shortage]) -> tuple[VirtualPod, ...]:
    """The pods that go for `pod`; none if nothing is short.

    :raises PreemptionError: if all that may go would not be enough
    """
    missing = {one.resource: one.missing for one in short}
    may_go = [other for other in others if _preemptable(pod, other)]
    classes = {name: [other for other in may_go if critical.quality_of_service(other.pod) == name] for name in _CLASSES}
    left = _without(missing, may_go)
    if left:
        raise PreemptionError(f"preemption: error finding a set of pods to preempt: {_nobody(left)}")
    best_effort, burstable, guaranteed = (classes[name] for name in _CLASSES)
    from_guaranteed = _closest(guaranteed, _without(missing, [*best_effort, *burstable]))
    from_burstable = _closest(burstable, _without(missing, [*best_effort, *from_guaranteed]))
    from_best_effort = _closest(best_effort, _without(missing, [*from_burstable, *from_guaranteed]))
    return (*from_best_effort, *from_burstable, *from_guaranteed)


_CLASSES: Final = ("BestEffort", "Burstable", "Guaranteed")


def _preemptable(preemptor: VirtualPod, other: VirtualPod) -> bool:
    """Source: pkg/kubelet/types/pod_update.go."""
    if not critical.is_critical(other.pod):
        return True
    mine, its = preemptor.pod.spec.priority, other.pod.spec.priority
    return mine is not None and its is not None and mine > its


def _closest(pods: Sequence[VirtualPod], missing: _Missing) -> list[VirtualPod]:
    """Pods until nothing is missing, that one first which leaves least; of equals the smaller, then the
    last."""
    left, found = list(pods), list[VirtualPod]()
    while missing:
        best = min(range(len(left)), key=lambda at: (_distance(left[at], missing), _size(left[at]), -at))
        missing = _without(missing, [left[best]])
        found.append(left[best])
        left[best] = left[-1]
        left.pop()
    return found


def _distance(pod: VirtualPod, missing: _Missing) -> float:
    """How much of each resource would still be missing, squared: all resources weigh alike."""
    return sum((max(amount - _request(pod, resource), 0) / amount) ** 2 for resource, amount in missing.items())


def _size(pod: VirtualPod) -> tuple[int, int]:
    return _request(pod, pod_requests.MEMORY), _request(pod, pod_requests.CPU)


def _without(missing: _Missing, pods: Sequence[VirtualPod]) -> _Missing:
    """What is missing still when these are gone."""
    left = {resource: amount - sum(_request(pod, resource) for pod in pods) for resource, amount in missing.items()}
    return {resource: amount for resource, amount in left.items() if amount > 0}


def _request(pod: VirtualPod, resource: str) -> int:
    return 1 if resource == pod_requests.PODS else pod.usage.requests.get(resource, 0)


def _nobody(left: _Missing) -> str:
    listed = "".join(f"(res: {resource}, q: {amount}), " for resource, amount in left.items())
    return f"no set of running pods found to reclaim resources: [{listed}]"
