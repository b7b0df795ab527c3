"""Schemas of custom kinds: what of an object they know, what they fill in, and what they refuse.

Documents are changed in place. Rules in CEL (`x-kubernetes-validations`) are not evaluated. A value that was
there before, and stays as it is, is not refused.

Sources: apiextensions-apiserver v0.36.2, pkg/apiserver/schema/pruning, schema/defaulting, schema/objectmeta,
pkg/apiserver/validation (validation.go, ratcheting.go); kube-openapi, pkg/validation/errors for the words.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from podyard.objects import times
from podyard.objects.documents import Document, copy, is_list, is_mapping
from podyard.objects.faults import MOST, Faults, shown

ANY_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_OF_OBJECTS: Final = ("apiVersion", "kind", "metadata")
_DEEPEST: Final = 100
"""Levels that are looked at: no object is deeper."""
_LONGEST_PATTERN: Final = 1024
_LONGEST_MATCHED: Final = 512
"""Characters of a text that is held against a pattern: unlike Go's, Python's expressions may take long."""
_ABSENT: Final = object()

Schema: TypeAlias = Mapping[str, Any]


# ---- what is not known -------------------------------------------------------------------------------------


def prune(schema: Schema, document: Document) -> list[str]:
    """Take out the fields that the schema does not have; returns where they were."""
    gone: list[str] = []
    _prune(schema, document, "", gone, embedded=True, depth=0)
    return gone


def _prune(schema: Schema, value: Any, path: str, gone: list[str], *, embedded: bool, depth: int) -> None:
    if depth > _DEEPEST:
        return
    if is_list(value):
        items = schema.get("items")
        if is_mapping(items):
            for at, item in enumerate(value):
                _prune(items, item, f"{path}[{at}]", gone, embedded=items.get(EMBEDDED) is True, depth=depth + 1)
        return
    if not is_mapping(value):
        return
    properties, more = _properties(schema), schema.get("additionalProperties")
    for key in list(value):
        below = f"{path}.{key}" if path else key
        if embedded and key in _OF_OBJECTS:
            continue
        known = properties.get(key, more)
        if is_mapping(known):
            _prune(known, value[key], below, gone, embedded=known.get(EMBEDDED) is True, depth=depth + 1)
        elif known is not True and schema.get(ANY_FIELDS) is not True:
            del value[key]
            if len(gone) < MOST:
                gone.append(below)


# ---- defaults ----------------------------------------------------------------------------------------------


def fill(schema: Schema, document: Document) -> None:
    """Fill in defaults where there is nothing, or a null that may not be there."""
    _fill(schema, document, 0)


def _fill(schema: Schema, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        return
    if is_list(value):
        items = schema.get("items")
        if is_mapping(items):
            for item in value:
                _fill(items, item, depth + 1)
        return
    if not is_mapping(value):
        return
    properties = _properties(schema)
    for key, known in properties.items():
        if "default" in known and (key not in value or (value[key] is None and known.get("nullable") is not True)):
            value[key] = copy({"value": known["default"]})["value"]
    more = schema.get("additionalProperties")
    for key, inner in value.items():
        known = properties.get(key, more)
        if is_mapping(known):
            _fill(known, inner, depth + 1)


# ---- what is refused ---------------------------------------------------------------------------------------


def check(faults: Faults, schema: Schema, document: Document, old: Document | None = None) -> None:
    """Add what the schema refuses, but for what `old` has already."""
    _Check(faults).value(schema, document, _ABSENT if old is None else old, "", 0, root=True)


class _Check:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def value(self, schema: Schema, value: Any, old: Any, path: str, depth: int, *, root: bool = False) -> None:
        if depth > _DEEPEST or self._faults.enough or (old is not _ABSENT and _same(value, old)):
            return
        if not self._is_of_type(schema, value, path):
            return
        self._enum(schema, value, path)
        if is_mapping(value):
            self._mapping(schema, value, old, path, depth, root=root)
        elif is_list(value):
            self._list(schema, value, old, path, depth)
        elif isinstance(value, str):
            self._text(schema, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(schema, value, path)
        self._several(schema, value, path, depth)

    def _is_of_type(self, schema: Schema, value: Any, path: str) -> bool:
        type_ = schema.get("type")
        if value is None:
            if schema.get("nullable") is True or type_ is None:
                return False
            self._wrong_type(path, "null", str(type_))
            return False
        if schema.get(INT_OR_STRING) is True:
            if not isinstance(value, str) and not _is_whole(value):
                self._wrong_type(path, _type_of(value), "integer,string")
                return False
            return True
        if type_ is None or _is_of(value, str(type_)):
            return True
        self._wrong_type(path, _type_of(value), str(type_))
        return False

    def _wrong_type(self, path: str, found: str, wanted: str) -> None:
        self._invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')

    def _invalid(self, path: str, value: Any, told: str) -> None:
        self._faults.invalid(path, value, told)

    def _enum(self, schema: Schema, value: Any, path: str) -> None:
        allowed = schema.get("enum")
        if is_list(allowed) and not any(_same(value, one) for one in allowed):
            listed = ", ".join(shown(one) for one in allowed)
            self._faults.add(
                path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}"
            )

    def _mapping(self, schema: Schema, value: Document, old: Any, path: str, depth: int, *, root: bool) -> None:
        properties, more = _properties(schema), schema.get("additionalProperties")
        required = schema.get("required")
        needed = {str(one) for one in required} if is_list(required) else set[str]()
        before = old if is_mapping(old) else {}
        for key in sorted(value.keys() | needed):
            below = f"{path}.{key}" if path else key
            if key not in value:
                self._faults.required(below)
                continue
            known = properties.get(key, more)
            if is_mapping(known) and not (root and key in _OF_OBJECTS):
                self.value(known, value[key], before.get(key, _ABSENT), below, depth + 1)
        most, least = schema.get("maxProperties"), schema.get("minProperties")
        if isinstance(most, int) and len(value) > most:
            self._faults.too_many(path, len(value), most)
        if isinstance(least, int) and len(value) < least:
            self._invalid(path, len(value), f"{path} in body should have at least {least} properties")

    def _list(self, schema: Schema, value: list[Any], old: Any, path: str, depth: int) -> None:
        most, least = schema.get("maxItems"), schema.get("minItems")
        if isinstance(most, int) and len(value) > most:
            self._faults.too_many(path, len(value), most)
        if isinstance(least, int) and len(value) < least:
            self._invalid(path, len(value), f"{path} in body should have at least {least} items")
        self._unique(schema, value, path)
        items = schema.get("items")
        if not is_mapping(items):
            return
        keys = _list_keys(schema)
        before = {_identity(item, keys): item for item in old} if keys and is_list(old) else {}
        for at, item in enumerate(value):
            known = before.get(_identity(item, keys), _ABSENT) if keys else _ABSENT
            self.value(items, item, known, f"{path}[{at}]", depth + 1)

    def _unique(self, schema: Schema, value: list[Any], path: str) -> None:
        """Source: apiextensions-apiserver, pkg/apiserver/schema/listtype/validation.go."""
        keys = _list_keys(schema)
        if not keys and schema.get("x-kubernetes-list-type") != "set":
            return
        seen: set[str] = set()
        for at, item in enumerate(value):
            name = _identity(item, keys)
            if name in seen:
                told = {key: item.get(key) for key in keys} if keys and is_mapping(item) else item
                self._faults.duplicate(f"{path}[{at}]", told)
            seen.add(name)

    def _text(self, schema: Schema, value: str, path: str) -> None:
        most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
        if isinstance(most, int) and len(value) > most:
            self._faults.too_long(path, most)
        if isinstance(least, int) and len(value) < least:
            self._invalid(path, value, f"{path} in body should be at least {least} chars long")
        if isinstance(pattern, str) and len(value) <= _LONGEST_MATCHED:
            compiled = _compiled(pattern)
            if compiled is not None and compiled.search(value) is None:
                self._invalid(path, value, f"{path} in body should match '{pattern}'")
        if schema.get("format") == "date-time" and not _is_time(value):
            self._invalid(path, value, f'{path} in body must be of type date-time: "{value}"')

    def _number(self, schema: Schema, value: float, path: str) -> None:
        most, least, step = schema.get("maximum"), schema.get("minimum"), schema.get("multipleOf")
        if isinstance(most, int | float):
            alone = schema.get("exclusiveMaximum") is True
            if value > most or (alone and value == most):
                self._invalid(
                    path, value, f"{path} in body should be less than {'' if alone else 'or equal to '}{most}"
                )
        if isinstance(least, int | float):
            alone = schema.get("exclusiveMinimum") is True
            if value < least or (alone and value == least):
                word = "greater than" if alone else "greater than or equal to"
                self._invalid(path, value, f"{path} in body should be {word} {least}")
        if isinstance(step, int | float) and step > 0 and not float(value / step).is_integer():
            self._invalid(path, value, f"{path} in body should be a multiple of {step}")

    def _several(self, schema: Schema, value: Any, path: str, depth: int) -> None:
        """allOf, anyOf, oneOf, not."""
        if is_list(every := schema.get("allOf")):
            for one in every:
                if is_mapping(one):
                    self.value(one, value, _ABSENT, path, depth + 1)
        if is_list(some := schema.get("anyOf")) and not any(self._fits(one, value, depth) for one in some):
            self._invalid(path, "", f'"{path}" must validate at least one schema (anyOf)')
        if is_list(single := schema.get("oneOf")):
            fitting = sum(self._fits(one, value, depth) for one in single)
            if fitting != 1:
                found = "none valid" if not fitting else f"{fitting} valid alternatives"
                self._invalid(path, "", f'"{path}" must validate one and only one schema (oneOf). Found {found}')
        if is_mapping(never := schema.get("not")) and self._fits(never, value, depth):
            self._invalid(path, "", f'"{path}" must not validate the schema (not)')

    def _fits(self, schema: Any, value: Any, depth: int) -> bool:
        if not is_mapping(schema):
            return True
        faults = Faults()
        _Check(faults).value(schema, value, _ABSENT, "", depth + 1)
        return not faults


# ---- parts -------------------------------------------------------------------------------------------------


def _properties(schema: Schema) -> Mapping[str, Any]:
    found = schema.get("properties")
    return {key: value for key, value in found.items() if is_mapping(value)} if is_mapping(found) else {}


def _list_keys(schema: Schema) -> list[str]:
    keys = schema.get("x-kubernetes-list-map-keys")
    return [str(key) for key in keys] if schema.get("x-kubernetes-list-type") == "map" and is_list(keys) else []


def _identity(item: Any, keys: list[str]) -> str:
    if keys and is_mapping(item):
        return repr([item.get(key) for key in keys])
    return repr(item)


def _is_of(value: Any, type_: str) -> bool:
    match type_:
        case "object":
            return is_mapping(value)
        case "array":
            return is_list(value)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_whole(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return True


def _is_whole(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _type_of(value: Any) -> str:
    if is_mapping(value):
        return "object"
    if is_list(value):
        return "array"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def _same(one: Any, other: Any) -> bool:
    """1 is not true."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_time(value: str) -> bool:
    try:
        times.seconds_of(value)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=8)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Patterns are Go's; one that Python cannot read is not checked."""
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        return re.compile(re.sub(r"\\z", r"\\Z", pattern).replace("\\Q", "").replace("\\E", ""))
    except re.error:
        return None
