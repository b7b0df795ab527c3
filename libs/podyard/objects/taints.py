"""Which taints a pod tolerates. Source: api/core/v1/toleration.go,
component-helpers/scheduling/corev1/helpers.go.

The operators Gt and Lt are behind TaintTolerationComparisonOperators, off by default in v1.36: they tolerate
nothing.
"""

from collections.abc import Collection, Iterable
from typing import Final

from podyard.objects.affinity import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
"""All effects, in the order in which Kubernetes lists them."""

HARD_EFFECTS: Final = frozenset((NO_SCHEDULE, NO_EXECUTE))
"""Effects that keep a pod off a node."""

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
"""Key of the taint that stands for `spec.unschedulable`."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration tolerates one taint. Source: Toleration.ToleratesTaint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def all_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str] = HARD_EFFECTS
) -> list[Taint]:
    """All taints with one of `effects` that no toleration tolerates, in order."""
    return [taint for taint in taints if taint.effect in effects and not tolerated(tolerations, taint)]


def spelled(taint: Taint) -> str:
    """`key=value:Effect`, as `kubectl taint` takes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str] = HARD_EFFECTS
) -> Taint | None:
    """The first taint with one of `effects` that no toleration tolerates; `None` if there is none.

    Source: FindMatchingUntoleratedTaint.
    """
    for taint in taints:
        if taint.effect in effects and not tolerated(tolerations, taint):
            return taint
    return None
