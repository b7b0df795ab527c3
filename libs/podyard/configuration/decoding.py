"""The text of a file into `wire`: stage `decode` of the reference.

Sources: pkg/scheduler/apis/config/... (loadConfig),
apimachinery/pkg/runtime/serializer/{json,recognizer,codec_factory}.go,
staging/src/k8s.io/kube-scheduler/config/v1/types.go (DecodeNestedObjects).
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.configuration import wire
from podyard.configuration.errors import DecodeError, Fault
from podyard.configuration.reading import Pairs, Reader, TypeFault
from podyard.configuration.wire import API_VERSION, GROUP, KIND, KubeSchedulerConfiguration, PluginConfig
from podyard.configuration.wire_args import ARGS, Args
from podyard.objects import yaml_reader
from podyard.objects.documents import is_mapping, no_constant, plain
from podyard.objects.yaml_reader import YamlError

KINDS: Final[Mapping[str, type[msgspec.Struct]]] = {
    KIND: KubeSchedulerConfiguration,
    **{f"{plugin}Args": args for plugin, args in ARGS.items()},
}
"""All kinds of the group `kubescheduler.config.k8s.io`, version v1."""


class _Text(NamedTuple):
    """The first document of a text, and what a strict reader says of its keys."""

    content: Any
    twice: tuple[Fault, ...]


def decode(text: str) -> KubeSchedulerConfiguration:
    """The configuration in `text`, not yet defaulted; the arguments of known plugins are read as well.

    :raises DecodeError: if it is none; with `strict` if only because of unknown or duplicate fields
    """
    found = read(text)
    if found.strict:
        raise DecodeError(*found.strict, strict=True)
    return found.configuration


class Decoded(NamedTuple):
    """A configuration without its unknown and duplicate fields, and what is to be said of those."""

    configuration: KubeSchedulerConfiguration
    strict: tuple[Fault, ...]


def read(text: str) -> Decoded:
    """The configuration in `text` as `decode` has it, whatever a strict reader says of its fields.

    :raises DecodeError: if it is none
    """
    content, twice = _first_document(text)
    kind = _kind(content, "", "")
    strict = list(twice)
    found = _read(kind, content, strict)
    if isinstance(found, KubeSchedulerConfiguration):
        return Decoded(_with_args(found, strict), tuple(strict))
    if strict:
        raise DecodeError(*strict, strict=True)
    raise DecodeError(Fault("kind", f"must be {KIND}, is {kind}"))


def _read(kind: str, content: Any, strict: list[Fault], path: str = "") -> msgspec.Struct:
    reader = Reader()
    try:
        found = reader.read(content, KINDS[kind])
    except TypeFault as error:
        raise DecodeError(_below(path, error.fault)) from error
    strict += [_below(path, fault) for fault in reader.strict]
    return found


def _below(path: str, fault: Fault) -> Fault:
    return Fault(f"{path}.{fault.field}".strip("."), fault.detail)


def _first_document(text: str) -> _Text:
    if text.lstrip().startswith("{"):
        return _json(text)
    twice: list[YamlError] = []
    try:
        document = next(yaml_reader.read(text.removeprefix("\ufeff"), twice=twice), None)
    except YamlError as error:
        raise DecodeError(Fault(f"line {error.line}", error.detail)) from error
    content = None if document is None else document.content
    return _Text(content, tuple(Fault(f"line {fault.line}", fault.detail) for fault in twice))


def _json(text: str) -> _Text:
    try:
        return _Text(json.loads(text, object_pairs_hook=_pairs, parse_constant=no_constant), ())
    except RecursionError as error:
        raise DecodeError(Fault("", "not valid JSON: nested too deep")) from error
    except json.JSONDecodeError as error:
        detail = f"not valid JSON: {error.msg} (what begins with a brace is read as JSON)"
        raise DecodeError(Fault(f"line {error.lineno}", detail)) from error
    except ValueError as error:
        raise DecodeError(Fault("", f"not valid JSON: {error}")) from error


def _pairs(pairs: list[tuple[str, Any]]) -> Pairs:
    found = Pairs(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        found.twice = tuple(key for key, _ in pairs if key in seen or seen.add(key))
    return found


def _kind(content: Any, default_kind: str, path: str) -> str:
    """The kind of a document; the version must be ours. Both keys are found in any case, as Go's decoder
    finds them."""
    if content is not None and not is_mapping(content):
        raise DecodeError(Fault(path, "must be a mapping" if path else "must be a mapping with apiVersion and kind"))
    kind = _type_key(content or {}, "kind", path) or default_kind
    version = _type_key(content or {}, "apiVersion", path) or (API_VERSION if default_kind else "")
    if default_kind and version == f"{GROUP}/":
        version = API_VERSION
    if not kind or not version:
        key, value = ("apiVersion", API_VERSION) if kind else ("kind", KIND)
        raise DecodeError(Fault(f"{path}.{key}".strip("."), f"missing; write {key}: {value}"))
    if version != API_VERSION or kind not in KINDS:
        expected = f"{default_kind or KIND} of {API_VERSION}"
        raise DecodeError(Fault(path, f"no kind {kind} is known in version {version}; it must be {expected}"))
    return kind


def _type_key(content: dict[str, Any], key: str, path: str) -> str:
    found = next((content[name] for name in reversed(content) if name.lower() == key.lower()), None)
    if found is not None and not isinstance(found, str):
        raise DecodeError(Fault(f"{path}.{key}".strip("."), "must be text"))
    return found or ""


def _with_args(found: KubeSchedulerConfiguration, strict: list[Fault]) -> KubeSchedulerConfiguration:
    profiles: list[wire.Profile] = []
    for at, profile in enumerate(found.profiles):
        configs = tuple(
            _nested(config, f"profiles[{at}].pluginConfig[{place}].args", strict)
            for place, config in enumerate(profile.plugin_config)
        )
        profiles.append(msgspec.structs.replace(profile, plugin_config=configs))
    return msgspec.structs.replace(found, profiles=tuple(profiles))


def _nested(config: PluginConfig, path: str, strict: list[Fault]) -> PluginConfig:
    """Arguments of a plugin that the reference knows become their type; those of others stay as they are."""
    if config.name not in ARGS:
        return PluginConfig(name=config.name, args=plain(config.args))
    expected = f"{config.name}Args"
    kind = _kind(config.args, expected, path)
    args = _read(kind, {} if config.args is None else config.args, strict, path)
    if kind == expected and isinstance(args, Args):
        return PluginConfig(name=config.name, args=msgspec.structs.replace(args, api_version=API_VERSION, kind=kind))
    if any(fault.field.startswith(path) for fault in strict):
        return config  # refused anyway, as strict: the reference looks at the kind only of what it could read
    raise DecodeError(Fault(path, f"must be of kind {expected}, is {kind}"))
