"""The plugins that exist, by name."""

from typing import Final

from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.plugins.default_evictor import DefaultEvictor
from podyard.descheduler.core.plugins.duplicates import RemoveDuplicates
from podyard.descheduler.core.plugins.failed_pods import RemoveFailedPods
from podyard.descheduler.core.plugins.high_node_utilization import HighNodeUtilization
from podyard.descheduler.core.plugins.inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from podyard.descheduler.core.plugins.low_node_utilization import LowNodeUtilization
from podyard.descheduler.core.plugins.node_affinity import RemovePodsViolatingNodeAffinity
from podyard.descheduler.core.plugins.node_taints import RemovePodsViolatingNodeTaints
from podyard.descheduler.core.plugins.pod_lifetime import PodLifeTime
from podyard.descheduler.core.plugins.too_many_restarts import RemovePodsHavingTooManyRestarts
from podyard.descheduler.core.plugins.topology_spread import RemovePodsViolatingTopologySpreadConstraint

PLUGINS: Final[tuple[type[Plugin], ...]] = (
    DefaultEvictor,
    HighNodeUtilization,
    LowNodeUtilization,
    PodLifeTime,
    RemoveDuplicates,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)


def by_name(plugins: tuple[type[Plugin], ...] = PLUGINS) -> dict[str, type[Plugin]]:
    """The plugins by their name.

    :raises ValueError: if two have the same
    """
    found: dict[str, type[Plugin]] = {}
    for plugin in plugins:
        if plugin.NAME in found:
            raise ValueError(f"two plugins are called {plugin.NAME}: {found[plugin.NAME]!r} and {plugin!r}")
        found[plugin.NAME] = plugin
    return found
