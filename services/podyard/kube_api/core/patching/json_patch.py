"""JSON patch: operations one after the other.

Sources: RFC 6902; gopkg.in/evanphx/json-patch.v4 v4.13.0, patch.go, whose liberties these are (indexes from
the end, `replace` of a key that is not there, a `value` left out is null); kubernetes v1.36.2, apiserver
pkg/endpoints/handlers/patch.go and pkg/server/config.go for the limits and the words.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from podyard.kube_api.core.errors import ApiError, bad_request
from podyard.kube_api.core.patching.refusals import check_depth, not_applied, too_deep, wrong_json
from podyard.objects import bounds
from podyard.objects.documents import Document, copy, is_list, is_mapping, plain

MOST_OPERATIONS: Final = 10_000
COPIED_BYTES: Final = 3 * 1024 * 1024
"""What all operations `copy` of one patch may add as JSON."""
SHIFTED_ITEMS: Final = 100_000_000
"""How many list items may move by one place while a patch adds to lists and removes from them: some 0.1 s.
The reference has no such limit."""

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")


Place: TypeAlias = Document | list[Any]
"""What a pointer's last part is a key or an index of."""


class _RefusedError(Exception):
    """An operation does not apply."""


def json_patch(document: Document, patch: Any) -> Document:
    """`document`, which stays as it is, after the operations of `patch`.

    :param patch: as decoded
    :raises ApiError: 400 if `patch` is no list of operations, 413 if it is too long, 422 if an operation does
        not apply: in the reference's words, which do not say why; the error's cause says it
    """
    operations = _operations(patch)
    patching = _Patching(plain(document))
    try:
        for operation in operations:
            patching.apply(operation)
        if not is_mapping(patching.root):
            raise _RefusedError("the object becomes a list")
        _check_depth(patching.root)
    except _RefusedError as error:
        raise not_applied() from error
    return patching.root


def _operations(patch: Any) -> list[Document]:
    check_depth(patch)
    if patch is None:
        return []
    if not is_list(patch):
        raise wrong_json(patch, "[]handlers.jsonPatchOp")
    if len(patch) > MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    for operation in patch:
        if not is_mapping(operation):
            raise wrong_json(operation, "handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name, ""), str):
                raise bad_request(f"error decoding patch: field {name} of a JSON patch's operation is no string")
    return patch


class _Patching:
    """One document between operations."""

    def __init__(self, document: Document) -> None:
        self.root: Any = document
        self._copied = 0
        self._shifted = 0
        self._kinds: dict[str, Callable[[Document], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Document) -> None:
        known = self._kinds.get(operation.get("op", ""))
        if known is None:
            raise _RefusedError("there is no such operation")
        try:
            known(operation)
        except _RefusedError as error:
            raise _RefusedError(f"{operation['op']} {operation.get('path')}: {error}") from error

    def _add(self, operation: Document) -> None:
        self._insert(*self._place(operation, "path"), plain(operation.get("value")))

    def _remove(self, operation: Document) -> None:
        self._delete(*self._place(operation, "path"))

    def _replace(self, operation: Document) -> None:
        value = plain(operation.get("value"))
        if operation.get("path") == "":
            if not isinstance(value, dict | list):
                raise _RefusedError("the object can be replaced by a mapping alone")
            self.root = value
            return
        place, key = self._place(operation, "path")
        if is_mapping(place):
            place[key] = value
        elif is_list(place):
            place[_index(key, len(place))] = value

    def _move(self, operation: Document) -> None:
        place, key = self._place(operation, "from")
        value = _read(place, key)
        self._delete(place, key)
        self._insert(*self._place(operation, "path"), value)

    def _copy(self, operation: Document) -> None:
        value = _read(*self._place(operation, "from"))
        place, key = self._place(operation, "path")
        _check_depth(value)
        self._copied += len(msgspec.json.encode(value))
        if self._copied > COPIED_BYTES:
            raise _RefusedError(f"the patch copies {self._copied} bytes, at most {COPIED_BYTES} are allowed")
        self._insert(place, key, copy({"": value})[""])

    def _test(self, operation: Document) -> None:
        found = self.root if operation.get("path") == "" else _read(*self._place(operation, "path"))
        if not _same(found, operation.get("value")):
            raise _RefusedError("the test failed")

    def _place(self, operation: Document, field: str) -> tuple[Place, str]:
        """The mapping or list that holds what the pointer names, and its key there. What stands before the
        pointer's first slash does not count."""
        _, *parts = operation.get(field, "").split("/")
        if not parts:
            raise _RefusedError(f"field {field} is missing, or names the object itself")
        *way, key = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        place: Place = self.root
        for part in way:
            held = _read(place, part)
            if not (is_mapping(held) or is_list(held)):
                raise _RefusedError(f"{part} of {operation[field]} is neither a mapping nor a list")
            place = held
        return place, key

    def _insert(self, place: Place, key: str, value: Any) -> None:
        if is_mapping(place):
            place[key] = value
        elif is_list(place) and key == "-":
            place.append(value)
        elif is_list(place):
            at = _index(key, len(place) + 1)
            self._shift(len(place) - at)
            place.insert(at, value)

    def _delete(self, place: Place, key: str) -> None:
        if is_list(place):
            at = _index(key, len(place))
            self._shift(len(place) - at)
            del place[at]
        elif is_mapping(place) and key in place:
            del place[key]
        else:
            raise _RefusedError(f"there is no {key} to remove")

    def _shift(self, items: int) -> None:
        self._shifted += items
        if self._shifted > SHIFTED_ITEMS:
            raise _RefusedError(
                f"the patch moves items of lists more than {SHIFTED_ITEMS} times: replace a long list as a whole"
            )


def _read(place: Place, key: str) -> Any:
    if is_mapping(place):
        return place.get(key)
    return place[_index(key, len(place))] if is_list(place) else None


def _index(key: str, length: int) -> int:
    """`key` as an index below `length`; those below 0 count from the end."""
    if _INDEX.fullmatch(key) is None:
        raise _RefusedError(f"{key} is no index of a list")
    at = int(key)
    if not -length <= at < length:
        raise _RefusedError(f"the list ends before index {key}")
    return at + length if at < 0 else at


def _same(found: Any, wanted: Any) -> bool:
    """Whether two values are the same as JSON: 1 is neither 1.0 nor true. It takes no longer than the
    smaller is large."""
    left = [(found, wanted)]
    while left:
        one, other = left.pop()
        if type(one) is not type(other):
            return False
        if is_mapping(one):
            if one.keys() != other.keys():
                return False
            left += [(item, other[key]) for key, item in one.items()]
        elif is_list(one):
            if len(one) != len(other):
                return False
            left += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _check_depth(value: Any) -> None:
    if too_deep(value):
        raise _RefusedError(f"mappings and lists are nested more than {bounds.NESTING} deep")
