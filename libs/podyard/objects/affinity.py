"""Where a pod wants to be: node selectors, affinity, spreading, tolerations. Source: api/core/v1/types.go."""

from podyard.objects.meta import LabelSelector, View
from podyard.proto.message import Int64


class NodeSelectorRequirement(View, frozen=True, kw_only=True):
    """Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt; the last two take one whole number."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True, kw_only=True):
    """All must hold. An empty term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View, frozen=True, kw_only=True):
    """One of the terms must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(View, frozen=True, kw_only=True):
    """A preference, `weight` 1 to 100."""

    weight: Int64
    preference: NodeSelectorTerm


class NodeAffinity(View, frozen=True, kw_only=True):
    """Which nodes a pod needs, and prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(View, frozen=True, kw_only=True):
    """Pods of these labels and namespaces, in the same domain of `topology_key`."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(View, frozen=True, kw_only=True):
    """A preference, `weight` 1 to 100."""

    weight: Int64
    pod_affinity_term: PodAffinityTerm


class PodAffinity(View, frozen=True, kw_only=True):
    """Which pods a pod needs, or prefers, in its domain."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(View, frozen=True, kw_only=True):
    """Which pods a pod must not, or would rather not, have in its domain."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(View, frozen=True, kw_only=True):
    """All affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(View, frozen=True, kw_only=True):
    """How evenly pods spread over domains. Policies: Honor or Ignore; None means Honor for affinity, Ignore
    for taints."""

    max_skew: Int64
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class Taint(View, frozen=True, kw_only=True):
    """Effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class Toleration(View, frozen=True, kw_only=True):
    """An empty key with operator Exists tolerates everything; an empty effect means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None
