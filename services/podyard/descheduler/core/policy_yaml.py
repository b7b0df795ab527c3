"""YAML of a policy file, read as the reference reads it: the first document counts, and of duplicate keys the
last."""

import re
from typing import Any, Final, cast

import yaml

_TAGS: Final = "tag:yaml.org,2002:"
_NOT_TEXT: Final = {
    f"{_TAGS}int": re.compile(r"[-+]?(0|[1-9][0-9]*|0[0-7]+|0x[0-9a-fA-F]+)\Z"),
    f"{_TAGS}float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"),
}
"""Numbers as go-yaml reads them: `12:30` and `2001-01-01` stay text, of which PyYAML would make a number and
a date."""


class PolicyTextError(ValueError):
    """The text is no YAML mapping; says where."""


class _Loader(yaml.SafeLoader):
    pass


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag not in (*_NOT_TEXT, f"{_TAGS}timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NOT_TEXT.items():
    for _first in "-+.0123456789":
        _Loader.yaml_implicit_resolvers.setdefault(_first, []).append((_tag, _pattern))


def read(text: str) -> dict[str, Any]:
    """The first document as JSON has it; an empty one is an empty mapping.

    :raises PolicyTextError: if it is no YAML, or no mapping
    """
    loader = _Loader(text)
    try:
        document: Any = loader.get_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PolicyTextError(f"not YAML: {_one_line(error)}") from error
    finally:
        loader.dispose()
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise PolicyTextError(f"a policy is a mapping, this is a {type(document).__name__}")
    return _with_text_keys(cast("dict[Any, Any]", document))


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return {_key(key): _with_text_keys(item) for key, item in entries.items()}
    if isinstance(value, list):
        return [_with_text_keys(item) for item in cast("list[Any]", value)]
    return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
