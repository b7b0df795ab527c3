"""A pod's priority, and the priority classes that exist without being created.

Sources: component-helpers/scheduling/corev1/helpers.go (PodPriority), pkg/apis/scheduling/types.go and
helpers.go.
"""

from typing import Final

from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import Pod
from podyard.objects.scheduling import PriorityClass

DEFAULT_PRIORITY: Final = 0
"""Priority of a pod without one, where no class is the global default."""
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""No class that people make may be above it."""
SYSTEM_CRITICAL_PRIORITY: Final = 2 * HIGHEST_USER_PRIORITY
"""From here on a pod is critical to the system."""
SYSTEM_PREFIX: Final = "system-"
"""No class that people make may be called so."""
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
PREEMPT_NEVER: Final = "Never"

SYSTEM_CLASSES: Final[dict[str, PriorityClass]] = {
    "system-node-critical": PriorityClass(
        metadata=ObjectMeta(name="system-node-critical"),
        value=SYSTEM_CRITICAL_PRIORITY + 1000,
        description="Used for system critical pods that must not be moved from their current node.",
        preemption_policy=PREEMPT_LOWER_PRIORITY,
    ),
    "system-cluster-critical": PriorityClass(
        metadata=ObjectMeta(name="system-cluster-critical"),
        value=SYSTEM_CRITICAL_PRIORITY,
        description="Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        preemption_policy=PREEMPT_LOWER_PRIORITY,
    ),
}
"""The two classes that every cluster has."""


def pod_priority(pod: Pod) -> int:
    """The pod's priority; 0 if it has none."""
    return pod.spec.priority or DEFAULT_PRIORITY


def is_critical(pod: Pod) -> bool:
    """Whether the pod's priority is a system one. Source: pkg/kubelet/types/pod_update.go,
    IsCriticalPodBasedOnPriority."""
    return pod_priority(pod) >= SYSTEM_CRITICAL_PRIORITY
