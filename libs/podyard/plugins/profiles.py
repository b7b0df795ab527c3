"""From plugins and what a profile says of them to the profile that is run."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from podyard.framework.expansion import Expanded
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import FIELDS, PROTOCOLS, Profile, assemble
from podyard.plugins import registry
from podyard.plugins.in_tree import IN_TREE
from podyard.plugins.registry import Entry


def methods_of(plugin: Plugin) -> frozenset[str]:
    """The extension points that a plugin has the methods of, as configuration files call them."""
    return frozenset(point for point, field in FIELDS.items() if isinstance(plugin, PROTOCOLS[field]))


class Made(NamedTuple):
    """A plugin and the arguments it was made with."""

    plugin: Plugin
    arguments: Any = None


def make(entry: Entry, args: Any = None) -> Made:
    """A plugin with its arguments, given as plain values.

    :raises msgspec.ValidationError: for arguments that it does not have
    """
    found = registry.arguments(entry, args)
    return Made(registry.made(entry, found), found)


def points_of(entries: Mapping[str, Entry], name: str) -> frozenset[str] | None:
    """The points that a plugin extends: a default one those of the reference, another one those that it has
    methods of.

    `None` if there is no such plugin.
    """
    if name in IN_TREE:
        return frozenset(IN_TREE[name].points)
    return entries[name].points if name in entries else None


def build(name: str, expanded: Expanded, plugins: Mapping[str, Made]) -> Profile:
    """The profile `name`. Points at which a default plugin has nothing to do here are left out.

    :param plugins: by the name that the configuration calls them, in the order to list them
    :raises ProfileError: two plugins of one name, or not exactly one QueueSort
    """
    points = {
        point: [plugins[plugin].plugin for plugin in names if point in methods_of(plugins[plugin].plugin)]
        for point, names in expanded.points.items()
    }
    return assemble(
        name,
        [made.plugin for made in plugins.values()],
        points,
        weights={plugins[plugin].plugin.name: weight for plugin, weight in expanded.weights.items()},
        arguments={made.plugin.name: made.arguments for made in plugins.values()},
    )
