"""What counts in a score of resources: how much of them a node has, what is taken, and what the pod adds.

Shared by NodeResourcesFit and NodeResourcesBalancedAllocation.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from podyard.framework.pod_info import PodInfo
from podyard.objects import pod_requests
from podyard.plugins.node_resources_fit.args import ResourceSpec
from podyard.proto.placement import Usage

ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")
"""Resources that count also for pods that request none of them."""


class Counted(NamedTuple):
    """A resource that counts in this pod's score: its weight, and what the pod adds."""

    resource: str
    weight: int
    amount: int


def assumed(resources: Iterable[ResourceSpec], usage: Usage) -> tuple[Counted, ...]:
    """The resources that count for this pod, cpu and memory as assumed where a container requests none."""
    amounts = dict(usage.requests)
    amounts["cpu"], amounts["memory"] = usage.nonzero_cpu_milli, usage.nonzero_memory_bytes
    return requested(resources, amounts)


def requested(resources: Iterable[ResourceSpec], amounts: Mapping[str, int]) -> tuple[Counted, ...]:
    """The resources that count for a pod with these amounts; others than the native ones only if it requests
    them."""
    found: list[Counted] = []
    for spec in resources:
        amount = amounts.get(spec.name, 0)
        if pod_requests.is_counted(spec.name) and (amount != 0 or spec.name in ALWAYS_COUNTED):
            found.append(Counted(spec.name, spec.weight, amount))
    return tuple(found)


def containers_only(pod: PodInfo) -> Usage:
    """What the pod takes without its requests as a whole.

    The score of NodeResourcesFit ignores them for the incoming pod, though Filter counts them; a quirk of
    v1.36.2 that the conformance data shows (`pod-level-resources-fit-score`).
    """
    spec = pod.pod.spec
    if spec.resources is None:
        return pod.usage
    return pod_requests.usage(msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(spec, resources=None)))
