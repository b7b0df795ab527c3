"""Tables: columns of the reference, cells of what is stored."""

from typing import Any

import msgspec
import pytest

from podyard.kube_api.core import columns, document_cells, tabling
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.listing import ListOptions, list_of
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.tabling import Table
from podyard.objects.kinds import Kind, kind_of_resource
from podyard.telling import tables
from tests.support import objects, stored
from tests.unit.kube_api.core.world import World, events, ignore

NOW = 1_000_000.0
CREATED = "1970-01-12T13:45:40Z"
"""A minute before."""


def world() -> World:
    made = World()
    made.relist()
    return made


def form(made: World, resource: str, **more: Any) -> Table:
    kind = kind_of_resource(resource)
    return Table(made.bodies, kind=kind, api_version=kind.api_version, **more)


def put(made: World, resource: str, name: str, **fields: Any) -> None:
    metadata = {"name": name, "uid": name, "creationTimestamp": CREATED, **fields.pop("metadata", {})}
    if kind_of_resource(resource).namespaced:
        metadata["namespace"] = "default"
    made.stream.put(stored.version(resource, {"metadata": metadata, **fields}))
    made.deliver()


def table(made: World, resource: str, **more: Any) -> dict[str, Any]:
    page = list_of(made.store, Scope(resource), ListOptions())
    written = form(made, resource, **more)
    return msgspec.json.decode(written.several(page, written.pieces(page.items, NOW)))


def test_pods_have_the_reference_s_columns():
    made = world()
    made.pod("web", metadata={"creationTimestamp": CREATED})
    made.deliver()
    found = table(made, "pods")
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    heads = found["columnDefinitions"]
    assert [(one["name"], one["priority"]) for one in heads] == [
        *(("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0)),
        *(("IP", 1), ("Node", 1), ("Nominated Node", 1), ("Readiness Gates", 1)),
    ]
    assert heads[0] == {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    (row,) = found["rows"]
    assert row["cells"] == ["web", "0/1", "Unknown", "0", "60s", "<none>", "<none>", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert set(row["object"]) == {"kind", "apiVersion", "metadata"}


def test_a_pod_that_has_ended_says_so_in_its_row():
    made = world()
    made.pod("web", phase="Succeeded")
    made.deliver()
    (row,) = table(made, "pods")["rows"]
    assert [(one["type"], one["reason"]) for one in row["conditions"]] == [("Completed", "Succeeded")]


def test_nodes_have_no_columns_of_podyard_s_own():
    made = world()
    made.node("n1")
    made.deliver()
    found = table(made, "nodes")
    assert [one["name"] for one in found["columnDefinitions"]][:5] == ["Name", "Status", "Roles", "Age", "Version"]
    assert len(found["rows"][0]["cells"]) == len(found["columnDefinitions"]) == 10


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_rows_have_the_object_that_was_asked_for(include: str):
    made = world()
    made.pod("web")
    made.deliver()
    (row,) = table(made, "pods", include=include)["rows"]
    kinds = {"None": None, "Metadata": "PartialObjectMetadata", "Object": "Pod"}
    assert (None if row["object"] is None else row["object"]["kind"]) == kinds[include]


def test_another_word_for_the_object_is_refused():
    with pytest.raises(ApiError) as caught:
        form(world(), "pods", include="Half")
    assert caught.value.code == 400
    assert "Unable to convert to Table as requested: includeObject: Unsupported value" in caught.value.message


def test_only_the_first_event_of_a_watch_has_columns():
    made = world()
    watcher = made.watchers.open(Scope("pods"), form(made, "pods"), ListOptions(bookmarks=True), wake=ignore)
    for name in ("a", "b"):
        made.pod(name)
    made.deliver()
    found = events(watcher.take(NOW))
    assert [type_ for type_, _ in found] == ["BOOKMARK", "ADDED", "ADDED"]
    assert [one["columnDefinitions"] is None for _, one in found] == [False, True, True]
    assert found[0][1]["rows"][0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert found[1][1]["metadata"]["resourceVersion"] == found[1][1]["rows"][0]["object"]["metadata"]["resourceVersion"]


DEPLOYMENT = {
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
    "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
}


KINDS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("deployments", DEPLOYMENT, ["x", "2/3", 3, 1, "60s", "c", "i", "app=web"]),
    ("configmaps", {"data": {"a": "1"}, "binaryData": {"b": "Mg=="}}, ["x", 2, "60s"]),
    ("secrets", {"data": {"a": "MQ=="}, "type": "Opaque"}, ["x", "Opaque", 1, "60s"]),
    ("serviceaccounts", {}, ["x", "60s"]),
    ("priorityclasses", {"value": 7}, ["x", 7, False, "60s", "PreemptLowerPriority"]),
    ("limitranges", {}, ["x", CREATED]),
    ("leases", {"spec": {"holderIdentity": "me"}}, ["x", "me", "60s"]),
    (
        "csidrivers",
        {"spec": {"volumeLifecycleModes": ["Persistent"]}},
        ["x", True, False, False, "<unset>", False, "Persistent", "60s"],
    ),
    ("networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, ["x", "a=b", "60s"]),
    (
        "rolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
        },
        ["x", "Role/r", "60s", "u", "", "n/s"],
    ),
    (
        "ingresses",
        {
            "spec": {"ingressClassName": "nginx", "rules": [{"host": h} for h in "abcd"], "tls": [{}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
        },
        ["x", "nginx", "a,b,c + 1 more...", "1.2.3.4", "80, 443", "60s"],
    ),
    (
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}]}]},
        ["x", "1.1.1.1:80,[::1]:80", "60s"],
    ),
    (
        "endpointslices",
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["1.1.1.1"]}]},
        ["x", "IPv4", "80", "1.1.1.1", "60s"],
    ),
    (
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "maxReplicas": 5,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}],
            }
        },
        ["x", "Deployment/web", "cpu: <unknown>/80%", "<unset>", 5, 0, "60s"],
    ),
]


