"""Documents of OpenAPI v3, one for each version of a group, and their index.

The paths say what clients look for: which kind is under a path, which verbs it takes, which query parameters
are known there (kubectl asks whether PATCH takes `fieldValidation`), and which patches (a kind that takes no
strategic merge patch is merged by kubectl as JSON). Paths of discovery are left out, and the old ones below
`/watch/`, which are not served.

Source: kube-openapi v0.0.0-20260317180543, pkg/handler3/handler.go; cli-runtime v0.36.2,
pkg/resource/query_param_verifier_v3.go; kubectl v0.36.2, pkg/cmd/apply/patcher.go and pkg/explain/v2.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote

import msgspec

from podyard.kube_api.core import openapi_v2
from podyard.kube_api.core.built_in import built_in
from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.media import JSON, Page, clauses, etag, not_acceptable
from podyard.kube_api.core.paths import nowhere
from podyard.kube_api.core.schemas import (
    DELETE_OPTIONS,
    KIND,
    PATCH,
    STATUS,
    component,
    kind,
    list_component,
    of_definition,
    ref,
    schemas,
)
from podyard.kube_api.core.served import Served, Subresource
from podyard.objects.documents import Document

_ROOT: Final = "/openapi/v3"

_WRITING: Final[Mapping[str, str]] = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETING: Final[Mapping[str, str]] = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "propagationPolicy": "string",
}
_CHOOSING: Final[Mapping[str, str]] = {
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
}
_PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "create": _WRITING,
    "update": _WRITING,
    "patch": {**_WRITING, "force": "boolean"},
    "delete": _DELETING,
    "list": {"allowWatchBookmarks": "boolean", **_CHOOSING, "watch": "boolean"},
    "deletecollection": {**_CHOOSING, **_DELETING},
}
"""Query parameters, with their types, by verb."""

_METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "get": ("get", "get"),
    "list": ("get", "list"),
    "create": ("post", "post"),
    "update": ("put", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
    "deletecollection": ("delete", "deletecollection"),
}
"""Method of HTTP, and how `x-kubernetes-action` calls it, by verb."""

_OF_ALL: Final = ("list", "create", "deletecollection")
_OF_ONE: Final = ("get", "update", "patch", "delete")
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC: Final = "application/strategic-merge-patch+json"
"""The patch that only built-in kinds take."""


class OpenApi:
    """The documents of one catalogue. Each is made when it is first asked for, and kept as bytes; those of
    built-in groups are kept for all catalogues."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._made: dict[str, Page] = {}
        self._index: Page | None = None

    def index(self, accept: str) -> Page:
        """Where the documents are, each with the hash of its content; makes all of them.

        :param accept: the header's value, empty if there is none
        :raises ApiError: 406, the client does not take JSON
        """
        _check(accept)
        if self._index is None:
            paths = {
                place: {"serverRelativeURL": _url(place, self._document(group.name, version))}
                for group in self._catalogue.groups()
                for version in group.versions
                for place in (_place(group.name, version),)
            }
            body = msgspec.json.encode({"paths": dict(sorted(paths.items()))})
            self._index = Page(JSON, body, f'"{etag(body)}"')
        return self._index

    def document(self, group: str, version: str, accept: str, hash_: str) -> Page:
        """The document of one version of a group.

        :param accept: the header's value, empty if there is none
        :param hash_: the query parameter `hash`, empty if there is none: the answer to it stays the same for
            ever, so that to another than the document's the answer is where that is
        :raises ApiError: 404, no such version is served; 406, the client does not take JSON
        """
        _check(accept)
        if not self._catalogue.resources(group, version):
            raise nowhere()
        page = self._document(group, version)
        if not hash_:
            return page
        if hash_ != page.etag.strip('"'):
            where = {"Location": _url(_place(group, version), page)}
            return Page(JSON, b"", headers=where, status=301)
        return page._replace(headers={**page.headers, "Cache-Control": "public, immutable"})

    def together(self, accept: str) -> Page:
        """The document of OpenAPI v2, of all groups.

        :param accept: the header's value, empty if there is none
        :raises ApiError: 406, the client takes neither JSON nor protobuf
        """
        for clause in clauses(accept):
            if clause.takes(JSON):
                return self._together(JSON)
            if clause.type in (openapi_v2.PROTOBUF, openapi_v2.PROTOBUF_BEFORE):
                return self._together(openapi_v2.PROTOBUF)
        raise not_acceptable((JSON, openapi_v2.PROTOBUF))

    def _together(self, media_type: str) -> Page:
        if media_type not in self._made:
            document = openapi_v2.document_of(
                msgspec.json.decode(self._document(group.name, version).body)
                for group in self._catalogue.groups()
                for version in group.versions
            )
            protobuf = media_type == openapi_v2.PROTOBUF
            body = openapi_v2.protobuf(document) if protobuf else msgspec.json.encode(document)
            self._made[media_type] = Page(media_type, body, f'"{etag(body)}"', {"Vary": "Accept"})
        return self._made[media_type]

    def _document(self, group: str, version: str) -> Page:
        served = self._catalogue.resources(group, version)
        if not any(one.custom for one in served):
            return _built_in(group, version)
        place = _place(group, version)
        if place not in self._made:
            self._made[place] = _page(served)
        return self._made[place]


