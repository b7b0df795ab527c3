"""The workloads that are compared, and how many times the reference's rate Podyard is to reach. Pure.

The files are those of kube-scheduler's benchmark (test/integration/scheduler_perf, v1.36.2).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Row(NamedTuple):
    """One workload."""

    name: str
    """As people say it, and of its result files."""
    folder: str
    """Of the benchmark, which has the configuration."""
    case: str
    workload: str
    goal: float
    """Pods a second of Podyard, as a multiple of the reference's; 0: the file itself paces the pods, so that
    CPU is compared."""
    more: Mapping[str, int] = NOTHING
    """Parameters with which both sides run it, so that Podyard's run lasts 5 s where the cluster has room."""
    churns: bool = False
    """Other objects change by the clock meanwhile: Podyard's run gets as many changes a pod as the
    reference's."""

    @property
    def full_name(self) -> str:
        """As the benchmark names it."""
        return f"{self.case}/{self.workload}"


HINTS: Final = "QueueingHintsEnabled"
CPU_GOAL: Final = 10.0
"""Where the file paces the pods: the reference's CPU a pod, as a multiple of Podyard's."""
TIME_GOAL: Final = 10.0
"""The reference's time of an attempt, and from an event to the last binding, as a multiple of Podyard's."""
MEMORY_GOAL: Final = 0.65
"""Podyard's memory, as a share of the reference's."""

ROWS: Final = (
    Row("basic", "misc", "SchedulingBasic", f"5000Nodes_10000Pods_{HINTS}", 18, {"measurePods": 30_000}),
    Row("anti-affinity", "affinity", "SchedulingPodAntiAffinity", f"5000Nodes_2000Pods_{HINTS}", 15),
    Row(
        "spreading",
        "topology_spreading",
        "TopologySpreading",
        f"5000Nodes_5000Pods_{HINTS}",
        15,
        {"measurePods": 20_000},
    ),
    Row(
        "preferred-spreading",
        "topology_spreading",
        "PreferredTopologySpreading",
        f"5000Nodes_5000Pods_{HINTS}",
        15,
        {"measurePods": 25_000},
    ),
    Row(
        "default-spreading",
        "topology_spreading",
        "DefaultTopologySpreading",
        "5000Nodes_10000Pods",
        15,
        {"measurePods": 20_000},
    ),
    Row(
        "unschedulable",
        "misc",
        "Unschedulable",
        f"5kNodes/100Init/10kPods_{HINTS}",
        12,
        {"measurePods": 30_000},
        churns=True,
    ),
    Row(
        "preemption",
        "misc",
        "PreemptionAsync",
        "5000Nodes_AsyncPreemptionEnabled",
        10,
        {"measurePods": 15_000},
        churns=True,
    ),
    Row(
        "mixed-churn",
        "misc",
        "SchedulingWithMixedChurn",
        f"5000Nodes_10000Pods_{HINTS}",
        10,
        {"measurePods": 25_000},
        churns=True,
    ),
    Row(
        "affinity",
        "affinity",
        "SchedulingPodAffinity",
        f"5000Nodes_5000Pods_{HINTS}",
        40,
        {"measurePods": 12_000},
    ),
    Row(
        "namespace-anti-affinity",
        "affinity",
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        f"5000Nodes_2000Pods_{HINTS}",
        40,
    ),
    Row("pod-delete", "event_handling", "EventHandlingPodDelete", "50Nodes_500Pods", 0),
    Row("pod-update", "event_handling", "EventHandlingPodUpdate", "1Node_1000Pods", 0),
    Row("node-add", "event_handling", "EventHandlingNodeAdd", "100Nodes_1000Pods", 0),
    Row("pod-add", "event_handling", "EventHandlingPodAdd", "1000Pods", 0),
    Row("node-update", "event_handling", "EventHandlingNodeUpdate", "100Nodes_1000Pods", 0),
)
SMALL: Final = (
    Row("small-basic", "misc", "SchedulingBasic", "500Nodes", 18),
    Row("small-anti-affinity", "affinity", "SchedulingPodAntiAffinity", "500Nodes", 15),
    Row("small-spreading", "topology_spreading", "TopologySpreading", "500Nodes", 15),
    Row("small-churn", "misc", "SchedulingWithMixedChurn", "1000Nodes", 10, churns=True),
    Row("small-pod-add", "event_handling", "EventHandlingPodAdd", "10Pods", 0),
)
"""To see that all works: half a minute each. Too short for their figures to say much."""


class UnknownRowError(ValueError):
    """There is no such row; the text says which there are."""


def chosen(names: Sequence[str]) -> tuple[Row, ...]:
    """Rows by name, in the order of the table; none named: all of `ROWS`.

    :raises UnknownRowError: for a name that is none
    """
    every = (*ROWS, *SMALL)
    unknown = [name for name in names if name not in {row.name for row in every}]
    if unknown:
        raise UnknownRowError(f"no row is named {', '.join(unknown)}; there are {', '.join(row.name for row in every)}")
    return tuple(row for row in every if row.name in names) if names else ROWS
