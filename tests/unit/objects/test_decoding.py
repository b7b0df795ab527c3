import json

import msgspec
import pytest

from podyard import objects
from podyard.objects import decoding, kinds
from podyard.objects.core import Node, Pod
from podyard.objects.errors import ObjectError, UnknownKindError
from tests.support import shapes


def encoded(document):
    return json.dumps(document).encode()


def test_a_pod_as_the_api_server_writes_it():
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "labels": {"a": "b"}, "managedFields": [{"manager": "x"}]},
        "spec": {
            "nodeName": "n1",
            "schedulingGates": [{"name": "g"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
            "containers": [
                {"name": "c", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 1, "hostIP": "::"}]}
            ],
            "volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "vol"}}, {"name": "w", "downwardAPI": {}}],
        },
        "status": {"nominatedNodeName": "n2", "podIP": "10.0.0.1"},
    }
    pod = decoding.decode_as(Pod, encoded(document))
    assert (pod.spec.node_name, pod.status.nominated_node_name, pod.status.pod_ip) == ("n1", "n2", "10.0.0.1")
    assert pod.spec.scheduling_gates[0].name == "g"
    assert pod.spec.containers[0].ports[0].host_ip == "::"
    assert pod.spec.volumes[0].aws_elastic_block_store.volume_id == "vol"
    assert pod.spec.volumes[1].downward_api is not None
    assert pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms == ()


def test_nulls_are_absent_and_numbers_are_quantities():
    document = {
        "metadata": {"name": "n", "labels": None, "creationTimestamp": None},
        "status": {"allocatable": {"cpu": 4, "memory": 0.5, "pods": "110"}, "conditions": None},
    }
    node = objects.decode("nodes", encoded(document))
    assert isinstance(node, Node)
    assert node.metadata.labels == {}
    assert node.status.allocatable == {"cpu": "4", "memory": "0.5", "pods": "110"}


def test_raw_and_memoryview_are_taken_too():
    payload = encoded({"metadata": {"name": "p"}})
    for form in (payload, memoryview(payload), msgspec.Raw(payload)):
        assert objects.decode("pods", form).metadata.name == "p"


@pytest.mark.parametrize(
    ("payload", "field", "detail"),
    [
        (b"{", "", "not valid JSON: Input data was truncated"),
        (b"[]", "", "must be a mapping, is a list"),
        (
            b'{"metadata": {"labels": {"a": "b", "c": 1}}}',
            "metadata.labels[c]",
            "must be text, is a whole number: put it in quotes",
        ),
        (b'{"spec": {"containers": [{"image": "x"}]}}', "spec.containers[0]", 'misses the required field "name"'),
        (b'{"spec": {"priority": "high"}}', "spec.priority", "must be a whole number, is text"),
        (b'{"spec": {"containers": {}}}', "spec.containers", "must be a list, is a mapping"),
        (
            b'{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": [1]}}}]}}',
            "spec.containers[0].resources.requests[cpu]",
            "must be text, is a list",
        ),
    ],
)
def test_a_fault_says_where_and_what(payload, field, detail):
    with pytest.raises(ObjectError) as caught:
        objects.decode("pods", payload)
    assert (caught.value.field, caught.value.detail) == (field, detail)


def levels(count: int) -> bytes:
    """A pod's document of so many levels: its annotations are no text, so that whoever reads them says
    where."""
    return b'{"metadata": {"name": "p"}, "more": ' + b"[" * (count - 1) + b"]" * (count - 1) + b"}"


@pytest.mark.parametrize("resource", ["pods", "widgets.v1.example.com"])
def test_what_is_nested_too_deep_cannot_be_read_and_all_else_can(resource):
    assert objects.decode(resource, levels(decoding.MOST_NESTED)).metadata.name == "p"
    for count in (decoding.MOST_NESTED + 1, 969, 100_000):
        with pytest.raises(ObjectError) as caught:
            objects.decode(resource, levels(count))
        assert (caught.value.field, caught.value.detail) == ("", "nested too deep: more than 500 levels")


def test_many_brackets_are_not_deep():
    wide = b'{"metadata": {"name": "p"}, "more": [' + b'{"a": ["[[{", "\\"]]"]},' * 2_000 + b"1]}"
    assert decoding.document(wide)["metadata"] == {"name": "p"}
    quoted = b'{"metadata": {"name": "' + b"[" * 2_000 + b'"}}'
    assert objects.decode("pods", quoted).metadata.name == "[" * 2_000


