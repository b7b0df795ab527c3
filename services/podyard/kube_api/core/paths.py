"""Where a URL of the Kubernetes API leads, and what is wanted there.

Source: apiserver v0.36.2, pkg/endpoints/request/requestinfo.go. Two things differ: the old `/watch/` and
`/proxy/` prefixes are refused, and a Namespace of its own has no namespace here.

Query parameters that nobody knows are ignored, as the API server ignores them: `kubectl get --raw` and
proxies add some.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from podyard.kube_api.core.errors import ApiError

NOT_FOUND: Final = "the server could not find the requested resource"
"""Source: apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse, of a URL that leads nowhere."""

LONGEST_PATH: Final = 2048
"""Characters. Group, namespace, resource, name and subresource have at most 253 each."""

Goal: TypeAlias = Literal[
    "core", "groups", "group", "resources", "resource", "openapi", "openapi-document", "openapi-v2", "version", "health"
]
"""`core`, `groups`: `/api` and `/apis`; `group`: `/apis/<group>`; `resources`: `/api/v1`,
`/apis/<group>/<version>`; `resource`: objects; `openapi`: the index of the documents, `openapi-v2`: the
one of all groups."""

_HEALTH: Final = frozenset(("healthz", "livez", "readyz"))
_VERBS: Final[Mapping[str, str]] = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_PROXY: Final = "proxy"
"""The subresource that takes a path of its own."""

_PARTS: Final = 3
"""Resource, name, subresource."""

_OLD_VERBS: Final[Mapping[str, str]] = {
    "watch": "watch with the query parameter watch=true on a list instead",
    _PROXY: "nothing is proxied to nodes, pods and services",
}
_OF_NAMESPACES: Final = frozenset(("status", "finalize"))
"""Subresources of a Namespace; any other name after one is a resource in it."""


class Asked(NamedTuple):
    """A request, as its method, path and query say it."""

    goal: Goal
    verb: str = "get"
    """get, list, watch, create, update, patch, delete, deletecollection."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    """Empty: of a cluster resource, or all namespaces."""
    resource: str = ""
    name: str = ""
    """Of the object; of health, the check: `livez/ping` is asked for `ping`."""
    subresource: str = ""


def parse(method: str, path: str, query: Mapping[str, Sequence[str]]) -> Asked:
    """What is asked. Whether there is such a resource the catalogue knows.

    :param method: of HTTP
    :param path: percent-decoded
    :param query: the values of each parameter, as `urllib.parse.parse_qs(..., keep_blank_values=True)` says
    :raises ApiError: 404 for a path that leads nowhere, 405 for a method that nothing takes, 501 for what the
        API server has and Podyard has not
    """
    parts = path.strip("/").split("/") if len(path) <= LONGEST_PATH else []
    if "" in parts or not parts:
        raise nowhere()
    if parts[0] == "api":
        asked = _in_version(method, "", parts[1:], query) if len(parts) > 1 else Asked("core")
    elif parts[0] == "apis":
        asked = _in_groups(method, parts[1:], query)
    else:
        asked = _beside(parts)
    if asked.goal != "resource" and method not in ("GET", "HEAD"):
        raise not_allowed()
    return asked


def nowhere() -> ApiError:
    """Nothing is under that URL."""
    return ApiError(404, "NotFound", NOT_FOUND)


def not_allowed() -> ApiError:
    """Source: apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _in_groups(method: str, parts: Sequence[str], query: Mapping[str, Sequence[str]]) -> Asked:
    if not parts:
        return Asked("groups")
    if len(parts) == 1:
        return Asked("group", group=parts[0])
    return _in_version(method, parts[0], parts[1:], query)


def _in_version(method: str, group: str, parts: Sequence[str], query: Mapping[str, Sequence[str]]) -> Asked:
    version, *parts = parts
    if not parts:
        return Asked("resources", group=group, version=version)
    if (instead := _OLD_VERBS.get(parts[0])) is not None:
        raise ApiError(501, "NotImplemented", f"paths that begin with {parts[0]} are not served: {instead}")
    verb = _VERBS.get(method)
    if verb is None:
        raise not_allowed()
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
        namespace, parts = parts[1], parts[2:]
    if len(parts) > _PARTS and parts[2] != _PROXY:
        raise nowhere()
    resource, name, subresource = (*parts, "", "")[:_PARTS]
    if not name:
        verb = _of_many(verb, query)
    return Asked("resource", verb, group, version, namespace, resource, name, subresource)


def _of_many(verb: str, query: Mapping[str, Sequence[str]]) -> str:
    """What a verb without a name is."""
    if verb == "get":
        return "watch" if flag(query, "watch") else "list"
    return "deletecollection" if verb == "delete" else verb


def flag(query: Mapping[str, Sequence[str]], name: str) -> bool:
    """A parameter that is true or false: false are its absence, `false` and `0`. Source: apimachinery
    v0.36.2, pkg/runtime/conversion.go, Convert_Slice_string_To_bool."""
    values = query.get(name)
    return bool(values) and values[0].lower() not in ("false", "0")


def _beside(parts: Sequence[str]) -> Asked:
    first, *rest = parts
    if first == "version" and not rest:
        return Asked("version")
    if first in _HEALTH and len(rest) < 2:
        return Asked("health", resource=first, name="".join(rest))
    if parts[:2] == ["openapi", "v3"]:
        return _openapi(rest[1:])
    if parts == ["openapi", "v2"]:
        return Asked("openapi-v2")
    raise nowhere()


def _openapi(parts: Sequence[str]) -> Asked:
    match parts:
        case []:
            return Asked("openapi")
        case ["api", version]:
            return Asked("openapi-document", version=version)
        case ["apis", group, version]:
            return Asked("openapi-document", group=group, version=version)
        case _:
            raise nowhere()
