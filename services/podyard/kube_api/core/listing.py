"""GET and LIST: what of the objects is meant, as of which version, and page by page. Pure.

A page after the first is of the same version as the first: what changed in between is taken back with the
history. Where that does not reach, the answer is 410 with a token that goes on with what there is now.

Sources: kubernetes v1.36.2, staging/src/k8s.io: apimachinery/pkg/apis/meta/internalversion (defaults.go,
validation/validation.go), apiserver/pkg/storage (continue.go, interfaces.go ValidateListOptions, errors.go
NewTooLargeResourceVersionError, etcd3/errors.go).
"""

import base64
import binascii
import posixpath
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from podyard.kube_api.core.errors import ApiError, Cause, bad_request, expired, invalid
from podyard.kube_api.core.forms import Page
from podyard.kube_api.core.go_decoding import syntax_error
from podyard.kube_api.core.items import Item
from podyard.kube_api.core.media import META_GROUP
from podyard.kube_api.core.selecting import ALL, Selection
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Source
from podyard.objects.documents import Document

EXACT: Final = "Exact"
NOT_OLDER: Final = "NotOlderThan"

META_VERSION: Final = "meta.k8s.io/v1"

_LATEST: Final = -1
"""The version in a token that goes on with what there is."""
_MOST_TOKEN: Final = 4096
_LARGEST: Final = 2**64 - 1

_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
    "the results. Continuing with the provided token results in an inconsistent list - objects that were "
    "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
    "list."
)


class ListOptions(NamedTuple):
    """Parameters of a list or a watch, as they were given."""

    limit: int = 0
    """Items of a page; 0: all."""
    more: str = ""
    """`continue`."""
    version: str = ""
    """`resourceVersion`."""
    match: str = ""
    """`resourceVersionMatch`."""
    send_initial: bool | None = None
    """`sendInitialEvents`."""
    bookmarks: bool = False
    """`allowWatchBookmarks`."""


class _Token(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="v", default="")
    at: int = msgspec.field(name="rv", default=0)
    start: str = ""


class _ContinueExpired(ApiError):
    """410 with another token."""

    def __init__(self, token: str) -> None:
        super().__init__(410, "Expired", _CONTINUE_TOO_OLD)
        self._token = token

    def status(self) -> Document:
        return {**super().status(), "metadata": {"continue": self._token}}


def parse_version(text: str, *, of_list: bool = True) -> int:
    """A resourceVersion; 0 if none is given.

    :param of_list: whether it is a list's, or a watch's: that is refused without a reason
    :raises ApiError: if it is none
    """
    if text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= _LARGEST:
        return int(text)
    if not text:
        return 0
    why = "value out of range" if text.isascii() and text.isdecimal() else "invalid syntax"
    shown = text[:100]
    parsing = f'strconv.ParseUint: parsing "{shown}": {why}'
    told = f'resourceVersion: Invalid value: "{shown}": {parsing}'
    if of_list:
        raise bad_request(f"invalid resource version: {told}")
    raise ApiError(500, "", told)


def check(options: ListOptions) -> None:
    """
    :raises ApiError: if the parameters of a list contradict each other
    """
    match = options.match
    causes: list[Cause] = []
    if match:
        if not options.version:
            causes.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.more:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            causes.append(unknown_match(match, (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.version == "0":
            causes.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial is not None:
        causes.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    refuse(causes)


def refuse(causes: list[Cause]) -> None:
    """
    :raises ApiError: if there are any
    """
    if causes:
        raise invalid("ListOptions", META_GROUP, "", causes)


def forbidden_field(field: str, why: str) -> Cause:
    """Source: field.Forbidden."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _forbidden(why: str) -> Cause:
    return forbidden_field("resourceVersionMatch", why)


def unknown_match(match: str, known: Iterable[str]) -> Cause:
    """Source: field.NotSupported."""
    listed = ", ".join(f'"{one}"' for one in sorted(known))
    return Cause(
        "FieldValueNotSupported",
        f'Unsupported value: "{match[:100]}": supported values: {listed}',
        "resourceVersionMatch",
    )


def needed_position(options: ListOptions, *, of_list: bool = True) -> int:
    """The position that a store must have come to before these parameters can be answered: `version` of a
    list, of a watch with what there is.

    :raises ApiError: if the version is none
    """
    return parse_version(options.version, of_list=of_list)


def list_of(store: Source, scope: Scope, options: ListOptions, selection: Selection = ALL) -> Page:
    """What a LIST answers.

    :raises ApiError: the parameters are wrong (400, 422), the version is not there yet (504), or not known
        any more (410)
    """
    check(options)
    if options.limit < 0:
        raise bad_request("limit must not be negative")
    if options.more:
        return _continued(store, scope, options, selection)
    asked = parse_version(options.version)
    position = store.position
    if asked > position:
        raise store.ahead(asked)
    exact = options.match == EXACT or (not options.match and options.limit > 0 and asked > 0)
    if not exact:
        return _page(store, scope, options.limit, selection, position, store.items(scope))
    if not store.history.reaches(scope.resource, asked):
        raise expired(_TOO_OLD)
    return _page(store, scope, options.limit, selection, asked, store.items_at(scope, asked))


def _continued(store: Source, scope: Scope, options: ListOptions, selection: Selection) -> Page:
    token = _decoded(options.more)
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    start = f"{scope.namespace}/{token.start}" if scope.namespace else token.start
    at = store.position if token.at < 0 else token.at
    if at > store.position:
        raise store.ahead(at)
    if not store.history.reaches(scope.resource, at):
        raise _ContinueExpired(_encoded(_LATEST, token.start))
    return _page(store, scope, options.limit, selection, at, store.items_at(scope, at, start=start))


def _page(store: Source, scope: Scope, limit: int, selection: Selection, version: int, items: Iterable[Item]) -> Page:
    """With a limit a page ends with the last item that is meant, and says that more may follow if any item
    does: whether one of those is meant nobody looks. Source: apiserver v0.36.2, pkg/storage/etcd3/store.go,
    GetList."""
    if not limit:
        return Page(list(items if selection.everything else filter(selection.selects, items)), version)
    found: list[Item] = []
    left = iter(items)
    for item in left:
        if len(found) == limit:
            break
        if selection.everything or selection.selects(item):
            found.append(item)
    else:
        return Page(found, version)
    remaining = 1 + sum(1 for _ in left) if selection.everything else None
    last = found[-1].path.removeprefix(f"{scope.namespace}/") if scope.namespace else found[-1].path
    return Page(found, version, _encoded(version, f"{last}\0"), remaining)


def _encoded(version: int, start: str) -> str:
    token = msgspec.json.encode({"v": META_VERSION, "rv": version, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decoded(text: str) -> _Token:
    """Source: DecodeContinue."""
    refused = "invalid continue token: continue key is not valid"
    try:
        if len(text) > _MOST_TOKEN:
            raise ValueError("too long")
        padded = text + "=" * (-len(text) % 4)
        encoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        if told := syntax_error(encoded):
            raise ValueError(told)
        token = msgspec.json.decode(encoded, type=_Token)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise bad_request(f"{refused}: {error}") from error
    if token.version != META_VERSION:
        raise bad_request(f"{refused}: server does not recognize this encoded version {token.version[:100]}")
    if token.at == 0:
        raise bad_request(f"{refused}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not token.start:
        raise bad_request(f"{refused}: encoded start key empty (version meta.k8s.io/v1)")
    key = token.start if token.start.startswith("/") else f"/{token.start}"
    if posixpath.normpath(key) != key:
        raise bad_request(f"{refused}: {token.start[:100]}")
    return token
