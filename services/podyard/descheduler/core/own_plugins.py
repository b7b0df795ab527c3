"""Plugins of the user: named `package.module:Class` in a policy, imported, and checked before anything is
asked of them. From then on they are plugins like all others."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from podyard.descheduler.core.arguments import PluginArgs
from podyard.descheduler.core.errors import Fault, PolicyError
from podyard.descheduler.core.framework import (
    BalancePlugin,
    DeschedulePlugin,
    FilterPlugin,
    Plugin,
    PreEvictionFilterPlugin,
    TargetPlugin,
)
from podyard.descheduler.core.policy import Policy, Profile
from podyard.plugins import class_paths, signatures
from podyard.plugins.class_paths import PluginLoadError

HOOKS: Final = signatures.hooks_of((DeschedulePlugin, BalancePlugin, FilterPlugin, PreEvictionFilterPlugin))
"""Methods that a cycle calls, by name: one for each extension point."""

_CALLED: Final = {**HOOKS, **signatures.hooks_of((TargetPlugin,))}
"""The same, and what the plan asks."""

_MADE_WITH: Final = ["args", "handle"]


def with_own(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> dict[str, type[Plugin]]:
    """`plugins`, and those that the policy names by their path, by the name that the policy has for them.

    :param policy: with arguments as they were read
    :raises PolicyError: with all that is wrong with such plugins
    """
    found = dict(plugins)
    faults: dict[str, tuple[str, ...]] = {}
    told: list[Fault] = []
    for at, profile in enumerate(policy.profiles):
        for path in filter(class_paths.is_path, dict.fromkeys(_named(profile))):
            if path not in found and path not in faults:
                try:
                    found[path] = _loaded(path, found)
                except PluginLoadError as error:
                    faults[path] = error.faults
            told += [Fault(f"profiles[{at}]", f"in profile {profile.name}: {one}") for one in faults.get(path, ())]
    if told:
        raise PolicyError("build", told)
    return found


def _named(profile: Profile) -> Iterator[str]:
    yield from (config.name for config in profile.plugin_config)
    listed = profile.plugins
    for one in (listed.deschedule, listed.balance, listed.filter, listed.pre_eviction_filter):
        yield from one.enabled


def _loaded(path: str, known: Mapping[str, type[Plugin]]) -> type[Plugin]:
    found = class_paths.find(path)
    if not isinstance(found, type):
        raise PluginLoadError(path, class_paths.no_class(found))
    if wrong := faults(found):
        raise PluginLoadError(path, *wrong)
    plugin: type[Plugin] = found
    for other, one in known.items():
        if one.NAME == plugin.NAME:
            raise PluginLoadError(path, f"its NAME {plugin.NAME} is that of {other}; names must differ")
    return plugin


def faults(plugin: type[Any]) -> list[str]:
    """All that keeps a class from being a plugin, in words; empty if nothing does."""
    own = signatures.public_methods(plugin)
    points = [name for name in HOOKS if name in own]
    found = [*_class_faults(plugin), *signatures.method_faults(own, _CALLED)]
    if not points:
        found.append(f"it has the method of no extension point; there are {', '.join(HOOKS)}")
    return found


def _class_faults(plugin: type[Any]) -> Iterator[str]:
    name, args = getattr(plugin, "NAME", None), getattr(plugin, "ARGS", None)
    if not isinstance(name, str) or not name:
        yield f'it has no NAME; write `NAME = "{plugin.__name__}"` in the class'
    if not isinstance(args, type) or not issubclass(args, PluginArgs):
        yield "its ARGS are no PluginArgs; write `ARGS = ...` with a class derived from PluginArgs"
    check = inspect.getattr_static(plugin, "faults", None)
    if not isinstance(check, classmethod) or not _takes(plugin.faults, ["args"]):
        yield "it cannot check its arguments; write `@classmethod`, `def faults(cls, args) -> list[str]`"
    register = inspect.getattr_static(plugin, "events_to_register", None)
    if register is not None and (
        not isinstance(register, classmethod) or not _takes(plugin.events_to_register, ["args"])
    ):
        yield "it cannot register events; write `@classmethod`, `def events_to_register(cls, args)`"
    if not _takes(plugin, _MADE_WITH):
        yield "its constructor must be `def __init__(self, args, handle)`"


def _takes(made: Any, names: list[str]) -> bool:
    """Whether it can be called with so many values, one after the other."""
    try:
        inspect.signature(made).bind(*names)
    except (TypeError, ValueError):
        return False
    return True
