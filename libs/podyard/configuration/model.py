"""A configuration that has been read, and what can be had of it."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from podyard.configuration import building, decoding, defaulting, extenders, unused, validation
from podyard.configuration.errors import BuildError, InvalidConfiguration
from podyard.configuration.leases import GivenLease
from podyard.configuration.unused import Unused
from podyard.configuration.wire import API_VERSION, KIND, Extender, KubeSchedulerConfiguration, LeaderElection
from podyard.configuration.wire import Profile as ProfileConfiguration
from podyard.configuration.wire_args import Args
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import Profile, ProfileError
from podyard.objects.documents import strip_nulls
from podyard.plugins import class_paths, loading, profiles, registry
from podyard.plugins.class_paths import PluginLoadError
from podyard.plugins.in_tree import IN_TREE
from podyard.plugins.profiles import Made
from podyard.plugins.registry import Entry

_TYPE_KEYS: Final = ("apiVersion", "kind")


class Configuration:
    """A KubeSchedulerConfiguration: decoded, defaulted, valid, and one that profiles can be made of."""

    def __init__(self, built: building.Built, entries: Mapping[str, Entry], given: LeaderElection) -> None:
        """:param given: leader election as the file has it, without defaults"""
        self._built = built
        self._entries = entries
        self._given = given

    @property
    def values(self) -> KubeSchedulerConfiguration:
        """Everything that the file says or leaves to defaults."""
        return self._built.configuration

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """HTTP extenders in calling order: those that may fail come last."""
        return extenders.in_calling_order(self.values.extenders)

    @property
    def lease(self) -> GivenLease:
        """What the file says of leases; those of who leads nothing are not asked for."""
        return GivenLease.of(self._given)

    def unused(self) -> tuple[Unused, ...]:
        """What the file sets to another value than the default, and nothing here reads."""
        return unused.found(self.values)

    def written(self) -> dict[str, Any]:
        """The complete configuration as a file says it."""
        return msgspec.json.decode(msgspec.json.encode(self.values))

    def effective(self) -> dict[str, Any]:
        """Scheduler name -> `plugins` by extension point, in calling order and with the weights used."""
        return building.effective(self._built)

    def profiles(self) -> dict[str, Profile]:
        """Scheduler name -> profile, in the order of the file; each has plugins of its own, made now.

        :raises BuildError: if a plugin refuses its arguments, or two plugins have one name
        """
        found = enumerate(self.values.profiles)
        return {profile.scheduler_name or "": self._profile(f"profiles[{at}]", profile) for at, profile in found}

    def _profile(self, path: str, profile: ProfileConfiguration) -> Profile:
        name = profile.scheduler_name or ""
        args = {config.name: config.args for config in profile.plugin_config}
        needed = building.plugins_needed(profile)
        plugins = {plugin: made(path, self._entries[plugin], args.get(plugin)) for plugin in needed}
        try:
            return profiles.build(name, self._built.expanded[name], plugins)
        except ProfileError as error:
            raise BuildError(*error.faults, field=path) from error


def made(path: str, entry: Entry, args: Any) -> Made:
    """A plugin with the arguments that a profile gives it.

    :param path: of the profile
    :raises BuildError: if it refuses them
    """
    where = f"{path}.pluginConfig of {entry.name}"
    if isinstance(args, Args):
        written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(args))
        args = strip_nulls({key: value for key, value in written.items() if key not in _TYPE_KEYS})
    elif args is not None and entry.args is None and entry.name not in IN_TREE:
        raise BuildError("the plugin takes no arguments; write `def __init__(self, args)` in its class", field=where)
    try:
        return profiles.make(entry, args)
    except ValueError as error:
        raise BuildError(str(error), field=where) from error
    except Exception as error:  # the boundary to foreign code: a constructor may raise anything
        if entry.name in IN_TREE:
            raise
        raise BuildError(f"its constructor failed: {type(error).__name__}: {error}", field=where) from error


def load(text: str, extra: Iterable[type[Plugin] | Plugin] = ()) -> Configuration:
    """The configuration in `text` (YAML or JSON, the first document).

    :param extra: plugins that profiles may name by their `name`: classes, or instances that all profiles
        share
    :raises DecodeError: the text is no configuration
    :raises InvalidConfiguration: values are not allowed; all of them are named
    :raises BuildError: a plugin, profile or extender cannot be made
    """
    decoded = decoding.decode(text)
    found = defaulting.with_defaults(decoded)
    if errors := validation.errors(found):
        raise InvalidConfiguration(errors)
    entries = _entries(found, extra)
    return Configuration(building.build(found, entries), entries, decoded.leader_election)


def _entries(found: KubeSchedulerConfiguration, extra: Iterable[Any]) -> Mapping[str, Entry]:
    """The default plugins, further ones, and those that the profiles name by their path.

    :raises BuildError: with the faults of all plugins that cannot be used
    """
    faults: list[str] = []
    entries: list[Entry] = list(registry.IN_TREE)
    paths = dict.fromkeys(
        name for profile in found.profiles for name in building.plugins_needed(profile) if class_paths.is_path(name)
    )
    makers = [partial(loading.load, path) for path in paths] + [partial(loading.entry_of, one) for one in extra]
    for maker in makers:
        try:
            entries.append(maker())
        except PluginLoadError as error:
            faults += error.faults
    if faults:
        raise BuildError(*faults, field="profiles")
    return registry.by_name(entries)


def default() -> Configuration:
    """What applies without a file."""
    return load(f"apiVersion: {API_VERSION}\nkind: {KIND}\n")
