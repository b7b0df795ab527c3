"""What the ways to patch refuse alike.

Source: kubernetes v1.36.2, apimachinery pkg/api/errors/errors.go (NewGenericServerResponse) and apiserver
pkg/endpoints/handlers/patch.go.
"""

from typing import Any

from podyard.kube_api.core.errors import ApiError, bad_request
from podyard.objects import bounds
from podyard.objects.documents import is_list, is_mapping


def not_applied() -> ApiError:
    """A patch is well-formed, but does not fit the object. The reference says no more than this."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request")


def wrong_json(value: Any, go_type: str) -> ApiError:
    """A patch is JSON of another kind than its media type has."""
    return bad_request(f"error decoding patch: json: cannot unmarshal {_kind(value)} into Go value of type {go_type}")


def unexpected(message: str) -> ApiError:
    """What the reference knows no code for: it answers 500 without a reason."""
    return ApiError(500, "", message)


def check_depth(patch: Any) -> None:
    """:raises ApiError: 400 if a patch is nested more deeply than an object may be"""
    if too_deep(patch):
        raise bad_request(f"error decoding patch: mappings and lists are nested more than {bounds.NESTING} deep")


def too_deep(value: Any) -> bool:
    """Whether `value` is nested more deeply than an object may be."""
    level: list[Any] = [value]
    for _ in range(bounds.NESTING + 1):
        below: list[Any] = []
        nested = False
        for part in level:
            if is_mapping(part):
                nested = True
                below += part.values()
            elif is_list(part):
                nested = True
                below += part
        if not nested:
            return False
        level = below
    return True


def _kind(value: Any) -> str:
    if is_mapping(value):
        return "object"
    if is_list(value):
        return "array"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "null"
