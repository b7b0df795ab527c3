"""What is refused, as the API server refuses it: a `Status` with code, reason, details and the reference's
words.

Source: kubernetes v1.36.2, staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from podyard.objects.documents import Document

INVALID: Final = "Invalid"
RETRY_AFTER_S: Final = 1
"""After which a version that is not there yet may be asked for again."""


class Cause(NamedTuple):
    """One of several things that are wrong."""

    reason: str
    """FieldValueInvalid, FieldManagerConflict, ..."""
    message: str
    field: str = ""
    """Path, e.g. `spec.replicas`."""


class ApiError(Exception):
    """A request is refused."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        name: str = "",
        group: str = "",
        kind: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after_s: int = 0,
    ) -> None:
        """
        :param code: of HTTP
        :param reason: as the API server names it: NotFound, Conflict, ...
        :param kind: of the details: a resource in most refusals, a kind in that of an invalid object
        :param retry_after_s: when to try again; 0: no time helps
        """
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s
        self._about = {"name": name, "group": group, "kind": kind, "uid": uid}
        super().__init__(message)

    def status(self) -> Document:
        """The answer's body."""
        details: dict[str, Any] = {key: value for key, value in self._about.items() if value}
        if self.causes:
            details["causes"] = [_cause(one) for one in self.causes]
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        found: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            found["reason"] = self.reason
        if details:
            found["details"] = details
        found["code"] = self.code
        return found


def _cause(one: Cause) -> Mapping[str, str]:
    told = {"reason": one.reason, "message": one.message, "field": one.field}
    return {key: value for key, value in told.items() if value}


def not_found(resource: str, group: str, name: str) -> ApiError:
    """There is no such object. Source: NewNotFound."""
    return ApiError(
        404, "NotFound", f'{qualified(resource, group)} "{name}" not found', name=name, group=group, kind=resource
    )


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """Source: NewAlreadyExists."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, name=name, group=group, kind=resource)


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """Somebody else wrote the object meanwhile. Source: NewConflict."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, name=name, group=group, kind=resource)


def overtaken(resource: str, group: str, name: str) -> ApiError:
    """The object is of another version than the one that was read. Source:
    registry/generic/registry/store.go, OptimisticLockErrorMsg."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, group, name, why)


def bad_request(message: str) -> ApiError:
    """Source: NewBadRequest."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """Source: NewForbidden."""
    message = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, name=name, group=group, kind=resource, causes=causes)


def cannot_be_handled(kind: str, version: str, why: str) -> ApiError:
    """A body is no object of its kind. Source: apiserver, handlers/rest.go, transformDecodeError."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def too_many_requests(why: str) -> ApiError:
    """It may be asked again in a second. Source: NewTooManyRequestsError."""
    return ApiError(429, "TooManyRequests", f"Too many requests: {why}", retry_after_s=1)


def expired(message: str) -> ApiError:
    """What happened since then is not known any more. Source: NewResourceExpired."""
    return ApiError(410, "Expired", message)


def too_large(version: int, position: int) -> ApiError:
    """Nobody has come to that version yet. Source: apiserver v0.36.2, pkg/storage/errors.go,
    NewTooLargeResourceVersionError."""
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {position}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after_s=RETRY_AFTER_S,
    )


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Fields are wrong. Source: NewInvalid.

    :param causes: at least one
    """
    told = [f"{one.field}: {one.message}" for one in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    full = f"{kind}.{group}" if group else kind
    return ApiError(
        422, INVALID, f'{full} "{name}" is invalid: {listed}', name=name, group=group, kind=kind, causes=causes
    )


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`; of the core group the resource alone."""
    return f"{resource}.{group}" if group else resource
