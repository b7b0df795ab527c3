"""What decoders know of types: read off msgspec, to hold a rule for every field there is."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import inspect


def unbounded_numbers(types: Iterable[Any]) -> set[str]:
    """Whole numbers of these structs, and of all that they hold, that have no least or no largest value:
    `Struct.field`."""
    return {
        f"{struct.cls.__name__}.{field.name}"
        for struct in _structs(types)
        for field in struct.fields
        for number in _integers(field.type)
        if number.ge is None or number.le is None
    }


def _structs(types: Iterable[Any]) -> Iterator[inspect.StructType]:
    seen: set[type] = set()
    left = [inspect.type_info(type_) for type_ in types]
    while left:
        one = left.pop()
        if isinstance(one, inspect.StructType):
            if one.cls in seen:
                continue
            seen.add(one.cls)
            yield one
            left += [field.type for field in one.fields]
        left += _parts(one)


def _parts(one: inspect.Type) -> list[inspect.Type]:
    several: list[inspect.Type] = list(getattr(one, "types", ()))
    single = (getattr(one, name, None) for name in ("type", "item_type", "key_type", "value_type"))
    return several + [part for part in single if part is not None]


def _integers(one: inspect.Type) -> list[inspect.IntType]:
    if isinstance(one, inspect.StructType):
        return []
    return [one] if isinstance(one, inspect.IntType) else [found for part in _parts(one) for found in _integers(part)]
