"""What node agents say that their nodes use: the source KubernetesMetrics.

Source: pkg/descheduler/metricscollector (v0.36.0), with agents in the place of metrics.k8s.io, and without
its smoothing.
"""

from collections.abc import Mapping
from typing import Final

from podyard.cluster.keys import NamespacedName
from podyard.cluster.usages import LASTS_S, Heard
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.measured import ContainerUsage, KubernetesMetrics
from podyard.objects import quantity
from podyard.proto.signals import USAGE_PERIOD_S, PodUsage

HEARD_WITHIN_S: Final = USAGE_PERIOD_S + 5.0
"""After so long every node has been heard that has an agent."""
_IDLE: Final = (ContainerUsage("", {"cpu": 0, "memory": 0}),)


def metrics(heard: Mapping[str, Heard], view: ClusterView, now: float) -> KubernetesMetrics:
    """What is known of the nodes of a view, and of the pods on those; a pod that its agent does not name uses
    nothing."""
    fresh = {name: heard[name].usage for name in view.nodes if name in heard and now - heard[name].at <= LASTS_S}
    named: dict[NamespacedName, tuple[ContainerUsage, ...]] = {
        (one.namespace, one.name): _of_pod(one) for usage in fresh.values() for one in usage.pods
    }
    pods = {
        pod.key: named.get(pod.key, _IDLE) for name in fresh for pod in (one.pod for one in view.pods_on(name).values())
    }
    nodes = {
        name: {"cpu": usage.cpu_nanocores, "memory": usage.memory_bytes * quantity.NANO}
        for name, usage in fresh.items()
    }
    lacking = len(view.nodes) - len(fresh)
    told = f"usage of {lacking} of {len(view.nodes)} nodes was not told within {LASTS_S:g} s" if lacking else ""
    return KubernetesMetrics(nodes, pods, told)


def _of_pod(pod: PodUsage) -> tuple[ContainerUsage, ...]:
    return (ContainerUsage("", {"cpu": pod.in_all("cpu"), "memory": pod.in_all("memory") * quantity.NANO}),)
