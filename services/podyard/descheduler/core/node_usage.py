"""What node agents say that their nodes use: the source KubernetesMetrics.

Source: pkg/descheduler/metricscollector (v0.36.0), with agents in the place of metrics.k8s.io, and without
its smoothing.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from podyard.cluster.keys import NamespacedName
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.measured import ContainerUsage, KubernetesMetrics
from podyard.memory.kept import Kept
from podyard.objects import quantity
from podyard.proto.signals import USAGE_PERIOD_S, NodeUsage, PodUsage

HEARD_WITHIN_S: Final = USAGE_PERIOD_S + 5.0
"""After so long every node has been heard that has an agent."""
LASTS_S: Final = 3 * USAGE_PERIOD_S
"""What was heard longer ago is too old to go by."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of what was heard, as it came: 50,000 pods at 300 bytes are 15 MiB."""

_IDLE: Final = (ContainerUsage("", {"cpu": 0, "memory": 0}),)


class Heard(NamedTuple):
    """What a node's agent said last, and when that came, UTC seconds."""

    usage: NodeUsage
    at: float


class Usages:
    """What was heard last of each node, as much as fits."""

    def __init__(self) -> None:
        self._heard = Kept[str, Heard](MOST_BYTES)

    def hear(self, usage: NodeUsage, size: int, now: float) -> None:
        """:param size: bytes, as it came"""
        self._heard.keep(usage.node, Heard(usage, now), size)

    def heard(self) -> dict[str, Heard]:
        """By node."""
        found = ((node, self._heard.get(node)) for node in self._heard)
        return {node: heard for node, heard in found if heard is not None}


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
