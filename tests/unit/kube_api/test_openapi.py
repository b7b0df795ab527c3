"""Documents of OpenAPI v3. Source of what is expected: kubernetes v1.36.2, api/openapi-spec/v3."""

import re
from functools import cache
from typing import Any

import msgspec
import pytest

from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.media import Page
from podyard.kube_api.core.openapi import OpenApi
from podyard.objects.documents import Document
from tests.unit.kube_api.definitions import SCALE, SCHEMA, definition, version

ALL = Catalogue.of([])
PARTS = {"status": {}, "scale": SCALE}
GATEWAYS = Catalogue.of([definition(versions=[version("v1", storage=True, subresources=PARTS)])])
GVK = "x-kubernetes-group-version-kind"
STRATEGIC = "application/strategic-merge-patch+json"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def page(group: str, version_: str, catalogue: Catalogue = ALL, hash_: str = "") -> Page:
    return OpenApi(catalogue).document(group, version_, "application/json", hash_)


@cache
def document(group: str, version_: str, catalogue: Catalogue = ALL) -> Document:
    return msgspec.json.decode(page(group, version_, catalogue).body)


def told(name: str, group: str = "", version_: str = "v1") -> Document:
    return document(group, version_)["components"]["schemas"][f"io.k8s.{name}"]


def schema(name: str, group: str = "", version_: str = "v1") -> Document:
    """Without what is said in words."""
    return wordless(told(name, group, version_))


def wordless(found: Document) -> Document:
    """A schema without its description, and its properties without theirs."""
    bare = {key: value for key, value in found.items() if key not in ("description", "enum")}
    if "properties" in bare:
        bare["properties"] = {key: wordless(value) for key, value in bare["properties"].items()}
    return bare


def ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/io.k8s.{name}"}


def index(catalogue: Catalogue = ALL) -> dict[str, Any]:
    return msgspec.json.decode(OpenApi(catalogue).index("").body)["paths"]


def test_the_index_has_every_version_with_its_hash() -> None:
    paths = index()
    assert set(paths) == {
        f"apis/{group.name}/{one}" if group.name else f"api/{one}" for group in ALL.groups() for one in group.versions
    }
    assert paths["apis/apps/v1"] == {
        "serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={page('apps', 'v1').etag.strip(chr(34))}"
    }


def test_a_definition_changes_its_own_hash_alone() -> None:
    other = index(Catalogue.of([definition(names={"shortNames": ["x"]})]))
    changed = {path for path, found in index(GATEWAYS).items() if other[path] != found}
    assert changed == {"apis/example.com/v1"}


def test_with_its_hash_a_document_stays_for_ever() -> None:
    found = page("apps", "v1", hash_=page("apps", "v1").etag.strip('"'))
    assert (found.status, found.headers["Cache-Control"]) == (200, "public, immutable")
    assert "Cache-Control" not in page("apps", "v1").headers


def test_another_hash_leads_to_the_document() -> None:
    found = page("apps", "v1", hash_="OLD")
    assert (found.status, found.body) == (301, b"")
    assert found.headers["Location"] == index()["apis/apps/v1"]["serverRelativeURL"]


def test_what_is_not_served_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        page("apps", "v2")
    assert refused.value.code == 404


def test_only_json_is_served() -> None:
    protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
    with pytest.raises(ApiError, match="only the following media types are accepted: application/json"):
        OpenApi(ALL).index(protobuf)
    with pytest.raises(ApiError, match="only the following media types are accepted: application/json"):
        OpenApi(ALL).document("apps", "v1", protobuf, "")
    assert OpenApi(ALL).document("apps", "v1", f"{protobuf},application/json", "").status == 200


def test_a_kind() -> None:
    assert schema("api.apps.v1.Deployment", "apps") == {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [ref("apimachinery.pkg.apis.meta.v1.ObjectMeta")]},
            "spec": {"allOf": [ref("api.apps.v1.DeploymentSpec")]},
            "status": {"allOf": [ref("api.apps.v1.DeploymentStatus")]},
        },
        GVK: [{"group": "apps", "version": "v1", "kind": "Deployment"}],
    }


def test_a_list() -> None:
    found = schema("api.apps.v1.DeploymentList", "apps")
    assert found["properties"]["items"] == {"type": "array", "items": {"allOf": [ref("api.apps.v1.Deployment")]}}
    assert found["required"] == ["items"]
    assert found[GVK] == [{"group": "apps", "version": "v1", "kind": "DeploymentList"}]