def _check(accept: str) -> None:
    if not any(clause.takes(JSON) for clause in clauses(accept)):
        raise not_acceptable((JSON,))


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _url(place: str, page: Page) -> str:
    return f"{_ROOT}/{quote(place)}?hash={page.etag.strip(chr(34))}"


@cache
def _built_in(group: str, version: str) -> Page:
    return _page(Catalogue(built_in()).resources(group, version))


def _page(served: tuple[Served, ...]) -> Page:
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(path for one in served for path in _paths(one).items())),
        "components": {"schemas": schemas(served)},
    }
    body = msgspec.json.encode(document)
    return Page(JSON, body, f'"{etag(body)}"', {"Vary": "Accept"})


def _paths(one: Served) -> dict[str, Document]:
    """What can be asked of a resource, by path."""
    root = "/" + _place(one.group, one.version)
    own = kind(one.group, one.version, one.kind)
    base = f"{root}/namespaces/{{namespace}}/{one.resource}" if one.namespaced else f"{root}/{one.resource}"
    found = {
        base: _path(one, base, [verb for verb in _OF_ALL if verb in one.verbs], own),
        f"{base}/{{name}}": _path(one, f"{base}/{{name}}", [verb for verb in _OF_ONE if verb in one.verbs], own),
    }
    if one.namespaced and "list" in one.verbs:
        everywhere = f"{root}/{one.resource}"
        found[everywhere] = _path(one, everywhere, ["list"], own)
    for part in one.subresources:
        path = f"{base}/{{name}}/{part.name}"
        found[path] = _path(one, path, part.verbs, kind(part.group, part.version, part.kind), part)
    return {path: item for path, item in found.items() if item}


def _path(
    one: Served, path: str, verbs: list[str] | tuple[str, ...], own: Document, part: Subresource | None = None
) -> Document:
    found: Document = {}
    for verb in verbs:
        method, action = _METHODS[verb]
        found[method] = {
            "x-kubernetes-action": action,
            KIND: own,
            **_asked(one, verb, part),
            "responses": {"200": {"description": "OK", "content": _content(_answered(one, verb, part))}},
        }
    places = [name for name in ("namespace", "name") if f"{{{name}}}" in path]
    if found and places:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
            for name in places
        ]
    return found


def _asked(one: Served, verb: str, part: Subresource | None) -> dict[str, Any]:
    """Query parameters and body of a request."""
    found: dict[str, Any] = {}
    if parameters := _PARAMETERS.get(verb):
        found["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": True}}
            for name, type_ in parameters.items()
        ]
    if verb == "patch":
        patches = _PATCHES if one.custom else (*_PATCHES, STRATEGIC)
        body = {"schema": ref(of_definition(PATCH))}
        found["requestBody"] = {"required": True, "content": dict.fromkeys(patches, body)}
    elif verb in ("create", "update"):
        found["requestBody"] = {"required": True, "content": {"*/*": {"schema": ref(_body(one, part))}}}
    elif verb in ("delete", "deletecollection"):
        found["requestBody"] = {"content": {"*/*": {"schema": ref(of_definition(DELETE_OPTIONS))}}}
    return found


def _answered(one: Served, verb: str, part: Subresource | None) -> str:
    """The component of an answer."""
    if verb == "list":
        return list_component(one)
    if verb in ("delete", "deletecollection"):
        return of_definition(STATUS)
    return _body(one, part)


def _body(one: Served, part: Subresource | None) -> str:
    if part is None or part.definition is None:
        return component(one)
    return of_definition(part.definition)


def _content(name: str) -> Document:
    return {JSON: {"schema": ref(name)}}
