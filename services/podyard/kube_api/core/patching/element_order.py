"""The order of a list that a strategic merge patch has joined: that of the patch for what the patch names,
that of the object for the rest, the two interleaved as the object had them.

Source: kubernetes v1.36.2, apimachinery pkg/util/strategicpatch/patch.go, normalizeElementOrder and
mergeSortedSlice. The reference looks each item up by going through the list, here it is a dictionary.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from podyard.kube_api.core.patching.go_words import printed, type_of
from podyard.kube_api.core.patching.refusals import unexpected
from podyard.objects.documents import Document, is_mapping

Identify = Callable[[Any], Hashable]
"""What names an item of a list."""


def identity(value: Any) -> Hashable:
    """What is equal for equal scalars alone: 1 is neither true nor 1.0.

    :raises ApiError: 500 for a mapping or list, which names no item
    """
    if isinstance(value, dict | list):
        raise unexpected(f"an item of a list is named by a scalar, not by {type_of(value)} {printed(value)}")
    return type(value).__name__, value


def identified_by(merge_key: str) -> Identify:
    """Items by the value of this field; scalars by themselves, if it is empty."""
    return (lambda item: identity(key_of(item, merge_key))) if merge_key else identity


def key_of(item: Any, merge_key: str) -> Any:
    """The value that names `item` in its list.

    :raises ApiError: 500, in the reference's words, if it has none
    """
    if not is_mapping(item):
        raise unexpected(f"expected a map[string]interface {{}}, but received a {type_of(item)}")
    if merge_key not in item:
        raise no_merge_key(item, merge_key)
    return item[merge_key]


def no_merge_key(item: Document, merge_key: str) -> Exception:
    return unexpected(f"map: {printed(item)} does not contain declared merge key: {merge_key}")


def ordered(
    merged: Sequence[Any], patch_order: Sequence[Any], live_order: Sequence[Any], identify: Identify
) -> list[Any]:
    """The items of `merged`, each named once or more by one of the orders."""
    by_patch, by_live = _places(patch_order, identify), _places(live_order, identify)
    named = [(identify(item), item) for item in merged]
    patched = sorted((one for one in named if one[0] in by_patch), key=lambda one: by_patch[one[0]])
    rest = [one for one in named if one[0] not in by_patch]
    rest.sort(key=lambda one: by_live.get(one[0], len(by_live)))
    return _interleaved(rest, patched, by_live)


def _places(order: Sequence[Any], identify: Identify) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for at, item in enumerate(order):
        places.setdefault(identify(item), at)
    return places


def _interleaved(
    rest: list[tuple[Hashable, Any]], patched: list[tuple[Hashable, Any]], by_live: dict[Hashable, int]
) -> list[Any]:
    found: list[Any] = []
    at = 0
    for name, item in patched:
        place = by_live.get(name, -1)
        while at < len(rest) and by_live.get(rest[at][0], place) < place:
            found.append(rest[at][1])
            at += 1
        found.append(item)
    return found + [item for _, item in rest[at:]]
