"""All that is wrong with a configuration, for its author: the reference stops at the first stage that finds
something, and at the first plugin of which no profile can be made."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Final

from podyard.configuration import building, decoding, defaulting, extenders, model, validation
from podyard.configuration.errors import BuildError, ConfigurationError, Fault
from podyard.configuration.wire import KubeSchedulerConfiguration, Profile
from podyard.plugins import class_paths, loading, registry
from podyard.plugins.class_paths import PluginLoadError
from podyard.plugins.in_tree import IN_TREE
from podyard.plugins.registry import Entry

_ENABLED: Final = ".enabled["
"""In the field of a value that names a plugin."""


def faults(text: str) -> tuple[Fault, ...]:
    """What is wrong at any stage, each once, stage by stage. Empty: it can be used.

    What cannot be read at all ends the search; an unknown field does not: it is left out. Plugins of the form
    `package.module:Class` are imported.
    """
    try:
        decoded, strict = decoding.read(text)
    except ConfigurationError as error:
        return error.faults
    found = defaulting.with_defaults(decoded)
    invalid = validation.errors(found)
    entries, unloaded = _entries(found)
    refused = {one.bad_value for one in invalid if _ENABLED in one.field and isinstance(one.bad_value, str)}
    told = [*strict, *(error.fault() for error in invalid)]
    told += [Fault("profiles", fault) for plugin in unloaded.values() for fault in plugin]
    for at, profile in enumerate(found.profiles):
        told += _of_profile(
            f"profiles[{at}]", profile, entries, refused | unloaded.keys(), valid=not (strict or invalid)
        )
    if not invalid:
        told += _raised(partial(extenders.made, found.extenders))
    return tuple(dict.fromkeys(told))


def _entries(found: KubeSchedulerConfiguration) -> tuple[Mapping[str, Entry], dict[str, tuple[str, ...]]]:
    """Plugins that can be used; and by name, what is wrong with those that cannot."""
    usable: list[Entry] = list(registry.IN_TREE)
    unloaded: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(name for profile in found.profiles for name in building.plugins_needed(profile)):
        if class_paths.is_path(name):
            try:
                usable.append(loading.load(name))
            except PluginLoadError as error:
                unloaded[name] = tuple(error.faults)
    return registry.by_name(usable), unloaded


def _of_profile(
    path: str, profile: Profile, entries: Mapping[str, Entry], unloaded: Collection[str], *, valid: bool
) -> Iterator[Fault]:
    """
    :param valid: no value of the file is refused: what the default plugins make of theirs can be asked
    """
    yield from building.faults(path, profile, entries, unloaded)
    args = {config.name: config.args for config in profile.plugin_config}
    needed = [name for name in building.plugins_needed(profile) if name in entries]
    for at, config in enumerate(profile.plugin_config):
        if config.name in needed:
            yield from _raised(partial(building.check_args, f"{path}.pluginConfig[{at}].args", config))
    for name in needed:
        if valid or name not in IN_TREE:
            yield from _raised(partial(model.made, path, entries[name], args.get(name)))


def _raised(make: Callable[[], object]) -> tuple[Fault, ...]:
    try:
        make()
    except BuildError as error:
        return error.faults
    return ()
