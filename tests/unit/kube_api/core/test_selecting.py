"""Which objects selectors mean, and how wrong ones are refused."""

import pytest

from podyard.kube_api.core import selecting
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.json_paths import Path
from podyard.kube_api.core.selecting import Term
from podyard.kube_api.core.shelves import Scope
from podyard.objects.kinds import kind_of_resource
from tests.support import objects, stored
from tests.unit.kube_api.core.world import World


def refusal(labels: str = "", fields: str = "", *, resource: str = "pods", api_version: str = "v1") -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        selecting.parse(labels, fields, kind=kind_of_resource(resource), api_version=api_version)
    return caught.value.code, caught.value.message


def meant(world: World, fields: str, resource: str = "pods") -> list[str]:
    kind = kind_of_resource(resource)
    selection = selecting.parse("", fields, kind=kind, api_version=kind.api_version)
    return [item.key.name for item in world.store.items(Scope(resource)) if selection.selects(item)]


@pytest.fixture
def world() -> World:
    made = World()
    made.node("n1")
    made.node("n2", unschedulable=True)
    made.pod("a", restartPolicy="Never", schedulerName="mine", serviceAccountName="bob", hostNetwork=True)
    made.pod("b", status={"podIPs": [{"ip": "10.0.0.1"}], "phase": "Pending"}, restartPolicy="Always")
    made.bind("a", "n1")
    made.status("a", "n1", "Running")
    made.nominate("b", "n2")
    made.relist()
    return made


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.namespace=default", ["a", "b"]),
        ("metadata.namespace!=default", []),
        ("spec.nodeName=n1", ["a"]),
        ("spec.host=n1", ["a"]),
        ("spec.nodeName=", ["b"]),
        ("spec.restartPolicy==Never", ["a"]),
        ("spec.schedulerName=mine", ["a"]),
        ("spec.serviceAccountName=bob", ["a"]),
        ("spec.hostNetwork=true", ["a"]),
        ("spec.hostNetwork=false", ["b"]),
        ("status.phase!=Pending", ["a"]),
        ("status.podIP=10.0.0.1", ["b"]),
        ("status.nominatedNodeName=n2", ["b"]),
        ("spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed", ["a"]),
    ],
)
def test_pods_are_meant_by_what_is_joined_of_them(world: World, fields: str, names: list[str]):
    assert meant(world, fields) == names


def test_nodes_are_meant_by_whether_they_take_pods(world: World):
    assert meant(world, "spec.unschedulable=true", "nodes") == ["n2"]
    assert meant(world, "spec.unschedulable=false", "nodes") == ["n1"]


def test_others_are_meant_by_their_documents(world: World):
    for name, type_ in (("s", "Opaque"), ("t", "kubernetes.io/tls")):
        document = {"metadata": {"name": name, "namespace": "default", "uid": name}, "type": type_}
        world.stream.put(stored.version("secrets", document))
    job = {"metadata": {"name": "j", "namespace": "default", "uid": "j"}, "spec": {}, "status": {"succeeded": 3}}
    world.stream.put(stored.version("jobs", job))
    world.deliver()
    assert meant(world, "type=Opaque", "secrets") == ["s"]
    assert meant(world, "status.successful=3", "jobs") == ["j"]
    assert meant(world, "status.successful=0", "jobs") == []


def test_a_definition_adds_fields(world: World):
    resource = "widgets.v1.example.com"
    for name, size in (("big", 9), ("small", 1)):
        document = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"size": size}}
        world.stream.put(stored.version(resource, document))
    world.deliver()
    kind, path = kind_of_resource(resource), Path(".spec.size")
    selection = selecting.parse("", "spec.size=9", kind=kind, api_version="example.com/v1", added={"spec.size": path})
    assert [item.key.name for item in world.store.items(Scope(resource)) if selection.selects(item)] == ["big"]
    assert refusal(fields="spec.size=9", resource=resource) == (400, "field label not supported: spec.size")


@pytest.mark.parametrize(
    ("resource", "fields", "message"),
    [
        ("pods", "spec.foo=1", "field label not supported: spec.foo"),
        ("nodes", "metadata.namespace=a", "field label not supported: metadata.namespace"),
        ("jobs", "status.active=1", 'field label "status.active" not supported for Job'),
        ("resourceslices", "a=b", "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"),
        ("deployments", "a=b", '"a" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("pods", "a", "invalid selector: 'a'; can't understand 'a'"),
        ("pods", "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("pods", "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
        ("pods", "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_wrong_field_selectors_are_refused_in_the_reference_s_words(resource: str, fields: str, message: str):
    kind = kind_of_resource(resource)
    assert refusal(fields=fields, resource=resource, api_version=kind.api_version) == (400, message)


def test_a_wrong_label_selector_is_refused_in_the_reference_s_words():
    told = "unable to parse requirement: found ',', expected: identifier"
    assert refusal(labels="a=(") == (400, "unable to parse requirement: found '(', expected: identifier")
    assert refusal(labels="!,b") == (400, told)


def test_escaped_characters_are_part_of_a_value():
    assert selecting.parse_fields("a=x\\,y\\=z,b!=c,") == [Term("a", True, "x,y=z"), Term("b", False, "c")]


def test_too_many_terms_are_refused():
    code, message = refusal(fields=",".join(["metadata.name=a"] * 257))
    assert code == 400
    assert "257 terms" in message


def test_events_are_meant_by_what_they_are_about():
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Node", "name": "n1"},
        "reportingComponent": "podyard",
    }
    assert selecting.field_of(event, "involvedObject.kind") == "Node"
    assert selecting.field_of(event, "involvedObject.namespace") == ""
    assert selecting.field_of(event, "source") == "podyard"


def test_labels_are_those_of_the_object(world: World):
    world.stream.put(stored.version("pods", objects.pod("c", labels={"app": "x"})))
    world.deliver()
    selection = selecting.parse("app in (x, y)", "", kind=kind_of_resource("pods"), api_version="v1")
    assert [item.key.name for item in world.store.items(Scope("pods")) if selection.selects(item)] == ["c"]
