"""Arguments of the default plugins as they are written; what plugins get are the effective ones
(`plugins/<name>/args.py`).

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go.
"""

from collections.abc import Mapping
from typing import Final

from podyard.configuration.wire import Duration, Int32, Int64, Wire
from podyard.objects.affinity import NodeSelectorTerm, PreferredSchedulingTerm, TopologySpreadConstraint


class Args(Wire, frozen=True, kw_only=True):
    """What all have."""

    api_version: str = ""
    kind: str = ""


class DefaultPreemptionArgs(Args, frozen=True, kw_only=True):
    """See plugins/default_preemption/args.py."""

    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class DynamicResourcesArgs(Args, frozen=True, kw_only=True):
    """See plugins/dynamic_resources/args.py."""

    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None


class InterPodAffinityArgs(Args, frozen=True, kw_only=True):
    """See plugins/inter_pod_affinity/args.py."""

    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: bool


class NodeSelector(Wire, frozen=True, kw_only=True):
    """Nodes by terms, of which one must hold. No list is written as null, an empty one as empty."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None


class NodeAffinity(Wire, frozen=True, kw_only=True):
    """Which nodes pods need, and prefer. Source: api/core/v1/types.go."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class NodeAffinityArgs(Args, frozen=True, kw_only=True):
    """See plugins/node_affinity/args.py."""

    added_affinity: NodeAffinity | None = None


class ResourceSpec(Wire, frozen=True, kw_only=True):
    """A resource that counts in a score; weight 0 means not given."""

    name: str
    weight: Int64 = 0


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, kw_only=True):
    """See plugins/node_resources_balanced_allocation/args.py."""

    resources: tuple[ResourceSpec, ...] = ()


class ShapePoint(Wire, frozen=True, kw_only=True):
    """Source: UtilizationShapePoint."""

    utilization: Int32
    score: Int32


class RequestedToCapacityRatio(Wire, frozen=True, kw_only=True):
    """Source: RequestedToCapacityRatioParam."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Wire, frozen=True, kw_only=True):
    """See plugins/node_resources_fit/args.py."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Args, frozen=True, kw_only=True):
    """See plugins/node_resources_fit/args.py."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


class PodTopologySpreadArgs(Args, frozen=True, kw_only=True):
    """See plugins/pod_topology_spread/args.py."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


class VolumeBindingArgs(Args, frozen=True, kw_only=True):
    """See plugins/volume_binding/args.py. An empty `shape` is another thing than none."""

    bind_timeout_seconds: Int64 | None = None
    shape: tuple[ShapePoint, ...] | None = None


ARGS: Final[Mapping[str, type[Args]]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""By plugin. The kind of the arguments is the plugin's name and `Args`."""
