"""The default plugins as the reference has them: order, weights, and the extension points that each takes
part in.

Which points a plugin of the reference extends decides where `multiPoint` puts it and where it may be enabled,
whatever methods the class here has: DefaultPreemption's PreEnqueue, for instance, is a gate of the queue.

Sources: kube-scheduler v1.36.2, pkg/scheduler/apis/config/v1/default_plugins.go; each plugin's assertions
`var _ fwk.FilterPlugin`; feature gates at their defaults.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

FILTERING: Final = ("preFilter", "filter")
SCORING: Final = ("preScore", "score")


class InTree(NamedTuple):
    """A default plugin. `weight`: what the default configuration gives it, None for plugins that do not
    score."""

    points: tuple[str, ...]
    weight: int | None = None


IN_TREE: Final[Mapping[str, InTree]] = {
    "SchedulingGates": InTree(("preEnqueue",)),
    "PrioritySort": InTree(("queueSort",)),
    "NodeUnschedulable": InTree(("filter",)),
    "NodeName": InTree(("filter",)),
    "TaintToleration": InTree(("filter", *SCORING), 3),
    "NodeAffinity": InTree((*FILTERING, *SCORING), 2),
    "NodePorts": InTree(FILTERING),
    "NodeResourcesFit": InTree((*FILTERING, *SCORING), 1),
    "VolumeRestrictions": InTree(FILTERING),
    "NodeVolumeLimits": InTree(FILTERING),
    "VolumeBinding": InTree((*FILTERING, "reserve", "preBind", *SCORING)),
    "VolumeZone": InTree(FILTERING),
    "PodTopologySpread": InTree((*FILTERING, *SCORING), 2),
    "InterPodAffinity": InTree((*FILTERING, *SCORING), 2),
    "DynamicResources": InTree(("preEnqueue", *FILTERING, "postFilter", "score", "reserve", "preBind"), 2),
    "DefaultPreemption": InTree(("preEnqueue", "postFilter")),
    "NodeResourcesBalancedAllocation": InTree(SCORING, 1),
    "ImageLocality": InTree(("score",), 1),
    "DefaultBinder": InTree(("bind",)),
    "NodeDeclaredFeatures": InTree(FILTERING),
}
"""By name, in the order of the default profile."""
