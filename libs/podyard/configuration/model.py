"""A configuration that has been read, and what can be had of it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podyard.configuration import building, decoding, defaulting, extenders, validation
from podyard.configuration.errors import BuildError, InvalidConfiguration
from podyard.configuration.wire import API_VERSION, KIND, Extender, KubeSchedulerConfiguration, PluginConfig
from podyard.configuration.wire import Profile as ProfileConfiguration
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import Profile, ProfileError
from podyard.plugins import profiles, registry
from podyard.plugins.registry import Entry

_TYPE_KEYS = ("apiVersion", "kind")


class Configuration:
    """A KubeSchedulerConfiguration: decoded, defaulted, valid, and one that profiles can be made of."""

    def __init__(self, built: building.Built) -> None:
        self._built = built

    @property
    def values(self) -> KubeSchedulerConfiguration:
        """Everything that the file says or leaves to defaults."""
        return self._built.configuration

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """HTTP extenders in calling order: those that may fail come last."""
        return extenders.in_calling_order(self.values.extenders)

    def written(self) -> dict[str, Any]:
        """The complete configuration as a file says it."""
        return msgspec.json.decode(msgspec.json.encode(self.values))

    def effective(self) -> dict[str, Any]:
        """Scheduler name -> `plugins` by extension point, in calling order and with the weights used."""
        return building.effective(self._built)

    def profiles(self) -> dict[str, Profile]:
        """Scheduler name -> profile, with plugins of its own.

        :raises BuildError: if a plugin refuses its arguments, or two plugins have one name
        """
        return {profile.scheduler_name or "": self._profile(profile) for profile in self.values.profiles}

    def _profile(self, profile: ProfileConfiguration) -> Profile:
        name = profile.scheduler_name or ""
        configs = {config.name: config for config in profile.plugin_config}
        known = registry.by_name()
        plugins = {
            plugin: _create(name, known[plugin], configs.get(plugin))
            for plugin in building.plugins_needed(profile)
            if plugin in known
        }
        try:
            return profiles.build(name, self._built.expanded[name], plugins)
        except ProfileError as error:
            raise BuildError(*error.faults, field=f"profile {name}") from error


def _create(profile: str, entry: Entry, config: PluginConfig | None) -> Plugin:
    args = msgspec.to_builtins(config.args) if config is not None and entry.args is not None else {}
    try:
        return registry.create(entry, {key: value for key, value in args.items() if key not in _TYPE_KEYS})
    except ValueError as error:
        raise BuildError(f"{entry.name}: {error}", field=f"pluginConfig of profile {profile}") from error


def load(text: str) -> Configuration:
    """The configuration in `text` (YAML or JSON, the first document).

    :raises DecodeError: the text is no configuration
    :raises InvalidConfiguration: values are not allowed; all of them are named
    :raises BuildError: a plugin, profile or extender cannot be made
    """
    found = defaulting.with_defaults(decoding.decode(text))
    if errors := validation.errors(found):
        raise InvalidConfiguration(errors)
    custom: Mapping[str, frozenset[str]] = {}
    return Configuration(building.build(found, custom))


def default() -> Configuration:
    """What applies without a file."""
    return load(f"apiVersion: {API_VERSION}\nkind: {KIND}\n")
