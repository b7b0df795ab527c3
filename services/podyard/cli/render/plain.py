"""JSON and YAML as programs read them."""

from typing import Any

import msgspec


def builtins(value: Any) -> Any:
    """Structs as mappings, tuples as lists."""
    return msgspec.to_builtins(value)


def dump(value: Any, form: str) -> str:
    """`value` as indented JSON, or as YAML if `form` is yaml, with a final newline."""
    if form == "yaml":
        import yaml

        return yaml.safe_dump(builtins(value), sort_keys=False, allow_unicode=True, default_flow_style=False)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def line(value: Any) -> str:
    """`value` as JSON on one line, for streams of records."""
    return msgspec.json.encode(value).decode()
