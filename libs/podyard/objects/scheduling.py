"""Priority classes (`scheduling.k8s.io/v1`). Source: api/scheduling/v1/types.go."""

from podyard.objects.meta import ObjectMeta, View
from podyard.proto.message import Int64

_NO_META = ObjectMeta()


class PriorityClass(View, frozen=True, kw_only=True):
    """A named priority. `global_default`: for pods that name no class; `preemption_policy` None is
    PreemptLowerPriority."""

    metadata: ObjectMeta = _NO_META
    value: Int64 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