@pytest.mark.parametrize(("resource", "fields", "cells"), KINDS)
def test_cells_of_kinds(resource: str, fields: dict[str, Any], cells: list[Any]):
    made = world()
    put(made, resource, "x", **fields)
    (row,) = table(made, resource)["rows"]
    assert row["cells"] == cells


def test_every_kind_with_columns_has_a_cell_for_each():
    made = world()
    for resource, found in columns.OF_RESOURCES.items():
        if resource == "events":
            continue
        if resource not in document_cells.OF_RESOURCES:
            headers = tables.headers(kind_of_resource(resource), wide=True)
            assert {one.name.upper() for one in found} <= set(headers), resource
            continue
        put(made, resource, "x")
        (row,) = table(made, resource)["rows"]
        assert len(row["cells"]) == len(found), resource


def test_a_definition_s_columns_are_read_by_their_paths():
    made = world()
    resource = "widgets.v1.example.com"
    put(made, resource, "w", spec={"size": 3, "made": CREATED, "ok": True, "tags": ["a"]})
    added = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Made", "type": "date", "jsonPath": ".spec.made", "priority": 1},
        {"name": "OK", "type": "boolean", "jsonPath": ".spec.ok"},
        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
        {"name": "None", "type": "string", "jsonPath": ".spec.none"},
        {"name": "Odd", "type": "string", "jsonPath": ".spec[?(@.a>1)]"},
    ]
    found = table(made, resource, custom=tabling.custom_columns(added))
    assert [(one["name"], one["type"], one["priority"]) for one in found["columnDefinitions"]] == [
        *(("Name", "string", 0), ("Size", "integer", 0), ("Made", "date", 1), ("OK", "boolean", 0)),
        *(("Tags", "string", 0), ("None", "string", 0), ("Odd", "string", 0)),
    ]
    assert found["rows"][0]["cells"] == ["w", 3, "60s", True, '["a"]', None, None]
    found = table(made, resource, custom=tabling.custom_columns([]))
    assert found["rows"][0]["cells"] == ["w", "60s"]


def test_an_object_that_cannot_be_read_has_its_name():
    made = world()
    made.stream.put(stored.version("pods", {**objects.pod("bad"), "spec": {"containers": 3}}))
    made.deliver()
    (row,) = table(made, "pods")["rows"]
    assert row["cells"] == ["bad", *[None] * 8]


def test_an_event_s_row():
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{c}"},
        "reason": "Started",
        "type": "Normal",
        "message": " up \n",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": CREATED,
        "lastTimestamp": None,
    }
    cells = document_cells.event(event, NOW)
    assert len(cells) == len(columns.OF_RESOURCES["events"])
    assert cells == ("60s", "Normal", "Started", "pod/web", "spec.containers{c}", "kubelet, n1", "up", "60s", 1, "e")


def test_one_object_is_a_table_of_one_row():
    made = world()
    put(made, "namespaces", "x", status={"phase": "Active"})
    kind: Kind = kind_of_resource("namespaces")
    (item,) = made.store.items(Scope("namespaces"))
    found = msgspec.json.decode(Table(made.bodies, kind=kind, api_version="v1").one(item, NOW))
    assert found["metadata"] == {"resourceVersion": str(item.version)}
    assert [row["cells"] for row in found["rows"]] == [["x", "Active", "60s"]]
