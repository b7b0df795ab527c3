"""Strategic merge patch: mappings are joined, lists too where the type says so, and directives say the
rest.

Source: kubernetes v1.36.2, apimachinery pkg/util/strategicpatch/patch.go (StrategicMergeMapPatch) and
apiserver pkg/endpoints/handlers/patch.go (interpretStrategicMergePatchError).
"""

from collections import deque
from collections.abc import Hashable
from typing import Any, Final

from podyard.kube_api.core.errors import ApiError, bad_request
from podyard.kube_api.core.patching import patch_types
from podyard.kube_api.core.patching.element_order import identified_by, identity, key_of, no_merge_key, ordered
from podyard.kube_api.core.patching.go_words import printed, type_of
from podyard.kube_api.core.patching.refusals import check_depth, not_applied, unexpected, wrong_json
from podyard.objects.documents import Document, copy, is_list, is_mapping, strip_nulls

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
ELEMENT_ORDER: Final = "$setElementOrder"

_ACCEPTED_OF_CUSTOM: Final = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"


def strategic(document: Document, patch: Any, definition: str | None) -> Document:
    """`document`, which stays as it is, joined with `patch`, which stays as well.

    :param patch: as decoded
    :param definition: of the document's kind (`api_types.definition_of`); None: a custom resource
    :raises ApiError: 400 if a directive is malformed, 422 for lists of lists, 500 for what contradicts the
        types, each in the reference's words; 415 for a custom resource, whose lists nobody can tell how to
        join
    """
    if definition is None:
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: " + _ACCEPTED_OF_CUSTOM,
        )
    check_depth(patch)
    if not is_mapping(patch):
        raise wrong_json(patch, "map[string]interface {}")
    return strip_nulls(_joined(copy(document), copy(patch), definition))


def _joined(live: Document, patch: Document, type_name: str) -> Document:
    """Both are taken to pieces."""
    if DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(live, patch)
    _lists_with_order(live, patch, type_name)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            field = _target(key, DELETE_FROM, "invalid patch format of primitive list")
            if value is None:
                live.pop(field, None)
            elif is_list(value) and is_list(live.get(field)):
                patch_types.items(type_name, field)
                live[field] = _without(live[field], value)
        elif value is None:
            live.pop(key, None)
        else:
            _set(live, key, value, type_name)
    return live


def _set(live: Document, key: str, value: Any, type_name: str) -> None:
    found = live.get(key)
    if is_mapping(found) and is_mapping(value):
        kind = patch_types.field(type_name, key)
        live[key] = value if kind.strategy == "replace" else _joined(found, value, kind.type)
    elif is_list(found) and is_list(value):
        kind = patch_types.items(type_name, key)
        live[key] = _joined_lists(found, value, kind) if kind.strategy == "merge" else value
    elif is_mapping(value) and DIRECTIVE in value:
        live.pop(key, None)
    else:
        live[key] = _plain(value)


def _directed(patch: Document) -> Document:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Document) -> ApiError:
    return unexpected(f"unknown patch type: {printed(directive)} in map: {printed(patch)}")


def _retain_keys(live: Document, patch: Document) -> None:
    """Keys that `$retainKeys` does not name go; those of the patch it must name."""
    if RETAIN_KEYS not in patch:
        return
    named = patch.pop(RETAIN_KEYS)
    if not is_list(named):
        raise bad_request("invalid patch format of retainKeys")
    kept = {one for one in named if isinstance(one, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, ELEMENT_ORDER)) and key not in kept:
            raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in live if key not in kept]:
        del live[key]


def _target(key: str, directive: str, malformed: str) -> str:
    """The field that `$directive/field` is about."""
    name, slash, field = key.partition("/")
    if not slash or name != directive:
        raise bad_request(malformed)
    return field


def _lists_with_order(live: Document, patch: Document, type_name: str) -> None:
    """Join each list that has a `$setElementOrder`; neither stays in the patch."""
    for key in [key for key in patch if key.startswith(ELEMENT_ORDER)]:
        order = _list(patch.pop(key))
        field = _target(key, ELEMENT_ORDER, "invalid patch format of setElementOrder list")
        found = _list(live[field]) if field in live else None
        wanted = _list(patch[field]) if field in patch else None
        kind = patch_types.items(type_name, field)
        _check_order(wanted or [], order, kind.merge_key)
        if found is None and wanted is None:
            continue
        if wanted is None:
            merged = found or []
        elif found is None:
            merged = _plain(wanted)
        else:
            merged = _joined_lists(found, wanted, kind) if kind.strategy == "merge" else wanted
        if not found and not wanted:
            raise unexpected("no elements in any of the given slices")
        _check_items(found or [], wanted or [])
        live_order = _order_left(found or [], wanted or [], kind.merge_key)
        live[field] = ordered(merged, order, live_order, identified_by(kind.merge_key))
        patch.pop(field, None)


