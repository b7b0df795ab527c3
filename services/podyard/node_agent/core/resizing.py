"""A bound pod whose creator changes what its containers ask for.

The node judges the new amounts as it judges a new pod. If it takes them the containers have them at once; if
not the resize is deferred: the pod goes on with what it has, and asks again whenever room may have come free
(docs/rules.md, deferred-resize-keeps-what-it-has).

Sources: kubernetes v1.36.2, pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize,
sortPendingResizes), pkg/kubelet/events/resize.go.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from podyard.node_agent.core.eviction import critical
from podyard.objects.containers import Container, ResourceRequirements
from podyard.objects.pod import Pod
from podyard.objects.priority import pod_priority
from podyard.proto.facts import ContainerFact, ContainerResources
from podyard.proto.operations import Reason

STARTED: Final = Reason("ResizeStarted")
COMPLETED: Final = Reason("ResizeCompleted")
DEFERRED: Final = Reason("ResizeDeferred")
"""Reasons of the pod's events. Source: pkg/kubelet/events/event.go."""

MOST_MESSAGE: Final = 1024
"""Characters of an event's message: as many as Kubernetes keeps. Source: NoteLengthLimit."""

PENDING: Final = "PodResizePending"
"""Condition of a pod whose resize waits; its reason is `Deferred`."""


class Pending(NamedTuple):
    """A resize that waits for room."""

    why: str
    since: float
    """UTC seconds."""


def wanted(allocated: Pod, pod: Pod) -> bool:
    """Whether the pod asks for something else than it has."""
    return _resources(allocated) != _resources(pod)


def turn(allocated: Pod, pod: Pod, pending: Pending) -> tuple[int, int, float]:
    """Whose resize is tried first: the more important, the better class, who waits longer.

    Those that ask for no more than they have never wait.
    """
    order = ("Guaranteed", "Burstable", "BestEffort")
    return -pod_priority(pod), order.index(critical.quality_of_service(allocated)), pending.since


def message(what: str, pod: Pod, why: str = "") -> str:
    """Of an event, as the kubelet words it."""
    summary: dict[str, Any] = {}
    for key, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        if containers:
            summary[key] = [{"name": one.name, "resources": _summary(one.resources)} for one in containers]
    summary["generation"] = pod.metadata.generation
    if why:
        summary["error"] = why
    return f"Pod resize {what}: {msgspec.json.encode(summary).decode()}"[:MOST_MESSAGE]


def told(container: Container) -> ContainerResources:
    """What a container has, for the pod's status."""
    return ContainerResources(requests=container.resources.requests, limits=container.resources.limits)


def restored(pod: Pod, said: Iterable[ContainerFact]) -> Pod:
    """The pod with what its containers have, as an agent before this one said; of others what it asks for."""
    has = {one.name: one.resources for one in said if one.resources is not None}
    if not has:
        return pod
    spec = msgspec.structs.replace(
        pod.spec,
        containers=_with(pod.spec.containers, has),
        init_containers=_with(pod.spec.init_containers, has),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _with(containers: tuple[Container, ...], has: dict[str, ContainerResources]) -> tuple[Container, ...]:
    return tuple(
        one
        if (found := has.get(one.name)) is None
        else msgspec.structs.replace(
            one,
            resources=ResourceRequirements(requests=found.requests, limits=found.limits, claims=one.resources.claims),
        )
        for one in containers
    )


def _resources(pod: Pod) -> tuple[Any, ...]:
    spec = pod.spec
    of_containers = [one.resources for one in (*spec.init_containers, *spec.containers)]
    return (*of_containers, spec.resources)


def _summary(resources: ResourceRequirements) -> dict[str, Any]:
    return {name: found for name in ("limits", "requests") if (found := getattr(resources, name))}
