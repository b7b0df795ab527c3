"""All plugins that come with Podyard, by name.

Source of the names: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/registry.go (NewInTreeRegistry).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from podyard.framework.interfaces import Plugin
from podyard.plugins.default_binder.plugin import DefaultBinder
from podyard.plugins.default_preemption.args import Args as DefaultPreemptionArgs
from podyard.plugins.default_preemption.plugin import DefaultPreemption
from podyard.plugins.dynamic_resources.args import Args as DynamicResourcesArgs
from podyard.plugins.dynamic_resources.plugin import DynamicResources
from podyard.plugins.image_locality.plugin import ImageLocality
from podyard.plugins.inter_pod_affinity.args import Args as InterPodAffinityArgs
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from podyard.plugins.node_affinity.args import Args as NodeAffinityArgs
from podyard.plugins.node_affinity.plugin import NodeAffinity
from podyard.plugins.node_declared_features.plugin import NodeDeclaredFeatures
from podyard.plugins.node_name.plugin import NodeName
from podyard.plugins.node_ports.plugin import NodePorts
from podyard.plugins.node_resources_balanced_allocation.args import Args as BalancedAllocationArgs
from podyard.plugins.node_resources_balanced_allocation.plugin import NodeResourcesBalancedAllocation
from podyard.plugins.node_resources_fit.args import Args as NodeResourcesFitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.node_unschedulable.plugin import NodeUnschedulable
from podyard.plugins.node_volume_limits.plugin import NodeVolumeLimits
from podyard.plugins.pod_topology_spread.args import Args as PodTopologySpreadArgs
from podyard.plugins.pod_topology_spread.plugin import PodTopologySpread
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.plugins.scheduling_gates.plugin import SchedulingGates
from podyard.plugins.taint_toleration.plugin import TaintToleration
from podyard.plugins.volume_binding.args import Args as VolumeBindingArgs
from podyard.plugins.volume_binding.plugin import VolumeBinding
from podyard.plugins.volume_restrictions.plugin import VolumeRestrictions
from podyard.plugins.volume_zone.plugin import VolumeZone


class Entry(msgspec.Struct, frozen=True):
    """A plugin that can be enabled: its name, how it is made, and the type of its arguments (`None`: it has
    none)."""

    name: str
    make: Callable[..., Plugin]
    args: type[Any] | None = None
    points: frozenset[str] | None = None
    """The extension points of a plugin of the user; `None`: `in_tree` says it."""


class DuplicatePluginError(ValueError):
    """Two plugins of one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"two plugins are called {name!r}; names must differ")


IN_TREE: Final = (
    Entry(SchedulingGates.name, SchedulingGates),
    Entry(PrioritySort.name, PrioritySort),
    Entry(NodeUnschedulable.name, NodeUnschedulable),
    Entry(NodeName.name, NodeName),
    Entry(TaintToleration.name, TaintToleration),
    Entry(NodeAffinity.name, NodeAffinity, NodeAffinityArgs),
    Entry(NodePorts.name, NodePorts),
    Entry(NodeResourcesFit.name, NodeResourcesFit, NodeResourcesFitArgs),
    Entry(VolumeRestrictions.name, VolumeRestrictions),
    Entry(NodeVolumeLimits.name, NodeVolumeLimits),
    Entry(VolumeBinding.name, VolumeBinding, VolumeBindingArgs),
    Entry(VolumeZone.name, VolumeZone),
    Entry(PodTopologySpread.name, PodTopologySpread, PodTopologySpreadArgs),
    Entry(InterPodAffinity.name, InterPodAffinity, InterPodAffinityArgs),
    Entry(DynamicResources.name, DynamicResources, DynamicResourcesArgs),
    Entry(NodeDeclaredFeatures.name, NodeDeclaredFeatures),
    Entry(DefaultPreemption.name, DefaultPreemption, DefaultPreemptionArgs),
    Entry(NodeResourcesBalancedAllocation.name, NodeResourcesBalancedAllocation, BalancedAllocationArgs),
    Entry(ImageLocality.name, ImageLocality),
    Entry(DefaultBinder.name, DefaultBinder),
)
"""In the order of the default profile."""


def by_name(entries: Iterable[Entry] = IN_TREE) -> Mapping[str, Entry]:
    """Entries by name.

    :raises DuplicatePluginError: if a name comes twice
    """
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.name in found:
            raise DuplicatePluginError(entry.name)
        found[entry.name] = entry
    return found


def arguments(entry: Entry, args: Any = None) -> Any:
    """What a plugin is made with: `None` if it has no arguments.

    :param args: a plain value as a configuration file has it, or `None` for the defaults
    :raises msgspec.ValidationError: for arguments that it does not have, or of a wrong type or range, with
        their path
    """
    if entry.args is None:
        return None
    return msgspec.convert({} if args is None else args, entry.args)


def create(entry: Entry, args: Any = None) -> Plugin:
    """A plugin with its arguments; see `arguments`.

    :raises msgspec.ValidationError: for arguments that it does not have, or of a wrong type or range, with
        their path
    """
    return made(entry, arguments(entry, args))


def made(entry: Entry, found: Any) -> Plugin:
    """A plugin with what `arguments` found for it."""
    return entry.make() if entry.args is None else entry.make(found)
