"""An object and what somebody wants of it, made one; and fields taken out of an object.

Source: structured-merge-diff v6.3.2, typed/merge.go and remove.go.
"""

from collections import deque
from typing import Any

from podyard.kube_api.core.patching.field_sets import FieldSet, named
from podyard.kube_api.core.patching.shapes import ListShape, MapShape, shape
from podyard.kube_api.core.patching.typed_values import (
    ABSENT,
    content,
    field_of,
    is_leaf,
    kind_of,
    step_of,
    steps_of,
)
from podyard.objects.api_types import Field
from podyard.objects.documents import Document, is_list, is_mapping


def merge(live: Any, wanted: Any, of: Field) -> Any:
    """`live` with all that `wanted` has; ABSENT if neither has anything. Parts of both are in the result.

    Names of items are unique in lists of `wanted`.
    """
    known = shape(of)
    kind = kind_of(known, live if wanted is ABSENT else wanted)
    one, other = content(kind, live), content(kind, wanted)
    if is_leaf(known, kind) or not (one or other):
        return live if wanted is ABSENT else wanted
    if kind == "map" and known.map is not None:
        return _merge_maps(one or {}, other or {}, known.map)
    return _merge_lists(one or [], other or [], known.list) if known.list is not None else ABSENT


def _merge_maps(live: Document, wanted: Document, known: MapShape) -> Any:
    found: Document = {}
    for key in [*live, *(key for key in wanted if key not in live)]:
        field = field_of(known, key)
        value = ABSENT if field is None else merge(live.get(key, ABSENT), wanted.get(key, ABSENT), field)
        if value is not ABSENT:
            found[key] = value
    return found or ABSENT


def _merge_lists(live: list[Any], wanted: list[Any], known: ListShape) -> Any:
    """Items of `wanted` in its order; those that only `live` has stay before what they stood before."""
    old, new = steps_of(live, known), steps_of(wanted, known)
    mine: dict[str, Any] = {}
    for step, item in zip(old, live, strict=True):
        mine[step] = None if step in mine else item
    theirs = dict(zip(new, wanted, strict=True))
    shared = deque(step for step in new if step in mine)
    found: list[Any] = []
    done: set[str] = set()

    def take(step: str, item: Any) -> None:
        value = merge(item, theirs.get(step, ABSENT), known.items)
        if value is not ABSENT:
            found.append(value)

    left = right = 0
    while left < len(old) or right < len(new):
        if left < len(old) and right < len(new):
            step = old[left]
            if step == new[right]:
                take(step, mine[step])
                done.add(step)
                left, right = left + 1, right + 1
                if shared:
                    shared.popleft()
                continue
            if step in theirs and shared and shared[0] != step:
                left += 1
                continue
        if left < len(old):
            step = old[left]
            if step not in theirs:
                take(step, live[left])
                left += 1
                continue
            if step in done:
                left += 1
        if right < len(new):
            step = new[right]
            take(step, mine.get(step, ABSENT))
            done.add(step)
            right += 1
            if shared and shared[0] == step:
                shared.popleft()
    return found or ABSENT


def remove(value: Any, gone: FieldSet, of: Field) -> Any:
    """`value`, which stays as it is, without these fields. A mapping or list that loses all it has because of
    fields below it is empty then; null is what is left of one that was owned as a whole."""
    known = shape(of)
    kind = kind_of(known, value)
    if kind == "scalar":
        return value
    held = content(kind, value)
    if not held or is_leaf(known, kind):
        return None
    if kind == "map" and known.map is not None:
        return _remove_keys(held, gone, known.map)
    return _remove_items(held, gone, known.list) if known.list is not None else None


def _remove_keys(value: Document, gone: FieldSet, known: MapShape) -> Any:
    found: Document = {}
    matched = False
    for key, item in value.items():
        step = named(key)
        if step in gone.members:
            continue
        below, field = gone.below(step), field_of(known, key)
        if below and field is not None:
            matched = True
            found[key] = _left(item, below, field)
        else:
            found[key] = item
    return found if found or matched else None


def _remove_items(value: list[Any], gone: FieldSet, known: ListShape) -> Any:
    found: list[Any] = []
    matched = False
    for item in value:
        step = step_of(item, known)
        if step in gone.members:
            continue
        below = gone.below(step)
        matched |= bool(below)
        found.append(_left(item, below, known.items) if below else item)
    return found if found or matched else None


def _left(item: Any, gone: FieldSet, of: Field) -> Any:
    left = remove(item, gone, of)
    if left is None:
        return {} if is_mapping(item) else [] if is_list(item) else None
    return left


def with_structures(fields: FieldSet, of: Field | None) -> FieldSet:
    """`fields`, and each field of a structure that any of them lies in. Keys of maps and items of lists are
    not added."""
    known = shape(of) if of is not None else None
    members = set(fields.members)
    children: dict[str, FieldSet] = {}
    for step, child in fields.children.items():
        below: Field | None = None
        if known is not None and step.startswith("f:") and known.map is not None:
            key = step[2:]
            below = field_of(known.map, key)
            if key in known.map.fields:
                members.add(step)
        elif known is not None and step.startswith("k:") and known.list is not None:
            below = known.list.items
        children[step] = with_structures(child, below)
    return FieldSet(members, children)
