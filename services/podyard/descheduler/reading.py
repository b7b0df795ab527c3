"""From a listing of the cluster to the state of a cycle."""

from typing import Final

from podyard.cluster.view import ClusterView
from podyard.descheduler.core.state import CycleState

BUDGETS: Final = "poddisruptionbudgets"
CLAIMS: Final = "persistentvolumeclaims"
NAMESPACES: Final = "namespaces"
PRIORITY_CLASSES: Final = "priorityclasses"


def state_of(view: ClusterView) -> CycleState:
    """All nodes and pods of a view, joined with what their agents say."""
    return CycleState(
        nodes=[one.node for one in view.nodes.values()],
        pods=[one.pod for one in view.pods.values()],
        namespaces={name: one for (_, name), one in view.objects(NAMESPACES).items()},
        budgets=view.objects(BUDGETS).values(),
        claims=view.objects(CLAIMS),
        priority_classes={name: one for (_, name), one in view.objects(PRIORITY_CLASSES).items()},
    )
