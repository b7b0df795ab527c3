"""Laying the sources of settings over each other, remembering which source set what."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args, get_origin

import msgspec
import yaml

S = TypeVar("S", bound=msgspec.Struct)
SettingPath = tuple[str, ...]
"""Field names from the top: `("nats", "servers")`, `("queue", "backoff_s")`."""


class Leaf(NamedTuple):
    """One value with the source that set it, for the error message."""

    value: Any
    source: str


class Schema:
    """Which paths exist, and of which type: the common settings at the top level, one section a service
    below."""

    def __init__(
        self, common: type[msgspec.Struct], sections: Mapping[str, type[msgspec.Struct]], *, foreign: frozenset[str]
    ) -> None:
        """:param foreign: sections of other services: not looked at"""
        self.foreign = foreign
        self.types: dict[SettingPath, Any] = dict(_walk(common, ()))
        for name, section in sections.items():
            self.types[(name,)] = section
            self.types.update(_walk(section, (name,)))

    def is_group(self, path: SettingPath) -> bool:
        """Whether `path` holds fields, not a value."""
        return not path or _is_struct(self.types.get(path))

    def children(self, path: SettingPath) -> list[str]:
        """Names that may follow `path`."""
        depth = len(path)
        return [found[depth] for found in self.types if len(found) == depth + 1 and found[:depth] == path]


class Tree:
    """Values by path; a later `add_*` wins. Faults gather in `problems`, so that all are told at once."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.problems: list[str] = []
        self._leaves: dict[SettingPath, Leaf] = {}

    def add_file(self, path: Path) -> None:
        """Read a YAML options file; an unreadable one is a problem."""
        told = ""
        try:
            text = path.read_text(encoding="utf-8")
            told = _kind_of(next(yaml.safe_load_all(text), None))  # the first document says what it is
            document: Any = None if told else yaml.safe_load(text)
        except OSError as error:
            self.problems.append(f"options file {path}: {error.strerror or error}")
            return
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            self.problems.append(f"options file {path}: not YAML: {error}")
            return
        if told:
            self.problems.append(f"options file {path}: {told}")
        elif document is not None:
            self._add_group(document, (), f"options file {path}")

    def _add_group(self, document: Any, path: SettingPath, source: str) -> None:
        if not isinstance(document, dict):
            where = ".".join(path) or "its top level"
            self.problems.append(f"{source}: {where}: expected a mapping, got {type(document).__name__}")
            return
        entries = cast("dict[Any, Any]", document)
        for key, value in entries.items():
            here = (*path, str(key))
            if not path and key in self.schema.foreign:
                continue
            if here not in self.schema.types:
                self.problems.append(self._unknown(source, here))
            elif self.schema.is_group(here):
                self._add_group(value if value is not None else {}, here, source)
            else:
                self._leaves[here] = Leaf(value, f"{source}: {'.'.join(here)}")

    def add_environment(self, environment: Mapping[str, str], prefix: str) -> None:
        """Take the variables that name a known path. Others are left alone: they may belong to another
        service."""
        for path, kind in self.schema.types.items():
            name = "_".join((prefix, *path)).upper()
            if not _is_struct(kind) and name in environment:
                self._add_text(path, environment[name], name)

    def add_flags(self, flags: Mapping[str, Any]) -> None:
        """Take values by dotted path; a `Leaf` says itself by which flag it came."""
        for dotted, given in flags.items():
            path = tuple(dotted.split("."))
            value, source = given if isinstance(given, Leaf) else (given, f"flag {dotted}")
            if path not in self.schema.types or self.schema.is_group(path):
                self.problems.append(self._unknown("flags", path))
            elif isinstance(value, str):
                self._add_text(path, value, source)
            else:
                self._leaves[path] = Leaf(value, source)

    def _add_text(self, path: SettingPath, text: str, source: str) -> None:
        try:
            self._leaves[path] = Leaf(_from_text(self.schema.types[path], text), source)
        except (msgspec.ValidationError, yaml.YAMLError) as error:
            self.problems.append(f"{source}={text!r}: {error}")

    def _unknown(self, source: str, path: SettingPath) -> str:
        known = self.schema.children(path[:-1])
        close = difflib.get_close_matches(path[-1], known, n=1)
        advice = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(known)) or 'none'}"
        return f"{source}: no setting is called {'.'.join(path)}; {advice}"

    def build(self, settings_type: type[S], path: SettingPath) -> S | None:
        """The Struct at `path` from the values given so far; `None` if one is wrong (told in `problems`)."""
        values: dict[str, Any] = {}
        for field in msgspec.structs.fields(settings_type):
            here = (*path, field.name)
            if _is_struct(field.type):
                values[field.name] = self.build(field.type, here)
            elif here in self._leaves:
                values[field.name] = self._value(here, field.type)
            elif field.required:
                self.problems.append(f"{'.'.join(here)}: must be set, it has no default")
        if self.problems:
            return None
        return settings_type(**values)

    def _value(self, path: SettingPath, kind: Any) -> Any:
        leaf = self._leaves[path]
        try:
            return msgspec.convert(leaf.value, kind)
        except msgspec.ValidationError as error:
            self.problems.append(f"{leaf.source}: {error}")
            return None


OTHER_FILES: Final = {
    "KubeSchedulerConfiguration": (
        "kubescheduler.config.k8s.io/",
        "--scheduler-config FILE, or the setting scheduler_config",
    ),
    "DeschedulerPolicy": ("descheduler/", "--policy-config-file FILE, or the setting descheduler.policy"),
    "KubeletConfiguration": (
        "kubelet.config.k8s.io/",
        "--kubelet-config FILE, or the setting node_agent.kubelet_config",
    ),
}
"""Files of the systems that Podyard stands for, by kind: what their versions begin with, and how they are
given."""


def _kind_of(document: Any) -> str:
    """What a file is that says its kind, as an options file never does; empty: it says none."""
    if not isinstance(document, dict):
        return ""
    said = {str(key).lower(): str(value) for key, value in cast("dict[Any, Any]", document).items()}
    kind, version = said.get("kind", ""), said.get("apiversion", "")
    if not kind and not version:
        return ""
    for known, (group, flag) in OTHER_FILES.items():
        if kind == known or (not kind and version.startswith(group)):
            return f"it is a {known}, not an options file: give it as {flag}"
    named = f"{kind or 'an object'} of version {version or 'unknown'}"
    return f"it is {named}, not an options file; objects are given to podyard apply -f FILE"


def _walk(settings_type: type[msgspec.Struct], path: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    for field in msgspec.structs.fields(settings_type):
        here = (*path, field.name)
        yield here, field.type
        if _is_struct(field.type):
            yield from _walk(field.type, here)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _from_text(kind: Any, text: str) -> Any:
    """`text` as a `kind`: lists by commas, mappings and lists of mappings as YAML, everything else by
    itself."""
    plain = _unannotated(kind)
    if plain in (tuple, list, frozenset, set) and not any(map(_is_struct, get_args(kind))):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return msgspec.to_builtins(msgspec.convert(parts, kind, strict=False))
    if plain in (dict, tuple, list):
        return yaml.safe_load(text)
    return msgspec.to_builtins(msgspec.convert(text, kind, strict=False))


def _unannotated(kind: Any) -> Any:
    if hasattr(kind, "__metadata__"):
        return _unannotated(get_args(kind)[0])
    return get_origin(kind) or kind
