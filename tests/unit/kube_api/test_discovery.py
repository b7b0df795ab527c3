"""Documents of discovery, as the API server of 1.36 serves them.

Source: kubernetes v1.36.2, api/discovery.
"""

import re

import msgspec
import pytest

from podyard.kube_api.core import discovery
from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.discovery import AGGREGATED
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.media import JSON, Page
from podyard.kube_api.core.paths import parse
from podyard.objects.documents import Document
from tests.unit.kube_api.definitions import SCALE, definition, version

ALL = Catalogue.of([])
PARTS = {"status": {}, "scale": SCALE}
GATEWAYS = Catalogue.of([definition(versions=[version("v1", storage=True, subresources=PARTS)])])
MOST = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
KUBECTL = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def answer(path: str, accept: str = "", catalogue: Catalogue = ALL) -> Page:
    return discovery.answer(parse("GET", path, {}), accept, catalogue, "127.0.0.1:6443")


def told(path: str, accept: str = "", catalogue: Catalogue = ALL) -> Document:
    return msgspec.json.decode(answer(path, accept, catalogue).body)


def named(documents: list[Document], key: str, name: object) -> Document:
    return next(one for one in documents if one[key] == name)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        pytest.param(KUBECTL, AGGREGATED, id="kubectl"),
        pytest.param(KUBECTL.partition(",")[2], JSON, id="v2beta1 is gone in 1.36"),
        pytest.param("", JSON, id="none"),
        pytest.param("*/*", JSON, id="anything"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", JSON, id="protobuf first"),
        pytest.param("application/json;q=0.1," + KUBECTL, AGGREGATED, id="the most wanted"),
        pytest.param("application/json;as=Table;g=meta.k8s.io;v=v1,*/*", JSON, id="a table of it is none"),
    ],
)
def test_the_media_type_is_negotiated(accept: str, media_type: str) -> None:
    assert discovery.negotiated(accept, aggregated=True) == media_type
    assert answer("/apis", accept).content_type == media_type


def test_only_lists_of_groups_are_aggregated() -> None:
    assert answer("/apis/apps", KUBECTL).content_type == JSON


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", KUBECTL.split(",")[1]])
def test_what_cannot_be_served_is_refused(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        answer("/apis", accept)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message == "only the following media types are accepted: application/json"


def test_the_core_group_aggregated() -> None:
    found = told("/api", KUBECTL)
    (group,) = found["items"]
    (version_,) = group["versions"]
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert (group["metadata"], version_["version"], version_["freshness"]) == ({}, "v1", "Current")
    assert named(version_["resources"], "resource", "pods") == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": "Pod"},
        "scope": "Namespaced",
        "singularResource": "pod",
        "verbs": MOST,
        "shortNames": ["po"],
        "categories": ["all"],
        "subresources": [
            {
                "subresource": "binding",
                "responseKind": {"group": "", "version": "", "kind": "Binding"},
                "verbs": ["create"],
            },
            {
                "subresource": "eviction",
                "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
                "verbs": ["create"],
            },
            {
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "Pod"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_all_other_groups_aggregated() -> None:
    items = told("/apis", KUBECTL)["items"]
    assert [one["metadata"]["name"] for one in items] == [group.name for group in ALL.groups()[1:]]
    apps = named(items[1]["versions"][0]["resources"], "resource", "deployments")
    assert apps["subresources"][0]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    csi = named(
        named(items, "metadata", {"name": "storage.k8s.io"})["versions"][0]["resources"], "resource", "csinodes"
    )
    assert csi == {
        "resource": "csinodes",
        "responseKind": {"group": "", "version": "", "kind": "CSINode"},
        "scope": "Cluster",
        "singularResource": "csinode",
        "verbs": MOST,
    }


def test_a_custom_resource_aggregated() -> None:
    """Its kinds are written out. Source: apiextensions-apiserver, customresource_discovery_controller.go."""
    items = told("/apis", KUBECTL, GATEWAYS)["items"]
    (gateways,) = named(items, "metadata", {"name": "example.com"})["versions"][0]["resources"]
    assert gateways["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Gateway"}
    assert [(one["subresource"], one["responseKind"]["kind"]) for one in gateways["subresources"]] == [
        ("status", "Gateway"),
        ("scale", "Scale"),
    ]


def test_the_tag_changes_with_the_content_alone() -> None:
    page = answer("/apis", KUBECTL)
    assert re.fullmatch('"[0-9A-F]{128}"', page.etag)
    assert page.headers == {"Vary": "Accept", "Cache-Control": "public"}
    assert answer("/apis", KUBECTL, Catalogue.of([])).etag == page.etag
    assert answer("/apis", KUBECTL, GATEWAYS).etag != page.etag
    assert answer("/api", KUBECTL, GATEWAYS).etag == answer("/api", KUBECTL).etag


def test_api_says_its_version_and_where_it_is() -> None:
    assert told("/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_groups() -> None:
    found = told("/apis")
    assert (found["kind"], found["apiVersion"]) == ("APIGroupList", "v1")
    assert found["groups"][1] == {
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }
    assert told("/apis/apps") == {"kind": "APIGroup", "apiVersion": "v1", **found["groups"][1]}


def test_resources_of_a_version() -> None:
    """The hash is that of the reference."""
    found = told("/apis/apps/v1")
    assert {key: value for key, value in found.items() if key != "resources"} == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
    }
    assert [one["name"] for one in found["resources"]] == [
        "controllerrevisions",
        *("daemonsets", "daemonsets/status"),
        *("deployments", "deployments/scale", "deployments/status"),
        *("replicasets", "replicasets/scale", "replicasets/status"),
        *("statefulsets", "statefulsets/scale", "statefulsets/status"),
    ]
    assert found["resources"][3:5] == [
        {
            "name": "deployments",
            "singularName": "deployment",
            "namespaced": True,
            "kind": "Deployment",
            "verbs": MOST,
            "shortNames": ["deploy"],
            "categories": ["all"],
            "storageVersionHash": "8aSe+NMegvE=",
        },
        {
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        },
    ]


def test_resources_of_the_core_group() -> None:
    """What `kubectl drain` looks for."""
    found = told("/api/v1")
    assert "apiVersion" not in found
    eviction = named(found["resources"], "name", "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


def test_the_core_group_is_not_among_groups() -> None:
    with pytest.raises(ApiError, match="could not find"):
        discovery.group_of(ALL, "")


@pytest.mark.parametrize("path", ["/apis/nothing", "/apis/apps/v2", "/api/v2"])
def test_what_is_not_served_is_not_found(path: str) -> None:
    with pytest.raises(ApiError) as refused:
        answer(path)
    assert (refused.value.code, refused.value.message) == (404, "the server could not find the requested resource")


SEMANTIC = re.compile(r"v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)")


@pytest.mark.parametrize(
    ("podyard", "said"),
    [("0.2.0", "podyard-0.2.0"), ("0.3.0.dev1+g12", "podyard-0.3.0.dev1-g12"), ("0.2.", "podyard-0.2")],
)
def test_the_version_is_a_semantic_one_that_names_podyard(podyard: str, said: str) -> None:
    """Source: apimachinery v0.36.2, pkg/util/version/version.go, versionMatchRE and extraMatchRE."""
    found = discovery.version(podyard, "linux/amd64")
    parts = SEMANTIC.fullmatch(found["gitVersion"])
    assert parts is not None
    assert parts.groups() == ("1", "36", "2", said)
    assert (found["major"], found["minor"], found["platform"]) == ("1", "36", "linux/amd64")
