"""From the text of a policy file to a policy with defaults, as the reference's loader does.

Stages: decode (text, types, unknown argument fields), validate (arguments, metrics providers), default (the
evictor's place and its priority threshold). Source: pkg/descheduler/policyconfig.go (v0.36.0); data in
tests/conformance/data/policy.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from podyard.descheduler.core import durations, metrics_providers, own_plugins
from podyard.descheduler.core.arguments import PluginArgs, PriorityThreshold
from podyard.descheduler.core.errors import Fault, PolicyError, Stage
from podyard.descheduler.core.evictor_args import DefaultEvictorArgs
from podyard.descheduler.core.framework import Plugin, PluginError
from podyard.descheduler.core.plugins import default_evictor
from podyard.descheduler.core.policy import API_VERSION, KIND, PluginConfig, PluginSet, Policy, Profile
from podyard.framework.status import described
from podyard.objects import yaml_reader
from podyard.objects.decoding import strip_nulls
from podyard.objects.documents import is_mapping
from podyard.objects.priority import SYSTEM_CLASSES, SYSTEM_CRITICAL_PRIORITY
from podyard.objects.scheduling import PriorityClass
from podyard.objects.yaml_reader import YamlError

T = TypeVar("T")

_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`")


class Loaded(NamedTuple):
    """A policy whose arguments are their plugins' Structs, not yet completed, and the plugins that it may
    name."""

    policy: Policy
    plugins: Mapping[str, type[Plugin]]
    document: Mapping[str, Any] = {}
    """What the file says."""


def load(
    text: str, plugins: Mapping[str, type[Plugin]], priority_classes: Mapping[str, PriorityClass], *, source: str = ""
) -> Policy:
    """The policy in `text`; `args` of its plugins are their Structs.

    :param plugins: by name
    :param priority_classes: of the cluster, by name, for `priorityThreshold.name`
    :param source: name of the file, for errors
    :raises PolicyError: with every fault of the stage that failed
    """
    try:
        return with_defaults(checked(text, plugins).policy, priority_classes)
    except PolicyError as error:
        raise PolicyError(error.stage, error.faults, source) from error


def checked(text: str, plugins: Mapping[str, type[Plugin]]) -> Loaded:
    """All that can be said of the policy before its plugins are made.

    :param plugins: that come with Podyard, by name; the policy may name others by their path
    :raises PolicyError: with every fault of the stage that failed
    """
    found = decode(text, plugins)
    validate(found.policy, found.plugins)
    return found


def decode(text: str, plugins: Mapping[str, type[Plugin]]) -> Loaded:
    """Stage decode.

    An oddity of the reference is kept: a document without apiVersion is an empty policy, whatever else it
    says.
    """
    document = _mapping(text)
    version, kind = document.get("apiVersion") or "", document.get("kind") or KIND
    if version == "" and kind == KIND:
        return Loaded(Policy(), plugins, document)
    if version != API_VERSION or kind != KIND:
        raise _failed("decode", f"no kind {kind!r} with apiVersion {version!r}: a policy is a {KIND} of {API_VERSION}")
    policy = _convert(strip_nulls(document), Policy, "")
    known = own_plugins.with_own(policy, plugins)
    return Loaded(_with_typed_args(policy, known), known, document)


def _mapping(text: str) -> dict[str, Any]:
    """The first document, an empty one as an empty mapping; what begins with a brace is JSON. Of duplicate
    keys the last counts.

    Source: apimachinery v0.36, pkg/runtime/serializer/recognizer and json; sigs.k8s.io/yaml (YAMLToJSON).

    :raises PolicyError: if it is neither YAML nor JSON, or no mapping
    """
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _failed("decode", f"not JSON, though it begins with {{: {error}") from error
    try:
        first = next(yaml_reader.read(text.removeprefix("\ufeff"), twice=[]), None)
    except YamlError as error:
        raise _failed("decode", str(error)) from error
    content = None if first is None else first.content
    if content is None:
        return {}
    if not is_mapping(content):
        raise _failed("decode", f"a policy is a mapping, this is a {type(content).__name__}")
    return content


def _with_typed_args(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> Policy:
    """
    :raises PolicyError: with the first fault of each plugin's arguments
    """
    faults: list[Fault] = []
    profiles: list[Profile] = []
    for index, profile in enumerate(policy.profiles):
        configs: list[PluginConfig] = []
        for at, config in enumerate(profile.plugin_config):
            plugin = plugins.get(config.name)
            try:
                configs.append(
                    config if plugin is None else _typed(config, plugin, f"profiles[{index}].pluginConfig[{at}].args")
                )
            except PolicyError as error:
                faults += error.faults
        profiles.append(msgspec.structs.replace(profile, plugin_config=tuple(configs)))
    if faults:
        raise PolicyError("decode", faults)
    return msgspec.structs.replace(policy, profiles=tuple(profiles))


def _typed(config: PluginConfig, plugin: type[Plugin], where: str) -> PluginConfig:
    given: Any = {} if config.args is None else config.args
    try:
        return msgspec.structs.replace(config, args=_convert(given, plugin.ARGS, where))
    except PolicyError:
        raise
    except Exception as fault:  # the boundary to plugins: their Structs may have any type and any check
        raise _failed("decode", f"{where}: plugin {plugin.NAME} cannot read them: {described(fault)}", where) from fault


def _convert(value: Any, wanted: type[T], where: str) -> T:
    try:
        return msgspec.convert(value, wanted, dec_hook=durations.decode)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        unknown = _UNKNOWN_FIELD.fullmatch(what)
        if unknown is not None:
            what = f'unknown field "{unknown[1]}"'
        place = (where + path.rstrip("`")).lstrip(".")
        raise _failed("decode", f"{place}: {what}" if place else what, place) from error


def validate(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> None:
    """Stage validate: arguments of every configured plugin, enabled or not, and the metrics providers."""
    found: dict[str, Fault] = {}
    for index, profile in enumerate(policy.profiles):
        for at, config in enumerate(profile.plugin_config):
            told = _config_fault(plugins.get(config.name), config)
            if told:
                sentence = f"in profile {profile.name}: {told}"
                found.setdefault(sentence, Fault(f"profiles[{index}].pluginConfig[{at}]", sentence))
    for sentence in metrics_providers.faults(policy):
        found.setdefault(sentence, Fault("metricsProviders", sentence))
    if found:
        raise PolicyError("validate", found.values())


def _config_fault(plugin: type[Plugin] | None, config: PluginConfig) -> str:
    """All that is wrong with it, in one sentence as the reference has it; empty if nothing is."""
    if plugin is None:
        return f"plugin {config.name} in pluginConfig not registered"
    faults = _faults(plugin, config.args)
    return f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)


def _faults(plugin: type[Plugin], args: Any) -> list[str]:
    try:
        return [str(fault) for fault in plugin.faults(args)]
    except Exception as fault:  # the boundary to plugins
        return [f"plugin {plugin.NAME} cannot check its arguments: {described(fault)}"]


def with_defaults(policy: Policy, priority_classes: Mapping[str, PriorityClass] | None) -> Policy:
    """Stage default: every profile gets its evictor, first in both filters, with a priority threshold; then
    all arguments are completed.

    :param priority_classes: by name; None: there is no cluster yet, and a threshold that names one stays so
    :raises PolicyError: for the first profile that has none
    """
    profiles = tuple(_completed(_with_evictor(profile, priority_classes)) for profile in policy.profiles)
    return msgspec.structs.replace(policy, profiles=profiles)


def _completed(profile: Profile) -> Profile:
    configs = tuple(
        msgspec.structs.replace(config, args=_completed_args(config.name, config.args))
        if isinstance(config.args, PluginArgs)
        else config
        for config in profile.plugin_config
    )
    return msgspec.structs.replace(profile, plugin_config=configs)


def _completed_args(plugin: str, args: PluginArgs) -> PluginArgs:
    try:
        found = args.completed()
        if type(found) is not type(args):
            raise PluginError(f"completed() answered {type(found).__name__}, not {type(args).__name__}")
    except Exception as fault:  # the boundary to plugins
        raise _failed("default", f"plugin {plugin} cannot complete its arguments: {described(fault)}") from fault
    return found


def _with_evictor(profile: Profile, priority_classes: Mapping[str, PriorityClass] | None) -> Profile:
    configs = list(profile.plugin_config)
    at = next((index for index, config in enumerate(configs) if config.name == default_evictor.NAME), None)
    if at is None:
        configs.insert(0, PluginConfig(name=default_evictor.NAME, args=DefaultEvictorArgs()))
        at = 0
    args: DefaultEvictorArgs = configs[at].args
    threshold = _threshold(args.priority_threshold, priority_classes)
    args = msgspec.structs.replace(args, priority_threshold=threshold)
    configs[at] = msgspec.structs.replace(configs[at], args=args)
    plugins = msgspec.structs.replace(
        profile.plugins,
        filter=_evictor_first(profile.plugins.filter),
        pre_eviction_filter=_evictor_first(profile.plugins.pre_eviction_filter),
    )
    return msgspec.structs.replace(profile, plugin_config=tuple(configs), plugins=plugins)


def _evictor_first(listed: PluginSet) -> PluginSet:
    if default_evictor.NAME in listed.enabled:
        return listed
    return msgspec.structs.replace(listed, enabled=(default_evictor.NAME, *listed.enabled))


def _threshold(
    wanted: PriorityThreshold | None, priority_classes: Mapping[str, PriorityClass] | None
) -> PriorityThreshold:
    """A value, if there is one, before a name."""
    if wanted is None or (wanted.value is None and not wanted.name):
        return PriorityThreshold(value=SYSTEM_CRITICAL_PRIORITY)
    if wanted.value is None and priority_classes is None:
        return wanted
    value = _value(wanted, priority_classes or {})
    if value > SYSTEM_CRITICAL_PRIORITY:
        raise _failed("default", f"priority threshold can't be greater than {SYSTEM_CRITICAL_PRIORITY}")
    return PriorityThreshold(value=value)


def _value(wanted: PriorityThreshold, priority_classes: Mapping[str, PriorityClass]) -> int:
    if wanted.value is not None:
        return wanted.value
    found = priority_classes.get(wanted.name) or SYSTEM_CLASSES.get(wanted.name)
    if found is None:
        sentence = f'priorityclasses.scheduling.k8s.io "{wanted.name}" not found'
        raise _failed("default", f"unable to get priority value from the priority class: {sentence}")
    return found.value


def _failed(stage: Stage, sentence: str, field: str = "") -> PolicyError:
    return PolicyError(stage, (Fault(field, sentence),))
