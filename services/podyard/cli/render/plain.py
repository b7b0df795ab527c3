"""JSON and YAML as programs read them. Times are RFC 3339, UTC, to the microsecond."""

from typing import Any, Final, cast

import msgspec

from podyard.objects import times

TIMES: Final = frozenset(
    {
        *("at", "since", "until", "start", "first_at", "created_at", "started_at", "queued_at", "popped_at", "read_at"),
        *("bound_at", "released_at", "known_at"),
    }
)
"""Fields of our structs that hold seconds since 1970, UTC; 0 is a time that is not known."""


def builtins(value: Any) -> Any:
    """Structs as mappings, tuples as lists, times as text; an unknown time is null. Documents that are
    mappings already stay as they are."""
    shown = msgspec.to_builtins(value, enc_hook=_document)
    return _with_times(value, shown)


def _document(value: Any) -> Any:
    """An object that a message holds as it was written."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON")


def dump(value: Any, form: str) -> str:
    """`value` as indented JSON, or as YAML if `form` is yaml, with a final newline."""
    if form == "yaml":
        import yaml

        return yaml.safe_dump(builtins(value), sort_keys=False, allow_unicode=True, default_flow_style=False)
    return msgspec.json.format(msgspec.json.encode(builtins(value)), indent=2).decode() + "\n"


def line(value: Any) -> str:
    """`value` as JSON on one line, for streams of records."""
    return msgspec.json.encode(builtins(value)).decode()


def _with_times(value: Any, shown: Any) -> Any:
    """`shown`, which is `value` as built-in types, with the times of its structs as text."""
    if isinstance(value, msgspec.Struct):
        found = cast("dict[str, Any]", shown)
        for field in msgspec.structs.fields(value):
            name, inner = field.encode_name, getattr(value, field.name)
            if name not in found:
                continue  # left out, since it has its default
            is_time = field.name in TIMES and isinstance(inner, float)
            found[name] = time(inner) if is_time else _with_times(inner, found[name])
    elif isinstance(value, dict):
        found, items = cast("dict[Any, Any]", shown), cast("dict[Any, Any]", value)
        for key, inner in items.items():
            if key in found and isinstance(inner, _HOLDERS):
                found[key] = _with_times(inner, found[key])
    elif isinstance(value, list | tuple):
        members = cast("list[Any]", value)
        return [_with_times(inner, one) for inner, one in zip(members, shown, strict=True)]
    return shown


_HOLDERS: Final = (msgspec.Struct, dict, list, tuple)


def time(at: float) -> str | None:
    """Seconds since 1970 as text; None for 0, and for what no calendar has."""
    try:
        return times.rfc3339_micro(at) if at else None
    except (ValueError, OverflowError):
        return None
