"""Feature gates that a workload may name, and what becomes of each here.

Source: kubernetes v1.36.2, pkg/features/kube_features.go, defaultVersionedKubernetesFeatureGates.
"""

from collections.abc import Mapping
from typing import Final

LOCKED: Final = {
    "DynamicResourceAllocation": True,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodAffinity": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "PodSchedulingReadiness": True,
    "SchedulerQueueingHints": True,
    "SidecarContainers": True,
}
"""Gates that 1.36 locks, and which way."""

WITHIN: Final = frozenset(
    ("SchedulerAsyncAPICalls", "SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "OpportunisticBatching")
)
"""Gates that say how kube-scheduler does inside what it does either way: they change nothing here."""

NO_DEVICES: Final = "the scheduler cannot allocate devices (dynamic resource allocation)"
ABSENT: Final = {
    "DRAConsumableCapacity": NO_DEVICES,
    "DRADeviceTaints": NO_DEVICES,
    "DRAExtendedResource": "extended resources that devices provide are not scheduled here",
    "DRAPartitionableDevices": NO_DEVICES,
    "DRAPrioritizedList": NO_DEVICES,
    "GenericWorkload": "groups of pods are not scheduled here",
    "GangScheduling": "groups of pods are not scheduled here",
}
"""Gates that switch on what Podyard has not; off they change nothing."""

ALWAYS: Final = frozenset(("NodeDeclaredFeatures",))
"""Gates that switch on what Podyard always does; off they change nothing here."""


def refusal(*given: Mapping[str, bool]) -> str:
    """Why a workload with these gates (later ones win) cannot be run; "": it can."""
    for gate, value in {name: on for gates in given for name, on in gates.items()}.items():
        if gate in LOCKED:
            if value != LOCKED[gate]:
                locked = str(LOCKED[gate]).lower()
                return f"feature gate {gate}: kube-scheduler 1.36 locks it to {locked}, the workload wants {str(value).lower()}"
        elif gate in ABSENT:
            if value:
                return f"feature gate {gate}: {ABSENT[gate]}"
        elif gate not in WITHIN | ALWAYS:
            return f"feature gate {gate} is not known"
    return ""


def of_no_effect(*given: Mapping[str, bool]) -> list[str]:
    """Names of the gates that change nothing here."""
    wanted = {name: on for gates in given for name, on in gates.items()}
    return sorted(name for name, on in wanted.items() if name in WITHIN or (name in ALWAYS and not on))
