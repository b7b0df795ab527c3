"""From plugins and what a profile says of them to the profile that is run."""

from collections.abc import Mapping

from podyard.framework.expansion import Expanded
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import FIELDS, PROTOCOLS, Profile, assemble
from podyard.plugins.in_tree import IN_TREE


def methods_of(plugin: Plugin) -> frozenset[str]:
    """The extension points that a plugin has the methods of, as configuration files call them."""
    return frozenset(point for point, field in FIELDS.items() if isinstance(plugin, PROTOCOLS[field]))


def points_of(plugins: Mapping[str, Plugin], name: str) -> frozenset[str] | None:
    """The points that a plugin extends: a default one those of the reference, another one those that it has methods of.

    `None` if there is no such plugin.
    """
    if name in IN_TREE:
        return frozenset(IN_TREE[name].points)
    return methods_of(plugins[name]) if name in plugins else None


def build(name: str, expanded: Expanded, plugins: Mapping[str, Plugin]) -> Profile:
    """The profile `name`. Points at which a default plugin has nothing to do here are left out.

    :param plugins: by the name that the configuration calls them, in the order to list them; what `expanded` names beyond is left out
    :raises ProfileError: two plugins of one name, or not exactly one QueueSort
    """
    points = {
        point: [plugins[plugin] for plugin in names if plugin in plugins and point in methods_of(plugins[plugin])]
        for point, names in expanded.points.items()
    }
    weights = {plugins[plugin].name: weight for plugin, weight in expanded.weights.items() if plugin in plugins}
    return assemble(name, plugins.values(), points, weights)