def _order_left(live: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    """The live list that the order is made by: where items are deleted, those that come take their places.

    So it is in the reference, which deletes within the list that it compares with, and appends to what is
    left. Source: patch.go, mergeSliceWithSpecialElements (deleteMatchingEntries).
    """
    deleted = {
        identity(item[merge_key])
        for item in patch
        if is_mapping(item) and item.get(DIRECTIVE) == "delete" and merge_key in item
    }
    if not deleted:
        return live
    named = identified_by(merge_key)
    left = [item for item in live if named(item) not in deleted]
    there = {named(item) for item in left}
    come = [item for item in patch if DIRECTIVE not in item and named(item) not in there]
    return (left + come)[: len(live)]


def _list(value: Any) -> list[Any]:
    if not is_list(value):
        raise unexpected(f"expected a []interface {{}}, but received a {type_of(value)}")
    return value


def _check_order(wanted: list[Any], order: list[Any], merge_key: str) -> None:
    """What the patch has is in the order's list, and in its order."""
    if not wanted or not order:
        return
    identify = identified_by(merge_key)
    left = deque(item for item in wanted if not (is_mapping(item) and item.get(DIRECTIVE) == "delete"))
    for place in order:
        while left and is_mapping(left[0]) and DIRECTIVE in left[0]:
            left.popleft()
        if not left:
            return
        if identify(left[0]) == identify(place):
            left.popleft()
    if left:
        raise unexpected(
            f"The order in patch list:\n{printed(wanted)}\n doesn't match {ELEMENT_ORDER} list:\n{printed(order)}\n"
        )


def _check_items(live: list[Any], patch: list[Any]) -> bool:
    """All items of both lists are of one type, which is no list.

    :returns: whether they are mappings
    """
    first = (live or patch)[0]
    if is_list(first):
        raise not_applied()
    if first is None or any(type_of(item) != type_of(first) for items in (live, patch) for item in items):
        raise unexpected(f"list element types are not identical: [{printed(live)} {printed(patch)}]")
    return is_mapping(first)


def _joined_lists(live: list[Any], patch: list[Any], kind: patch_types.Patched) -> list[Any]:
    if not live and not patch:
        return live
    if not _check_items(live, patch):
        merged = list({identity(item): item for item in live + patch}.values())
        return ordered(merged, patch, live, identity)
    if not kind.merge_key:
        raise unexpected(f"cannot merge lists without merge key for {patch_types.go_kind(kind.type)}")
    live, patch = _obeyed(live, patch, kind.merge_key)
    merged = _merged(live, patch, kind)
    return ordered(merged, patch, live, identified_by(kind.merge_key))


def _obeyed(live: list[Document], patch: list[Document], merge_key: str) -> tuple[list[Document], list[Document]]:
    """Both lists after the directives of the patch, which are not in it any more."""
    wanted: list[Document] = []
    deleted: set[Hashable] = set()
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            wanted.append(item)
        elif directive == "delete":
            if merge_key not in item:
                raise no_merge_key(item, merge_key)
            deleted.add(identity(item[merge_key]))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise unexpected("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if replace:
        return wanted, []
    if deleted:
        live = [item for item in live if merge_key not in item or identity(item[merge_key]) not in deleted]
    return live, wanted


def _merged(live: list[Document], patch: list[Document], kind: patch_types.Patched) -> list[Document]:
    """The items of `live`, in place, joined with those of the patch that have the same name; others after
    them."""
    places: dict[Hashable, int] = {}
    for at, item in enumerate(live):
        if kind.merge_key in item:
            places.setdefault(identity(item[kind.merge_key]), at)
    merged = list(live)
    for item in patch:
        name = identity(key_of(item, kind.merge_key))
        at = places.get(name)
        if at is None:
            places[name] = len(merged)
            merged.append(item)
        else:
            merged[at] = _joined(merged[at], item, kind.type)
    return merged


def _without(live: list[Any], deleted: list[Any]) -> list[Any]:
    if not live and not deleted:
        return live
    if _check_items(live, deleted):
        raise bad_request("invalid patch format of primitive list")
    gone = {identity(item) for item in deleted}
    return [item for item in live if identity(item) not in gone]


def _plain(value: Any) -> Any:
    """What a patch adds: without nulls, and without the parts that have directives."""
    if is_mapping(value):
        return {
            key: _plain(item)
            for key, item in value.items()
            if item is not None and not (is_mapping(item) and DIRECTIVE in item)
        }
    if is_list(value):
        return [_plain(item) for item in value if not (is_mapping(item) and DIRECTIVE in item)]
    return value
