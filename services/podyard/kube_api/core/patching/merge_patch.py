"""JSON merge patch: mappings are joined, null removes a key, everything else is put in place of what was
there.

Sources: RFC 7386; gopkg.in/evanphx/json-patch.v4 v4.13.0, merge.go; kubernetes v1.36.2, apiserver
pkg/endpoints/handlers/patch.go.
"""

from typing import Any

from podyard.kube_api.core.errors import bad_request
from podyard.kube_api.core.patching.refusals import check_depth, wrong_json
from podyard.objects.documents import Document, copy, is_list, is_mapping, plain


def merge_patch(document: Document, patch: Any) -> Document:
    """`document`, which stays as it is, joined with `patch`.

    :param patch: as decoded
    :raises ApiError: 400 if `patch` is no mapping: an object would be none afterwards
    """
    check_depth(patch)
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not is_mapping(patch):
        raise wrong_json(patch, "map[string]interface {}")
    return _joined(copy(document), patch)


def _joined(document: Document, patch: Document) -> Document:
    """`document` itself, changed."""
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        found = document.get(key)
        if not is_mapping(found):
            document[key] = _without_nulls(value)
        elif is_mapping(value):
            _joined(found, value)
        else:
            document[key] = plain(value)
    return document


def _without_nulls(value: Any) -> Any:
    """A copy. Keys of mappings that are null go, also of those within lists; items of lists stay."""
    if is_mapping(value):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if is_list(value) else value
