"""The profile that applies without configuration.

Source: kube-scheduler v1.36.2, pkg/scheduler/apis/config/v1/default_plugins.go (getDefaultPlugins): order and weights.
"""

from collections.abc import Mapping
from typing import Any, Final

from podyard.framework.profile import DEFAULT_SCHEDULER, Enabled, Profile, resolve
from podyard.plugins import registry

WEIGHTS: Final = {"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1}
"""Weights of the plugins that score."""


def default_profile(name: str = DEFAULT_SCHEDULER, args: Mapping[str, Any] | None = None) -> Profile:
    """All plugins of the registry, in its order.

    :param args: arguments by plugin name, as plain values; defaults for plugins that are not named
    :raises msgspec.ValidationError: for arguments that a plugin does not have
    """
    given: Mapping[str, Any] = {} if args is None else args
    return resolve(
        name,
        [
            Enabled(plugin=registry.create(entry, given.get(entry.name)), weight=WEIGHTS.get(entry.name, 0))
            for entry in registry.IN_TREE
        ],
    )
