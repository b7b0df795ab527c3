"""What there is to ask for: discovery, aggregated and plain, and the version.

Source: apiserver v0.36.2, pkg/endpoints/discovery (also aggregated), kube-aggregator v0.36.2,
pkg/apiserver/handler_apis.go. Version v2beta1 of aggregated discovery is gone in 1.36, so that it is passed
over in an Accept header.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.media import JSON, Page, clauses, etag, not_acceptable
from podyard.kube_api.core.paths import Asked, nowhere
from podyard.kube_api.core.served import Group, Served, Subresource
from podyard.objects.documents import Document

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The media type of aggregated discovery."""

KUBERNETES: Final = (1, 36, 2)
"""The version of Kubernetes whose API is served."""

_AGGREGATED_OF: Final = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_CONVERTING: Final = ("as", "g", "v")


def negotiated(accept: str, *, aggregated: bool) -> str:
    """The media type of the answer.

    :param accept: the header's value, empty if there is none
    :param aggregated: whether it may be `AGGREGATED`: of `/api` and `/apis`
    :raises ApiError: 406, the client takes neither
    """
    for clause in clauses(accept):
        if not clause.takes(JSON):
            continue
        wanted = {name: clause.parameters[name] for name in _CONVERTING if name in clause.parameters}
        if not wanted:
            return JSON
        if aggregated and wanted == _AGGREGATED_OF:
            return AGGREGATED
    raise not_acceptable((JSON,))


def answer(asked: Asked, accept: str, catalogue: Catalogue, address: str) -> Page:
    """The document of discovery that is asked for.

    :param asked: its goal is `core`, `groups`, `group` or `resources`
    :param accept: the header's value, empty if there is none
    :param address: of this server, `host:port`
    :raises ApiError: 404, no such group or version; 406, a media type that is not served
    """
    lists_groups = asked.goal in ("core", "groups")
    media_type = negotiated(accept, aggregated=lists_groups)
    if media_type == AGGREGATED:
        return _aggregated(catalogue, core=asked.goal == "core")
    make: dict[str, Callable[[], Document]] = {
        "core": lambda: core_versions(address),
        "groups": lambda: group_list(catalogue),
        "group": lambda: group_of(catalogue, asked.group),
        "resources": lambda: resource_list(catalogue, asked.group, asked.version),
    }
    vary = {"Vary": "Accept"} if lists_groups else {}
    return Page(JSON, msgspec.json.encode(make[asked.goal]()), headers=vary)


def _aggregated(catalogue: Catalogue, *, core: bool) -> Page:
    body = msgspec.json.encode(group_discovery(catalogue, core=core))
    return Page(AGGREGATED, body, f'"{etag(body)}"', {"Vary": "Accept", "Cache-Control": "public"})


def group_discovery(catalogue: Catalogue, *, core: bool) -> Document:
    """An APIGroupDiscoveryList: of the core group, or of all others."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_group_discovery(catalogue, group) for group in catalogue.groups() if (not group.name) is core],
    }


def _group_discovery(catalogue: Catalogue, group: Group) -> Document:
    return {
        "metadata": {"name": group.name} if group.name else {},
        "versions": [
            {
                "version": version,
                "resources": [_resource_discovery(one) for one in catalogue.resources(group.name, version)],
                "freshness": "Current",
            }
            for version in group.versions
        ],
    }


def _resource_discovery(one: Served) -> Document:
    found: Document = {
        "resource": one.resource,
        "responseKind": _response_kind(one, one.group, one.version, one.kind),
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(one.verbs),
    }
    _list(found, "shortNames", one.short_names)
    _list(found, "categories", one.categories)
    _list(found, "subresources", [_subresource_discovery(one, part) for part in one.subresources])
    return found


def _subresource_discovery(one: Served, part: Subresource) -> Document:
    return {
        "subresource": part.name,
        "responseKind": _response_kind(one, part.group, part.version, part.kind),
        "verbs": list(part.verbs),
    }


def _response_kind(one: Served, group: str, version: str, kind: str) -> Document:
    """Of a built-in resource group and version are left empty where they are those of the list."""
    if not one.custom and (group, version) == (one.group, one.version):
        group = version = ""
    return {"group": group, "version": version, "kind": kind}


def core_versions(address: str) -> Document:
    """APIVersions: of `/api`.

    :param address: of this server, `host:port`
    """
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(catalogue: Catalogue) -> Document:
    """APIGroupList: of `/apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group) for group in catalogue.groups() if group.name],
    }


def group_of(catalogue: Catalogue, name: str) -> Document:
    """APIGroup: of `/apis/<group>`.

    :raises ApiError: 404, there is no such group
    """
    for group in catalogue.groups():
        if group.name and group.name == name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
    raise nowhere()


def _group(group: Group) -> Document:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(catalogue: Catalogue, group: str, version: str) -> Document:
    """APIResourceList: of `/api/v1`, where it has no apiVersion of its own (source: discovery/util.go,
    stripVersionNegotiatedSerializer), and of `/apis/<group>/<version>`.

    :raises ApiError: 404, there is no such version
    """
    served = catalogue.resources(group, version)
    if not served:
        raise nowhere()
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": served[0].api_version,
        "resources": [document for one in served for document in _resources(one)],
    }


def _resources(one: Served) -> Iterable[Document]:
    found: Document = {
        "name": one.resource,
        "singularName": one.singular,
        "namespaced": one.namespaced,
        "kind": one.kind,
        "verbs": list(one.verbs),
    }
    _list(found, "shortNames", one.short_names)
    _list(found, "categories", one.categories)
    if one.stored is not None:
        found["storageVersionHash"] = _storage_version_hash(one.stored.api_version, one.kind)
    yield found
    for part in one.subresources:
        of_another = {"group": part.group, "version": part.version} if part.group != one.group else {}
        yield {
            "name": f"{one.resource}/{part.name}",
            "singularName": "",
            "namespaced": one.namespaced,
            **of_another,
            "kind": part.kind,
            "verbs": list(part.verbs),
        }


def _storage_version_hash(api_version: str, kind: str) -> str:
    """Source: apiserver v0.36.2, pkg/endpoints/discovery/storageversionhash.go."""
    group, _, version = api_version.rpartition("/")
    return base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()


def _list(document: Document, key: str, values: Sequence[Any]) -> None:
    """Put them there if there are any."""
    if values:
        document[key] = list(values)


def version(podyard: str, platform: str) -> Document:
    """What `/version` says: whose API it is, and that Podyard serves it.

    `gitVersion` is a semantic version with Podyard's as its build metadata, which clients that compare
    versions pass over (source: apimachinery v0.36.2, pkg/util/version/version.go, ParseSemantic). What only
    a server built with Go from a commit could say is empty.

    :param podyard: its version, `0.2.0`
    :param platform: `linux/amd64`
    """
    major, minor, patch = KUBERNETES
    named = re.sub(r"[^0-9A-Za-z.-]", "-", podyard).strip(".")
    return {
        "major": str(major),
        "minor": str(minor),
        "gitVersion": f"v{major}.{minor}.{patch}+podyard-{named}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": platform,
    }
