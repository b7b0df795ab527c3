"""Values and their shapes side by side: is a value of its type, which fields has it, in which do two differ.

Source: structured-merge-diff v6.3.2, typed/validate.go, tofieldset.go, compare.go, helpers.go.
"""

from typing import Any, Final, NamedTuple

from podyard.kube_api.core.patching.field_sets import FieldSet, item_named, item_with, named, spelled
from podyard.kube_api.core.patching.go_words import printed, type_of
from podyard.kube_api.core.patching.shapes import ListShape, MapShape, Shape, key_default, shape
from podyard.objects.api_types import LIST, MAP, Field
from podyard.objects.documents import Document, is_list, is_mapping


class Absent:
    """There is no value; null is one."""


ABSENT: Final = Absent()


class Comparison(NamedTuple):
    """Which fields differ between an object before and after. No field is in two of them."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


class ItemError(ValueError):
    """An item of a list cannot be told from the others."""


def kind_of(known: Shape, value: Any) -> str:
    """`map`, `list` or `scalar`: as which a value of this shape is treated. What is of no kind that the shape
    knows is treated as one that it knows."""
    if value is not None and value is not ABSENT:
        if is_mapping(value):
            if known.map is not None:
                return "map"
        elif is_list(value):
            if known.list is not None:
                return "list"
        elif known.scalar:
            return "scalar"
    if known.map is not None:
        return "map"
    return "scalar" if known.scalar else "list"


def is_leaf(known: Shape, kind: str) -> bool:
    """Whether a value of that kind is owned as a whole."""
    if kind == "map":
        return known.map is None or known.map.atomic
    return kind == "scalar" or known.list is None or known.list.atomic


def step_of(item: Any, known: ListShape) -> str:
    """The step to an item of a list that is not atomic.

    :raises ItemError: in the reference's words
    """
    if not known.keys:
        if is_mapping(item):
            raise ItemError("associative list without keys has an element that's a map type")
        if is_list(item):
            raise ItemError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        return item_named(item)
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not is_mapping(item):
        raise ItemError("associative list with keys may not have non-map elements")
    keys: Document = {}
    for key in known.keys:
        value = item[key] if key in item else key_default(known.items.type, key)
        if key in item or value is not None:
            keys[key] = value
    if not keys:
        asked = " ".join(f'"{key}"' for key in known.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{asked}] "
            "(and doesn't have default values for any key fields)"
        )
    return item_with(keys)


def steps_of(items: list[Any], known: ListShape) -> list[str]:
    """Of each item.

    :raises ItemError: of the first that has none
    """
    found: list[str] = []
    for at, item in enumerate(items):
        try:
            found.append(step_of(item, known))
        except ItemError as error:
            raise ItemError(f"element {at}: {error}") from error
    return found


def field_of(known: MapShape, key: str) -> Field | None:
    """The type of what `key` holds; None: there is no such key."""
    return known.fields.get(key, known.others)


def fields(value: Any, of: Field) -> FieldSet:
    """The fields that `value` has: leaves, and what stands for itself: items of lists, keys of maps."""
    found = FieldSet()
    known = shape(of)
    kind = kind_of(known, value)
    if kind == "map" and known.map is not None and is_mapping(value):
        for key, item in value.items():
            field = field_of(known.map, key)
            if field is not None:
                _field(found, named(key), item, field, alone=key not in known.map.fields)
    elif kind == "list" and known.list is not None and is_list(value):
        _items(found, value, known.list)
    return found


def _field(into: FieldSet, step: str, value: Any, of: Field, alone: bool) -> None:
    """:param alone: the step stands for itself, whatever lies below it"""
    known = shape(of)
    kind = kind_of(known, value)
    leaf = is_leaf(known, kind)
    if leaf or alone or value is None or value == {}:
        into.members.add(step)
    if not leaf and value:
        below = fields(value, of)
        if below:
            into.children[step] = below


def _items(into: FieldSet, items: list[Any], known: ListShape) -> None:
    """Of several items with one name that name is a member, and nothing below it."""
    held: dict[str, list[Any]] = {}
    for step, item in zip(steps_of(items, known), items, strict=True):
        held.setdefault(step, []).append(item)
    for step, same in held.items():
        if len(same) > 1:
            into.members.add(step)
        else:
            _field(into, step, same[0], known.items, alone=True)


def compare(before: Any, after: Any, of: Field) -> Comparison:
    """What a change from `before` to `after` does."""
    found = Comparison(FieldSet(), FieldSet(), FieldSet())
    _compare(before, after, of, found)
    return found


def _compare(before: Any, after: Any, of: Field, into: Comparison) -> bool:
    """:returns: whether the value as a whole is a leaf that differs"""
    known = shape(of)
    if after is ABSENT:
        kinds = {kind_of(known, before)}
    elif before is ABSENT:
        kinds = {kind_of(known, after)}
    else:
        kinds = {kind_of(known, before), kind_of(known, after)}
    differs = False
    for kind in kinds:
        one, other = content(kind, before), content(kind, after)
        if is_leaf(known, kind) or not (one or other or _implies(known, before, after)):
            differs |= before is ABSENT or after is ABSENT or not equal(before, after)
        elif kind == "map" and known.map is not None:
            _compare_maps(one, other, known.map, into)
        elif known.list is not None:
            _compare_lists(one or [], other or [], known.list, into)
    return differs


def _implies(known: Shape, before: Any, after: Any) -> bool:
    """Whether a structure comes or goes that is not as empty as it looks."""
    return known.map is not None and bool(known.map.implied) and (before is ABSENT) != (after is ABSENT)


def content(kind: str, value: Any) -> Any:
    """The value, if it is the mapping or list that `kind` says; else None."""
    return value if (is_mapping(value) if kind == "map" else is_list(value)) else None


def _compare_maps(before: Document | None, after: Document | None, known: MapShape, into: Comparison) -> None:
    """A structure that is there has its implied fields; if both are there, those that neither has are
    alike."""
    keys = (before or {}).keys() | (after or {}).keys()
    if before is None or after is None:
        keys |= known.implied.keys()
    for key in keys:
        field = field_of(known, key)
        if field is not None:
            _compare_step(named(key), _held_by(before, key, known), _held_by(after, key, known), field, into)


def _held_by(document: Document | None, key: str, known: MapShape) -> Any:
    if document is None:
        return ABSENT
    return document.get(key, known.implied.get(key, ABSENT))


def _compare_step(step: str, before: Any, after: Any, of: Field, into: Comparison) -> None:
    """What comes or goes is a member itself, leaf or not; of what stays, leaves are."""
    below = Comparison(FieldSet(), FieldSet(), FieldSet())
    differs = _compare(before, after, of, below)
    if before is ABSENT:
        into.added.members.add(step)
    elif after is ABSENT:
        into.removed.members.add(step)
    elif differs:
        into.modified.members.add(step)
    for whole, part in zip(into, below, strict=True):
        if part:
            whole.children[step] = part


def _compare_lists(before: list[Any], after: list[Any], known: ListShape, into: Comparison) -> None:
    old, new = _by_step(before, known), _by_step(after, known)
    for step in old.keys() | new.keys():
        was, now = old.get(step, []), new.get(step, [])
        if len(was) <= 1 and len(now) <= 1:
            _compare_step(step, was[0] if was else ABSENT, now[0] if now else ABSENT, known.items, into)
        elif len(was) >= 2 and len(now) >= 2:
            if not equal(was, now):
                into.modified.members.add(step)
        elif len(was) >= 2:
            if now:
                _compare_step(step, ABSENT, now[0], known.items, into)
            into.removed.members.add(step)
        else:
            if was:
                _compare_step(step, was[0], ABSENT, known.items, into)
            into.added.members.add(step)


def _by_step(items: list[Any], known: ListShape) -> dict[str, list[Any]]:
    held: dict[str, list[Any]] = {}
    for step, item in zip(steps_of(items, known), items, strict=True):
        held.setdefault(step, []).append(item)
    return held


def equal(one: Any, other: Any) -> bool:
    """As values of the API: 1 and 1.0 are equal, 1 and true are not."""
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(equal(item, other[key]) for key, item in one.items())
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def problems(value: Any, of: Field, *, duplicates: bool) -> list[tuple[str, str]]:
    """What in `value` is not of its type: paths and the reference's words.

    :param duplicates: whether items of a list may have the same name
    """
    known = shape(of)
    if value is None:
        return []
    kind = kind_of(known, value)
    if kind == "scalar":
        wrong = _wrong_scalar(known.scalar, value)
        return [("", wrong)] if wrong else []
    if kind == "map" and known.map is not None:
        return _map_problems(value, known.map, duplicates)
    return _list_problems(value, known.list, duplicates) if known.list is not None else []


def _wrong_scalar(scalar: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        return f"expected numeric (int or float), got {type_of(value)}"
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{printed(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got {_held(value)}"
    if isinstance(value, dict | list):
        return f"expected any scalar, got {_held(value)}"
    return ""


def _held(value: Any) -> str:
    return f"&{{{printed(value)}}}"


def _map_problems(value: Any, known: MapShape, duplicates: bool) -> list[tuple[str, str]]:
    if not is_mapping(value):
        return [("", f"expected map, got {_held(value)}")]
    found: list[tuple[str, str]] = []
    for key, item in value.items():
        field = field_of(known, key)
        below = (
            [("", "field not declared in schema")] if field is None else problems(item, field, duplicates=duplicates)
        )
        found += [(f".{key}{path}", why) for path, why in below]
    return found


def _list_problems(value: Any, known: ListShape, duplicates: bool) -> list[tuple[str, str]]:
    if not is_list(value):
        return [("", f"expected list, got {_held(value)}")]
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for at, item in enumerate(value):
        start = f"[{at}]"
        if not known.atomic:
            try:
                step = step_of(item, known)
            except ItemError as error:
                return [*found, ("", f"element {at}: {error}")]
            start = spelled(step)
            if step in seen and not duplicates:
                found.append(("", f"duplicate entries for key {start}"))
            seen.add(step)
        found += [(start + path, why) for path, why in problems(item, known.items, duplicates=duplicates)]
    return found


def without_empty(value: Any, of: Field) -> Any:
    """`value` itself, without maps and lists that are empty and that its structures need not have: Go's
    types do not write them either."""
    known = shape(of)
    kind = kind_of(known, value)
    if kind == "list" and known.list is not None and is_list(value):
        for item in value:
            without_empty(item, known.list.items)
    elif kind == "map" and known.map is not None and is_mapping(value):
        for key, item in list(value.items()):
            field = field_of(known.map, key)
            if field is None:
                continue
            without_empty(item, field)
            if not item and field.type.startswith((LIST, MAP)) and not field.required and key in known.map.fields:
                del value[key]
    return value
