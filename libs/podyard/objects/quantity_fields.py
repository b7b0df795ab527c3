"""Where a kind has quantities, read off its typed view once, so that documents can be checked and made
canonical."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import inspect

from podyard.objects.documents import Document, is_list, is_mapping
from podyard.objects.errors import FieldFault, QuantityError
from podyard.objects.meta import QUANTITY
from podyard.objects.quantity import parse

Shape = Literal["quantity", "map", "struct", "list of struct", "map of struct"]


class Branch(NamedTuple):
    """One JSON key on the way to quantities. `inner`: the branches below, empty for the shapes that hold
    quantities."""

    key: str
    shape: Shape
    inner: tuple["Branch", ...] = ()


@cache
def branches(type_: type[msgspec.Struct]) -> tuple[Branch, ...]:
    """The ways to the quantities of a typed view; empty if it has none."""
    info = inspect.type_info(type_)
    return _of_struct(info) if isinstance(info, inspect.StructType) else ()


def _of_struct(info: inspect.StructType) -> tuple[Branch, ...]:
    found = (_of_field(field.encode_name, field.type) for field in info.fields)
    return tuple(branch for branch in found if branch is not None)


def _of_field(key: str, info: inspect.Type) -> Branch | None:
    if isinstance(info, inspect.UnionType):
        return next((branch for part in info.types if (branch := _of_field(key, part)) is not None), None)
    if _is_quantity(info):
        return Branch(key, "quantity")
    if isinstance(info, inspect.DictType) and _is_quantity(info.value_type):
        return Branch(key, "map")
    if isinstance(info, inspect.StructType):
        return _nested(key, "struct", info)
    if isinstance(info, inspect.VarTupleType):
        return _nested(key, "list of struct", info.item_type)
    if isinstance(info, inspect.DictType):
        return _nested(key, "map of struct", info.value_type)
    return None


def _nested(key: str, shape: Shape, info: inspect.Type) -> Branch | None:
    inner = _of_struct(info) if isinstance(info, inspect.StructType) else ()
    return Branch(key, shape, inner) if inner else None


def _is_quantity(info: inspect.Type) -> bool:
    return isinstance(info, inspect.Metadata) and info.extra == QUANTITY  # pyright: ignore[reportUnknownMemberType] - a bare dict


def rewrite(document: Document, ways: tuple[Branch, ...], change: Callable[[Any], Any]) -> None:
    """Replace each quantity of `document`, in place, by what `change` makes of it; parts of a wrong type are
    left alone."""
    for key, shape, inner in ways:
        part = document.get(key)
        if part is None:
            continue
        if shape == "quantity":
            document[key] = change(part)
        elif is_list(part):
            for item in part:
                if is_mapping(item):
                    rewrite(item, inner, change)
        elif is_mapping(part):
            _rewrite_map(part, shape, inner, change)


def _rewrite_map(part: Document, shape: Shape, inner: tuple[Branch, ...], change: Callable[[Any], Any]) -> None:
    if shape == "struct":
        rewrite(part, inner, change)
        return
    for name, item in part.items():
        if shape == "map":
            part[name] = change(item)
        elif is_mapping(item):
            rewrite(item, inner, change)


def text_of(amount: Any) -> Any:
    """A JSON number as the text it stands for; all else as it is."""
    return str(amount) if isinstance(amount, int | float) and not isinstance(amount, bool) else amount


def canonical_text(amount: Any) -> Any:
    """A quantity in canonical form; what is neither text nor number as it is.

    :raises QuantityError: if it is no quantity
    """
    if isinstance(amount, str) or (isinstance(amount, int | float) and not isinstance(amount, bool)):
        return str(parse(amount))
    return amount


def faults(document: Any, ways: tuple[Branch, ...], path: str = "") -> Iterator[FieldFault]:
    """Every text in `document` that should be a quantity and is none, in document order."""
    if not is_mapping(document):
        return
    for key, shape, inner in ways:
        part = document.get(key)
        where = f"{path}.{key}" if path else key
        if part is None:
            continue
        if shape == "quantity":
            yield from _fault(part, where)
        elif shape == "struct":
            yield from faults(part, inner, where)
        elif is_list(part):
            for index, item in enumerate(part):
                yield from faults(item, inner, f"{where}[{index}]")
        elif is_mapping(part):
            for name, item in part.items():
                below = f"{where}[{name}]"
                yield from _fault(item, below) if shape == "map" else faults(item, inner, below)


def _fault(amount: Any, where: str) -> Iterator[FieldFault]:
    try:
        canonical_text(amount)
    except QuantityError as error:
        shown = f'"{amount}"' if isinstance(amount, str) else amount
        detail = f"Invalid value: {shown}: {error.detail}"
        yield FieldFault(field=where, type="FieldValueInvalid", detail=detail)
