"""How many bytes a value takes, with all that it holds."""

import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

SHARED: Final = (type(None), bool, type, type(Ellipsis))
"""Values of these types exist once, whoever holds them."""

LEAVES: Final = (str, bytes, int, float)
"""Values of these types hold no others: most are such, and nothing is looked for in them."""


def bytes_of(*values: object) -> int:
    """Bytes that values take together, what they hold counted once: texts, numbers, arrays, containers,
    structs and slotted objects.

    Takes about 0.2 µs for each value inside: for what is kept, not for what is looked up.
    """
    seen: set[int] = set()
    found = 0
    stack: list[object] = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, SHARED) or id(value) in seen:
            continue
        seen.add(id(value))
        found += sys.getsizeof(value, 0)
        if not isinstance(value, LEAVES):
            stack.extend(_inside(value, type(value)))
    return found


def _inside(value: Any, kind: type[object]) -> Iterable[Any]:
    if issubclass(kind, (tuple, list, set, frozenset)):
        return value
    if issubclass(kind, dict):
        return (*value.keys(), *value.values())
    if issubclass(kind, msgspec.Raw):
        return (bytes(value),)
    if issubclass(kind, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    found: list[Any] = list(getattr(value, "__dict__", {}).values())
    for type_ in kind.__mro__:
        found.extend(getattr(value, name, None) for name in getattr(type_, "__slots__", ()))
    return found
