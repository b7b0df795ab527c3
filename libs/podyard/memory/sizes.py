"""How many bytes a value takes, with all that it holds."""

import sys
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

SHARED: Final = (type(None), bool, type, type(Ellipsis))
"""Values of these types exist once, whoever holds them."""


def bytes_of(*values: object) -> int:
    """Bytes that values take together, what they hold counted once: texts, numbers, arrays, containers,
    structs and slotted objects.

    Takes about 0.2 µs for each value inside: for what is kept, not for what is looked up.
    """
    seen: set[int] = set()
    found = 0
    stack: list[Any] = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, SHARED) or id(value) in seen:
            continue
        seen.add(id(value))
        found += sys.getsizeof(value, 0)
        stack.extend(_inside(value))
    return found


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | int | float):
        return ()
    if isinstance(value, dict):
        held = cast("dict[Any, Any]", value)
        return (*held.keys(), *held.values())
    if isinstance(value, tuple | list | set | frozenset):
        return cast("Iterable[Any]", value)
    if isinstance(value, msgspec.Raw):
        return (bytes(value),)
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    found: list[Any] = list(getattr(value, "__dict__", {}).values())
    for type_ in type(cast("object", value)).__mro__:
        found.extend(getattr(value, name, None) for name in getattr(type_, "__slots__", ()))
    return found
