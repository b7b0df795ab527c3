"""The profile that applies without configuration.

Source: kube-scheduler v1.36.2, pkg/scheduler/apis/config/v1/default_plugins.go (getDefaultPlugins): order and
weights.
"""

from collections.abc import Mapping
from typing import Any, Final

from podyard.framework.expansion import Choice, expand
from podyard.framework.profile import Profile
from podyard.plugins import profiles, registry
from podyard.plugins.in_tree import IN_TREE
from podyard.proto.message import DEFAULT_SCHEDULER

WEIGHTS: Final = {name: plugin.weight for name, plugin in IN_TREE.items() if plugin.weight is not None}
"""Weights of the plugins that score."""


def default_profile(name: str = DEFAULT_SCHEDULER, args: Mapping[str, Any] | None = None) -> Profile:
    """All default plugins in the reference's order, at the points and with the weights that it gives them.

    :param args: arguments by plugin name, as plain values; defaults for plugins that are not named
    :raises msgspec.ValidationError: for arguments that a plugin does not have
    """
    given: Mapping[str, Any] = {} if args is None else args
    entries = registry.by_name()
    plugins = {plugin: profiles.make(entry, given.get(plugin)) for plugin, entry in entries.items()}
    everywhere = [Choice(plugin, IN_TREE[plugin].weight or 0) for plugin in IN_TREE]
    expanded = expand(everywhere, {}, lambda plugin: profiles.points_of(entries, plugin))
    return profiles.build(name, expanded, plugins)
