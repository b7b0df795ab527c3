"""Sets of fields of an object: who owns what, as `metadata.managedFields` holds it.

A step of a path is spelled as in `fieldsV1`: `f:replicas`, `k:{"name":"web"}`, `v:"finalizer"`, `i:0`.
Numbers are spelled so that 1 and 1.0 are one name.

Sources: structured-merge-diff v6.3.2, fieldpath/set.go, serialize.go, serialize-pe.go, element.go;
apimachinery v0.36.2, pkg/util/managedfields/internal/fields.go.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from podyard.kube_api.core.patching.go_words import printed, quoted
from podyard.objects import bounds
from podyard.objects.documents import Document, is_list, is_mapping

_SELF: Final = "."
_HTML: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"})
_EXACT: Final = 2**53

KEPT_STEPS: Final = 2048
"""Steps of paths whose reading and order are remembered."""
LONGEST_KEPT: Final = 256
"""Characters of a step that is remembered; an item of a set may be as long as an object."""


class FieldSet:
    """Fields, as a tree. A set is not changed any more once somebody else holds it, so that sets share
    parts."""

    __slots__ = ("children", "members")

    def __init__(self, members: Iterable[str] = (), children: dict[str, "FieldSet"] | None = None) -> None:
        """
        :param members: steps that lead to members
        :param children: what lies below a step
        """
        self.members = set(members)
        self.children: dict[str, FieldSet] = {} if children is None else children

    def __bool__(self) -> bool:
        return bool(self.members) or any(self.children.values())

    def below(self, step: str) -> "FieldSet":
        """The members that lie below `step`."""
        return self.children.get(step, EMPTY)

    def into(self, step: str) -> "FieldSet":
        """The tree below `step`, made if there is none, to be filled."""
        return self.children.setdefault(step, FieldSet())

    def __or__(self, other: "FieldSet") -> "FieldSet":
        children = dict(self.children)
        for step, child in other.children.items():
            mine = children.get(step)
            children[step] = child if mine is None else mine | child
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        both = {step: child & other.children[step] for step, child in self.children.items() if step in other.children}
        return FieldSet(self.members & other.members, {step: child for step, child in both.items() if child})

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        children: dict[str, FieldSet] = {}
        for step, child in self.children.items():
            theirs = other.children.get(step)
            left = child if theirs is None else child - theirs
            if left:
                children[step] = left
        return FieldSet(self.members - other.members, children)

    def without(self, steps: Iterable[str]) -> "FieldSet":
        """Without the fields at these steps and all below them."""
        gone = set(steps)
        kept = {step: child for step, child in self.children.items() if step not in gone}
        return FieldSet(self.members - gone, kept)

    def paths(self) -> Iterator[str]:
        """Each member as the reference spells it, `.spec.ports[port=80,protocol="TCP"].name`, in its
        order."""
        for step in sorted(self.members, key=_ordered):
            yield spelled(step)
        for step in sorted(self.children, key=_ordered):
            start = spelled(step)
            for rest in self.children[step].paths():
                yield start + rest

    def document(self) -> Document:
        """As `fieldsV1`."""
        found: Document = {}
        for step in sorted(self.members | self.children.keys(), key=_ordered):
            child = self.children.get(step)
            below = child.document() if child is not None else {}
            found[step] = {_SELF: {}, **below} if below and step in self.members else below
        return found


EMPTY: Final = FieldSet()


def of_path(*names: str) -> FieldSet:
    """The field at this path alone."""
    *way, last = names
    found = FieldSet([named(last)])
    for name in reversed(way):
        found = FieldSet((), {named(name): found})
    return found


def read(fields: Any) -> FieldSet:
    """From `fieldsV1`. Steps of a kind that nobody knows are left out.

    :raises ValueError: if it is none
    """
    return _read(fields, bounds.NESTING)


def _read(fields: Any, depth: int) -> FieldSet:
    if not is_mapping(fields):
        raise ValueError("fieldsV1 is a mapping of mappings")
    if not depth:
        raise ValueError(f"fieldsV1 is nested more than {bounds.NESTING} deep")
    found = FieldSet()
    for text, below in fields.items():
        step = None if text == _SELF else _step_of(text)
        if step is None:
            continue
        child = _read(below, depth - 1)
        if child:
            found.children[step] = child
        if not child or _SELF in below:
            found.members.add(step)
    return found


def _step_of(text: str) -> str | None:
    """
    :raises ValueError: it is no step
    """
    return (_step if len(text) <= LONGEST_KEPT else _step.__wrapped__)(text)


def _ordered(step: str) -> tuple[int, Any]:
    return (_order if len(step) <= LONGEST_KEPT else _order.__wrapped__)(step)


@lru_cache(maxsize=KEPT_STEPS)
def _step(text: str) -> str | None:
    kind, colon, rest = text[:1], text[1:2], text[2:]
    if colon != ":":
        raise ValueError(f"missing colon: {text}")
    if kind == "f":
        return text
    if kind == "i":
        return f"i:{int(rest)}"
    if kind not in ("k", "v"):
        return None
    value = msgspec.json.decode(rest)
    if kind == "v":
        return item_named(value)
    if not is_mapping(value):
        raise ValueError(f"no mapping: {text}")
    return item_with(value)


def named(field: str) -> str:
    """The step to a field."""
    return f"f:{field}"


def item_named(value: Any) -> str:
    """The step to an item of a set."""
    return f"v:{_json(value)}"


def item_with(keys: Document) -> str:
    """The step to the item that has these values."""
    return f"k:{_json(keys)}"


def _json(value: Any) -> str:
    return escaped(msgspec.json.encode(_one_spelling(value), order="sorted").decode())


def escaped(json: str) -> str:
    """JSON as Go writes it: what HTML could mistake for its own is escaped."""
    return json.translate(_HTML)


def _one_spelling(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return {key: _one_spelling(item) for key, item in value.items()} if is_mapping(value) else value


@lru_cache(maxsize=KEPT_STEPS)
def _order(step: str) -> tuple[int, Any]:
    kind, rest = step[0], step[2:]
    if kind == "f":
        return 0, rest
    if kind == "k":
        return 1, [(name, _value_order(value)) for name, value in msgspec.json.decode(rest).items()]
    return (2, _value_order(msgspec.json.decode(rest))) if kind == "v" else (3, int(rest))


def _value_order(value: Any) -> tuple[int, Any]:
    """Numbers, texts, truths, lists, mappings, null."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    if value is None:
        return 5, 0
    return (3 if is_list(value) else 4), msgspec.json.encode(value)


def spelled(step: str) -> str:
    """A step as the reference prints it."""
    kind, rest = step[0], step[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = msgspec.json.decode(rest)
    if kind == "v":
        return f"[={_value(value)}]"
    return f"[{','.join(f'{name}={_value(item)}' for name, item in value.items())}]"


def _value(value: Any) -> str:
    if value is None:
        return "null"
    return quoted(value) if isinstance(value, str) else printed(value)