@pytest.mark.parametrize(
    ("payload", "field", "detail"),
    [
        (b'{"spec": {"priority": %d}}' % 10**30, "spec.priority", "must be at most 9223372036854775807"),
        (b'{"spec": {"priority": -%d}}' % 10**30, "spec.priority", "must be at least -9223372036854775808"),
        (b'{"spec": {"priority": 1%s}}' % (b"0" * 5000), "spec.priority", "Integer value out of range"),
        (b'{"spec": {"priority": 1e400}}', "spec.priority", "Number out of range"),
        (b'{"metadata": {"name": "\xff"}}', "", None),
        (b'{"spec": {"priority": NaN}}', "", None),
        (b'{"metadata": {"labels": {"\xff": "a"}}}', "", None),
    ],
)
def test_what_no_field_can_hold_is_an_object_error(payload, field, detail):
    with pytest.raises(ObjectError) as caught:
        objects.decode("pods", payload)
    assert caught.value.field == field
    assert caught.value.detail == detail or (detail is None and caught.value.detail.startswith("not valid JSON: "))


def test_every_whole_number_of_a_kind_is_an_int64():
    assert shapes.unbounded_numbers(kind.type for kind in kinds.KINDS) == set()


def test_a_custom_object_keeps_its_whole_document():
    document = {
        "apiVersion": "e.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "labels": None},
        "spec": {"x": None},
    }
    widget = objects.decode("widgets.v1.e.com", encoded(document))
    assert isinstance(widget, kinds.CustomObject)
    assert widget.metadata.name == "w"
    assert widget.raw == document


def test_every_built_in_kind_decodes_the_least_document():
    for kind in kinds.KINDS:
        document = {"metadata": {"name": "x"}}
        if kind.kind == "ResourceSlice":
            document["spec"] = {"driver": "d", "pool": {"name": "p"}}
        assert objects.decode(kind.resource, encoded(document)).metadata.name == "x"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Widget", "widgets"), ("Policy", "policies"), ("Class", "classes"), ("Endpoints", "endpoints"), ("Bus", "buses")],
)
def test_plurals_are_guessed_as_kubernetes_does(kind, plural):
    assert kinds.plural_of(kind) == plural


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("po", "pods"),
        ("Pod", "pods"),
        ("pods", "pods"),
        ("deploy", "deployments"),
        ("deployments.apps", "deployments"),
        ("deployments.v1.apps", "deployments"),
        ("pdb", "poddisruptionbudgets"),
        ("csinode", "csinodes"),
        ("widgets.v1.e.com", "widgets.v1.e.com"),
    ],
)
def test_resources_are_found_by_all_their_names(name, resource):
    assert kinds.resource_for(name).resource == resource


@pytest.mark.parametrize("name", ["widgets", "deployments.batch", "widgets.e.com", "pods.v1.", ""])
def test_unknown_resources_are_refused(name):
    with pytest.raises(UnknownKindError, match="no resource is called"):
        kinds.resource_for(name)


def test_kinds_of_documents():
    assert kinds.kind_for("apps/v1", "Deployment").resource == "deployments"
    custom = kinds.kind_for("e.com/v1alpha1", "Policy")
    assert (custom.resource, custom.event_resource, custom.custom) == (
        "policies.v1alpha1.e.com",
        "policies.v1alpha1.e.com",
        True,
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "says"),
    [
        ("v1", "Widget", "kinds of your own need a group"),
        ("v1", "Deployment", "use kind Deployment with apiVersion apps/v1"),
        ("v1", "pod", "use kind Pod with apiVersion v1"),
        ("apps/v1beta1", "Deployment", "use apiVersion apps/v1"),
        ("v2", "Pod", "use apiVersion v1"),
        ("e.com/one", "Widget", "is no <group>/<version>"),
        ("e.com/v1", "Wid.get", "a kind has letters and digits only"),
        ("", "Pod", "use apiVersion v1"),
    ],
)
def test_unknown_kinds_are_refused_with_advice(api_version, kind, says):
    with pytest.raises(UnknownKindError, match=says):
        kinds.kind_for(api_version, kind)


def test_event_resources_are_those_of_the_reference():
    assert [kinds.kind_of_event(name).resource for name in ("Pod", "AssignedPod", "UnschedulablePod", "Node")] == [
        "pods",
        "pods",
        "pods",
        "nodes",
    ]
    assert kinds.kind_of_resource("csinodes").event_resource == "storage.k8s.io/CSINode"
    assert kinds.kind_of_event("resource.k8s.io/ResourceClaim").resource == "resourceclaims"
    assert kinds.kind_of_event("widgets.v1.e.com").custom
    with pytest.raises(UnknownKindError):
        kinds.kind_of_event("Widget")


def test_the_public_face_is_complete():
    assert set(objects.__all__) <= set(vars(objects))
    assert len(set(objects.__all__)) == len(objects.__all__)


def test_a_view_of_a_document_with_nulls_leaves_the_document_alone():
    document = {"metadata": {"name": "p", "labels": None}, "spec": {"overhead": {"cpu": 1}}}
    pod = decoding.view(kinds.kind_of_resource("pods"), document)
    assert (pod.metadata.labels, pod.spec.overhead) == ({}, {"cpu": "1"})
    assert document == {"metadata": {"name": "p", "labels": None}, "spec": {"overhead": {"cpu": 1}}}
