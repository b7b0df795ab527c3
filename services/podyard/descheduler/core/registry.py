"""The plugins that exist, by name."""

from typing import Final

from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.plugins.default_evictor import DefaultEvictor
from podyard.descheduler.core.plugins.node_taints import RemovePodsViolatingNodeTaints

PLUGINS: Final[tuple[type[Plugin], ...]] = (DefaultEvictor, RemovePodsViolatingNodeTaints)


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
