"""Disruption budgets (`policy/v1`). Source: api/policy/v1/types.go."""

from podyard.objects.meta import Condition, LabelSelector, ObjectMeta, View
from podyard.proto.message import Int64

_NO_META = ObjectMeta()


class PodDisruptionBudgetSpec(View, frozen=True, kw_only=True):
    """How many pods must stay, or may be missing: one of the two, a number or a percentage such as `50%`.

    An empty selector matches every pod of the namespace to the eviction API, an absent one none.
    `unhealthy_pod_eviction_policy` None means IfHealthyBudget.
    """

    min_available: Int64 | str | None = None
    max_unavailable: Int64 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View, frozen=True, kw_only=True):
    """How many more may go. `disrupted_pods`: pod name to the time (RFC 3339) its eviction was granted."""

    observed_generation: Int64 = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: Int64 = 0
    current_healthy: Int64 = 0
    desired_healthy: Int64 = 0
    expected_pods: Int64 = 0
    conditions: tuple[Condition, ...] = ()


_NO_SPEC = PodDisruptionBudgetSpec()
_NO_STATUS = PodDisruptionBudgetStatus()


class PodDisruptionBudget(View, frozen=True, kw_only=True):
    """How far pods may be disturbed on purpose."""

    metadata: ObjectMeta = _NO_META
    spec: PodDisruptionBudgetSpec = _NO_SPEC
    status: PodDisruptionBudgetStatus = _NO_STATUS
