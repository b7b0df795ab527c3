"""Media types that a client takes, and answers that are bytes already.

Source: goautoneg v1.1 as apiserver v0.36.2 uses it, pkg/endpoints/handlers/negotiation/negotiate.go.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from podyard.kube_api.core.errors import ApiError

JSON: Final = "application/json"
META_GROUP: Final = "meta.k8s.io"
TABLE: Final = "Table"
PARTIAL: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
LONGEST_ACCEPT: Final = 4096
"""Characters of the header; the longest of a client that is known has 300."""


class Clause(NamedTuple):
    """One of the media types of an Accept header."""

    type: str
    """`application/json`, `application/*`, `*/*`."""
    quality: float = 1.0
    parameters: Mapping[str, str] = {}

    def takes(self, media_type: str) -> bool:
        """Whether a media type, without parameters, is of this one."""
        return self.type in (media_type, "*/*") or self.type == f"{media_type.partition('/')[0]}/*"


def clauses(accept: str) -> list[Clause]:
    """The media types, the most wanted first; those that cannot be read are left out.

    :param accept: the header's value; empty: anything
    :raises ApiError: 406, it is too long
    """
    if len(accept) > LONGEST_ACCEPT:
        raise ApiError(406, "NotAcceptable", f"the Accept header has more than {LONGEST_ACCEPT} characters")
    if not accept:
        return [Clause("*/*")]
    found = [clause for part in accept.split(",") if (clause := _clause(part)) is not None]
    return sorted(found, key=lambda clause: (-clause.quality, clause.type == "*/*", clause.type.endswith("/*")))


def _clause(part: str) -> Clause | None:
    spelled, *rest = part.split(";")
    media_type = spelled.strip(" ")
    if media_type == "*":
        media_type = "*/*"
    main, _, sub = (name.strip(" ") for name in media_type.partition("/"))
    if not sub or "/" in sub:
        return None
    parameters: dict[str, str] = {}
    for item in rest:
        name, equals, value = item.partition("=")
        if equals and value and "=" not in value:
            parameters[name.strip(" ")] = value.strip(" ")
    return Clause(f"{main}/{sub}", _quality(parameters.pop("q", "1")), parameters)


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


def not_acceptable(media_types: Sequence[str]) -> ApiError:
    """Source: negotiation/errors.go, errNotAcceptable."""
    listed = ", ".join(media_types)
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {listed}")


def form(accept: str) -> tuple[str, str]:
    """How a client takes objects: empty for whole ones, `TABLE`, or one of `PARTIAL`; and the media type of
    that.

    :raises ApiError: 406, it takes nothing that is served
    """
    for clause in clauses(accept):
        if not clause.takes(JSON):
            continue
        wanted, group, version = (clause.parameters.get(name, "") for name in ("as", "g", "v"))
        if not wanted:
            return "", JSON
        if group == META_GROUP and version == "v1" and wanted in (TABLE, *PARTIAL):
            return wanted, f"{JSON};as={wanted};v=v1;g={META_GROUP}"
    raise not_acceptable((JSON,))


class Page(NamedTuple):
    """An answer."""

    content_type: str
    body: bytes
    etag: str = ""
    """With its quotes; empty: none."""
    headers: Mapping[str, str] = {}
    """Further ones."""
    status: int = 200

    def unless(self, if_none_match: str) -> "Page":
        """This page, or, to a client that has it already, 304 and no body.

        :param if_none_match: the header's value, empty if there is none
        """
        if not self.etag or if_none_match != self.etag:
            return self
        return self._replace(status=304, body=b"")


def etag(body: bytes) -> str:
    """Without quotes. Source: apiserver v0.36.2, pkg/endpoints/discovery/aggregated/etag.go; kube-openapi,
    pkg/handler3/handler.go."""
    return hashlib.sha512(body).hexdigest().upper()