def test_how_lists_and_maps_are_joined() -> None:
    """Of every pod's containers, and what `kubectl apply` reads of a Deployment's strategy."""
    container = schema("api.core.v1.Container")
    assert container["properties"]["ports"] == {
        "type": "array",
        "items": {"allOf": [ref("api.core.v1.ContainerPort")]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "containerPort",
    }
    assert container["required"] == ["name"]
    volumes = schema("api.core.v1.PodSpec")["properties"]["volumes"]
    assert volumes["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    strategy = schema("api.apps.v1.DeploymentSpec", "apps")["properties"]["strategy"]
    assert strategy == {
        "allOf": [ref("api.apps.v1.DeploymentStrategy")],
        "x-kubernetes-patch-strategy": "retainKeys",
    }
    assert schema("api.core.v1.ObjectReference")["x-kubernetes-map-type"] == "atomic"


def test_types_and_formats() -> None:
    spec = schema("api.apps.v1.DeploymentSpec", "apps")["properties"]
    assert spec["replicas"] == {"type": "integer", "format": "int32"}
    assert schema("api.core.v1.Secret")["properties"]["data"] == {
        "type": "object",
        "additionalProperties": {"type": "string", "format": "byte"},
    }
    assert schema("api.core.v1.ResourceRequirements")["properties"]["limits"] == {
        "type": "object",
        "additionalProperties": ref("apimachinery.pkg.api.resource.Quantity"),
    }
    assert schema("apimachinery.pkg.api.resource.Quantity") == {"oneOf": [{"type": "string"}, {"type": "number"}]}
    assert schema("apimachinery.pkg.util.intstr.IntOrString") == {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
    }
    assert schema("apimachinery.pkg.apis.meta.v1.Time") == {"type": "string", "format": "date-time"}
    assert schema("apimachinery.pkg.apis.meta.v1.FieldsV1") == {"type": "object"}


def test_kinds_and_fields_are_described() -> None:
    assert told("api.apps.v1.Deployment", "apps")["description"] == (
        "Deployment enables declarative updates for Pods and ReplicaSets."
    )
    port = told("api.core.v1.ContainerPort")
    assert port["description"] == "ContainerPort represents a network port in a single container."
    assert port["properties"]["hostIP"] == {
        "type": "string",
        "description": "What host IP to bind the external port to.",
    }
    found = told("api.core.v1.PodList")
    assert found["description"] == "PodList is a list of Pods."
    assert found["properties"]["items"]["description"].startswith("List of pods.")
    assert told("apimachinery.pkg.api.resource.Quantity")["description"].startswith("Quantity is a fixed-point")


def test_texts_that_a_field_may_have_are_told() -> None:
    protocol = told("api.core.v1.ContainerPort")["properties"]["protocol"]
    assert protocol["enum"] == ["SCTP", "TCP", "UDP"]
    assert protocol["description"].endswith('- `"UDP"` is the UDP protocol.')
    modes = told("api.core.v1.PersistentVolumeClaimSpec")["properties"]["accessModes"]
    assert "enum" not in modes
    assert modes["items"]["enum"] == ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]


def test_a_kind_within_another_is_named_too() -> None:
    found = schema("api.core.v1.PersistentVolumeClaim", "apps")
    assert found[GVK] == [{"group": "", "version": "v1", "kind": "PersistentVolumeClaim"}]
    assert schema("apimachinery.pkg.apis.meta.v1.DeleteOptions", "apps")[GVK] == [
        {"group": "", "version": "v1", "kind": "DeleteOptions"},
        {"group": "apps", "version": "v1", "kind": "DeleteOptions"},
    ]


def refs(body: bytes) -> set[str]:
    """All that a document refers to. The schema of definitions has a field that is called $ref."""
    return {found.decode() for found in re.findall(rb'"\$ref":"([^"]*)"', body)}


@pytest.mark.parametrize("catalogue", [ALL, GATEWAYS], ids=["built in", "custom"])
def test_what_is_referred_to_is_there(catalogue: Catalogue) -> None:
    for group in catalogue.groups():
        for one in group.versions:
            found = document(group.name, one, catalogue)
            there = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
            assert refs(page(group.name, one, catalogue).body) <= there


def test_every_kind_has_a_schema_and_says_who_it_is() -> None:
    """`kubectl explain` finds the kind by the path of the resource, its schema by the kind."""
    for served in GATEWAYS:
        found = document(served.group, served.version, GATEWAYS)
        root = f"/apis/{served.api_version}" if served.group else "/api/v1"
        base = (
            f"{root}/namespaces/{{namespace}}/{served.resource}" if served.namespaced else f"{root}/{served.resource}"
        )
        method = "get" if "list" in served.verbs else "post"
        own = found["paths"][base][method][GVK]
        assert own == {"group": served.group, "version": served.version, "kind": served.kind}
        assert [1 for one in found["components"]["schemas"].values() if own in one.get(GVK, ())] == [1]


def operations(path: str, group: str, catalogue: Catalogue = ALL) -> dict[str, str]:
    """The action of each method."""
    found = document(group, "v1", catalogue)["paths"][path]
    return {method: one["x-kubernetes-action"] for method, one in found.items() if method != "parameters"}


def test_paths_of_a_resource() -> None:
    root = "/apis/apps/v1"
    base = f"{root}/namespaces/{{namespace}}/deployments"
    assert operations(f"{root}/deployments", "apps") == {"get": "list"}
    assert operations(base, "apps") == {"get": "list", "post": "post", "delete": "deletecollection"}
    assert operations(f"{base}/{{name}}", "apps") == {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
    assert operations(f"{base}/{{name}}/scale", "apps") == {"get": "get", "patch": "patch", "put": "put"}
    scale = document("apps", "v1")["paths"][f"{base}/{{name}}/scale"]
    assert scale["get"][GVK] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert [one["name"] for one in scale["parameters"]] == ["namespace", "name"]
    assert operations("/api/v1/nodes", "") == {"get": "list", "post": "post", "delete": "deletecollection"}


def patch_of(path: str, group: str, catalogue: Catalogue = ALL) -> Document:
    return document(group, "v1", catalogue)["paths"][path]["patch"]


def test_every_patch_takes_field_validation() -> None:
    """What `kubectl apply` and `create` look for before they leave validation to the server."""
    for group in GATEWAYS.groups():
        for one in group.versions:
            for item in document(group.name, one, GATEWAYS)["paths"].values():
                if "patch" in item:
                    known = {(each["name"], each["in"]) for each in item["patch"]["parameters"]}
                    assert {("fieldValidation", "query"), ("force", "query"), ("dryRun", "query")} <= known


def test_only_built_in_kinds_are_merged_strategically() -> None:
    nodes = patch_of("/api/v1/nodes/{name}", "")
    gateways = patch_of("/apis/example.com/v1/namespaces/{namespace}/gateways/{name}", "example.com", GATEWAYS)
    assert STRATEGIC in nodes["requestBody"]["content"]
    assert sorted(gateways["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]


def test_the_schema_of_a_definition() -> None:
    schemas = document("example.com", "v1", GATEWAYS)["components"]["schemas"]
    assert schemas["com.example.v1.Gateway"]["description"] == "A gateway."
    assert schemas["com.example.v1.Gateway"]["properties"]["metadata"]["description"].startswith("Standard object")
    assert wordless(schemas["com.example.v1.Gateway"]) == {
        "type": "object",
        "properties": {
            **SCHEMA["properties"],
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [ref("apimachinery.pkg.apis.meta.v1.ObjectMeta")]},
        },
        GVK: [{"group": "example.com", "version": "v1", "kind": "Gateway"}],
    }
    assert schemas["com.example.v1.GatewayList"][GVK] == [
        {"group": "example.com", "version": "v1", "kind": "GatewayList"}
    ]
    assert "description" in SCHEMA
    assert GVK not in SCHEMA


def test_a_definition_without_a_schema_takes_any_object() -> None:
    bare = Catalogue.of([definition(versions=[{"name": "v1", "served": True, "storage": True}])])
    assert document("example.com", "v1", bare)["components"]["schemas"]["com.example.v1.Gateway"] == {
        "type": "object",
        GVK: [{"group": "example.com", "version": "v1", "kind": "Gateway"}],
    }


def test_a_document_is_made_once() -> None:
    api = OpenApi(GATEWAYS)
    first = api.document("example.com", "v1", "", "")
    assert api.document("example.com", "v1", "", "").body is first.body
    assert page("apps", "v1", GATEWAYS).body is page("apps", "v1").body
    assert api.index("") is api.index("")


def test_all_documents_are_no_more_than_three_megabytes() -> None:
    assert sum(len(page(group.name, one).body) for group in ALL.groups() for one in group.versions) < 3_000_000
