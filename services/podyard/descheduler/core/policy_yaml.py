"""The text of a policy file, read as the reference reads it: a text that begins with `{` is JSON, all others
are YAML, of which the first document counts. Of duplicate keys the last counts.

Source: apimachinery v0.36, pkg/runtime/serializer/recognizer and json; sigs.k8s.io/yaml (YAMLToJSON).
"""

import re
from typing import Any, Final, cast

import msgspec
import yaml

_TAGS: Final = "tag:yaml.org,2002:"
_NOT_TEXT: Final = {
    f"{_TAGS}int": re.compile(r"[-+]?(0|[1-9][0-9]*|0[0-7]+|0x[0-9a-fA-F]+)\Z"),
    f"{_TAGS}float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"),
}
"""Numbers as go-yaml reads them: `12:30` and `2001-01-01` stay text, of which PyYAML would make a number and
a date."""


_FIRST_BEYOND: Final = 2.0**64
"""No whole number of a policy is so large."""


class PolicyTextError(ValueError):
    """The text is no mapping; says where."""


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

    :raises PolicyTextError: if it is neither YAML nor JSON, or no mapping
    """
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise PolicyTextError(f"not JSON, though it begins with {{: {_one_line(error)}") from error
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
    return _as_json(cast("dict[Any, Any]", document))


def _as_json(value: Any) -> Any:
    """As it would be written in JSON, and read from there: keys are text, and 2.0 is 2."""
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return {_key(key): _as_json(item) for key, item in entries.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < _FIRST_BEYOND:
        return int(value)
    return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
