"""From a valid configuration to what is run: stage `build` of the reference.

Sources: pkg/scheduler/profile/profile.go (NewMap), pkg/scheduler/framework/runtime/framework.go
(NewFramework), pkg/scheduler/scheduler.go (New).
"""

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from podyard.configuration import args_validation, extenders
from podyard.configuration.defaulting import sets
from podyard.configuration.errors import BuildError, Fault
from podyard.configuration.wire import (
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    PluginSet,
    Profile,
)
from podyard.configuration.wire_args import NodeResourcesFitArgs
from podyard.framework.expansion import POINTS, Choice, Expanded, ExpansionError, Selection, expand
from podyard.plugins import profiles
from podyard.plugins.registry import Entry

_EVERYWHERE: Final = "multiPoint"
_PLACEMENT: Final = ("placementGenerate", "placementScore")


class Built(NamedTuple):
    """A configuration that can be run. `expanded`: plugins by point, by scheduler name."""

    configuration: KubeSchedulerConfiguration
    expanded: Mapping[str, Expanded]


def build(found: KubeSchedulerConfiguration, entries: Mapping[str, Entry]) -> Built:
    """
    :param found: valid, with its defaults
    :param entries: all plugins that can be enabled
    :raises BuildError: for the first plugin, profile or extender that cannot be made
    """
    made = extenders.made(found.extenders)
    expanded: dict[str, Expanded] = {}
    finished: list[Profile] = []
    for at, profile in enumerate(extenders.without_ignored(found.profiles, made)):
        finished.append(_finished(f"profiles[{at}]", profile, entries))
        expanded[profile.scheduler_name or ""] = _expanded(f"profiles[{at}]", profile, entries)
    return Built(replace(found, profiles=tuple(finished), extenders=made), expanded)


def plugins_needed(profile: Profile) -> tuple[str, ...]:
    """All plugins that are enabled anywhere, each once, those of multiPoint first."""
    plugin_sets = {} if profile.plugins is None else sets(profile.plugins)
    ordered = [plugin_sets.pop(_EVERYWHERE), *plugin_sets.values()] if plugin_sets else []
    return tuple(dict.fromkeys(plugin.name for plugin_set in ordered for plugin in plugin_set.enabled))


def _finished(path: str, profile: Profile, entries: Mapping[str, Entry]) -> Profile:
    """The profile with the arguments of the plugins that it needs, sorted by name."""
    needed = {name for name in plugins_needed(profile) if name in entries}
    configs = [config for config in profile.plugin_config if config.name in needed and config.args is not None]
    for at, config in enumerate(profile.plugin_config):
        if config.name in needed:
            check_args(f"{path}.pluginConfig[{at}].args", config)
    return replace(profile, plugin_config=tuple(sorted(configs, key=lambda config: config.name)))


def check_args(path: str, config: PluginConfig) -> None:
    """What only building refuses of a plugin's arguments.

    :raises BuildError: with all that is wrong with them
    """
    if isinstance(config.args, NodeResourcesFitArgs) and (faults := args_validation.fit_errors(config.args)):
        raise BuildError(*(fault.fault(path) for fault in faults))


def _expanded(path: str, profile: Profile, entries: Mapping[str, Entry]) -> Expanded:
    plugin_sets = {} if profile.plugins is None else sets(profile.plugins)
    _refuse_placement(path, plugin_sets)
    try:
        found = _expansion(plugin_sets, entries)
    except ExpansionError as error:
        raise BuildError(_fault(path, error, entries)) from error
    _check_counts(path, found)
    return found


def _expansion(plugin_sets: Mapping[str, PluginSet], entries: Mapping[str, Entry]) -> Expanded:
    return expand(
        _choices(plugin_sets.get(_EVERYWHERE, PluginSet()).enabled),
        {point: _selection(plugin_sets[point]) for point in POINTS if point in plugin_sets},
        lambda name: profiles.points_of(entries, name),
    )


def _fault(path: str, error: ExpansionError, entries: Mapping[str, Entry]) -> Fault:
    advice = _advice(error.plugin, entries) if error.missing else ""
    return Fault(f"{path}.plugins.{error.point}", f"{error.detail}{advice}")


def faults(path: str, profile: Profile, entries: Mapping[str, Entry], unloaded: Collection[str]) -> Iterator[Fault]:
    """Every plugin of a profile that does not exist or stands where it cannot; if there is none, what else
    cannot be made of it.

    :param unloaded: plugins of which it was said already that they cannot be used
    """
    plugin_sets = {} if profile.plugins is None else sets(profile.plugins)
    wrong = False
    while True:
        try:
            _expansion(plugin_sets, entries)
        except ExpansionError as error:
            wrong = True
            if error.plugin not in unloaded:
                yield _fault(path, error, entries)
            plugin_sets[error.point] = _without(plugin_sets[error.point], error.plugin)
        else:
            break
    if not wrong:
        try:
            _expanded(path, profile, entries)
        except BuildError as error:
            yield from error.faults


def _without(plugin_set: PluginSet, name: str) -> PluginSet:
    return replace(plugin_set, enabled=tuple(plugin for plugin in plugin_set.enabled if plugin.name != name))


def _refuse_placement(path: str, plugin_sets: Mapping[str, PluginSet]) -> None:
    """Points for groups of pods, whose feature gates are off: no plugin extends them."""
    for point in _PLACEMENT:
        for plugin in plugin_sets.get(point, PluginSet()).enabled:
            raise BuildError(f"plugin {plugin.name} does not extend {point}", field=f"{path}.plugins.{point}")


def _advice(missing: str, entries: Mapping[str, Entry]) -> str:
    close = difflib.get_close_matches(missing, entries, n=1)
    return f"; did you mean {close[0]}?" if close else "; one of your own is written package.module:Class"


def _choices(plugins: tuple[Plugin, ...]) -> tuple[Choice, ...]:
    return tuple(Choice(plugin.name, plugin.weight or 0) for plugin in plugins)


def _selection(plugin_set: PluginSet) -> Selection:
    return Selection(_choices(plugin_set.enabled), frozenset(plugin.name for plugin in plugin_set.disabled))


def _check_counts(path: str, found: Expanded) -> None:
    sorters = found.points["queueSort"]
    if len(sorters) != 1:
        detail = f"exactly one plugin must be enabled, there are {len(sorters)} ({', '.join(sorters) or 'none'})"
        raise BuildError(f"{detail}; the default one is PrioritySort", field=f"{path}.plugins.queueSort")
    if not found.points["bind"]:
        raise BuildError(
            "at least one plugin must be enabled; the default one is DefaultBinder", field=f"{path}.plugins.bind"
        )


def effective(built: Built) -> dict[str, Any]:
    """Scheduler name -> plugins by extension point in calling order, and percentageOfNodesToScore if the
    profile sets it."""
    found: dict[str, Any] = {}
    for profile in built.configuration.profiles:
        name = profile.scheduler_name or ""
        expanded = built.expanded[name]
        found[name] = {"plugins": {point: _listed(point, names, expanded) for point, names in expanded.points.items()}}
        if profile.percentage_of_nodes_to_score is not None:
            found[name]["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    return found


def _listed(point: str, names: tuple[str, ...], expanded: Expanded) -> list[dict[str, Any]]:
    return [{"name": name, **({"weight": expanded.weights[name]} if point == "score" else {})} for name in names]
