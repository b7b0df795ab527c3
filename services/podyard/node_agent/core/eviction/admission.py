"""Which new pods a node under pressure refuses.

Source: pkg/kubelet/eviction/eviction_manager.go, Admit.
"""

from collections.abc import Collection
from typing import Final

from podyard.node_agent.core.eviction import critical
from podyard.node_agent.core.eviction.signals import MEMORY_PRESSURE
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.pod import Pod

MEMORY_PRESSURE_TAINT: Final = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


def refusal(pod: Pod, conditions: Collection[str]) -> str:
    """Why a node with these pressure conditions does not take `pod`; empty if it does.

    Under memory pressure alone only best-effort pods are refused that do not tolerate its taint; under any
    other all are. Critical pods are always taken.
    """
    if not conditions or critical.is_critical(pod):
        return ""
    if set(conditions) == {MEMORY_PRESSURE} and (
        critical.quality_of_service(pod) != "BestEffort"
        or taints.tolerated(pod.spec.tolerations, MEMORY_PRESSURE_TAINT)
    ):
        return ""
    return f"The node had condition: [{' '.join(sorted(conditions))}]. "
