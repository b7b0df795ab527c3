"""The view that `get` reads: joined objects, and documents with every field."""

import json
from typing import NamedTuple

import pytest

from podyard.bus.delivery import Delivery
from podyard.cli import getting, stored_objects
from podyard.cli.scenario import waiting
from podyard.cli.scenario.model import Wait
from podyard.cluster.keys import ObjectKey
from podyard.objects import label_text
from podyard.proto import headers
from podyard.proto.facts import Condition, NodeStatusFact, PodStatusFact
from podyard.proto.placement import BoundPod
from podyard.shell.folds import Folds
from podyard.telling import listing
from podyard.telling.objects import Objects
from tests.support import objects as documents
from tests.support import stored

NOW = 1_800_000_000.0


def delivered(message, sequence, **marks):
    return Delivery(message.subject, message.payload, sequence, NOW, marks or None)


def pod(name, sequence, namespace="default", labels=None, **marks):
    document = documents.pod(name, namespace=namespace, labels=labels, phase="Pending", container={"mystery": 5})
    return delivered(stored.version("pods", document), sequence, **marks)


def node(name, sequence):
    return delivered(stored.version("nodes", documents.node(name, status={"mystery": 1})), sequence)


def binding(name, where, sequence):
    return delivered(stored.binding(BoundPod(namespace="default", name=name, uid=f"uid-{name}", node=where)), sequence)


def running(name, where, sequence):
    fact = PodStatusFact(namespace="default", name=name, uid=f"uid-{name}", node=where, phase="Running")
    return delivered(stored.pod_status(fact), sequence)


def ready(name, sequence):
    fact = NodeStatusFact(node=name, node_uid=f"uid-{name}", conditions=(Condition(type="Ready", status="True"),))
    return delivered(stored.node_status(fact), sequence)


class Seen(NamedTuple):
    """Objects, and the folds that feed them."""

    objects: Objects
    folds: Folds


@pytest.fixture
def seen():
    objects = stored_objects.nothing()
    found = Seen(objects, stored_objects.folds_of(objects))
    found.folds.begin_listing()
    for delivery in (
        node("n1", 1),
        node("n2", 2),
        pod("a", 3, labels={"app": "web"}),
        pod("b", 4),
        pod("c", 5, namespace="other"),
        binding("a", "n1", 6),
        running("a", "n1", 7),
        ready("n1", 8),
    ):
        found.folds.apply(delivery)
    found.folds.end_listing(8)
    return found


def output(objects, *words, namespace="default", selector="", form="table"):
    query = getting.parse(words[0], words[1:], namespace, selector, form)
    return list(getting.lines(query, objects, getting.select(query, objects), NOW))


def test_the_table_joins_binding_and_status(seen):
    lines = [line.split() for line in output(seen.objects, "pods", form="wide")]
    assert lines[1][:3] == ["a", "0/1", "Running"]
    assert "n1" in lines[1]
    assert lines[2][:3] == ["b", "0/1", "Pending"]
    assert len(lines) == 3


def test_all_namespaces_show_their_names(seen):
    assert [line.split()[:2] for line in output(seen.objects, "pods", namespace=None)] == [
        ["NAMESPACE", "NAME"],
        ["default", "a"],
        ["default", "b"],
        ["other", "c"],
    ]


def test_selectors_and_names_choose(seen):
    assert output(seen.objects, "pods", selector="app=web", form="name") == ["pod/a"]
    assert output(seen.objects, "pod/b", "node/n2", form="name") == ["pod/b", "node/n2"]


def test_several_kinds_are_several_tables_with_kinds_in_the_names(seen):
    lines = output(seen.objects, "pods,nodes")
    assert [line.split()[0] for line in lines if line] == ["NAME", "pod/a", "pod/b", "NAME", "node/n1", "node/n2"]
    assert "" in lines


def test_one_named_object_is_itself_and_several_are_a_list(seen):
    one = json.loads("\n".join(output(seen.objects, "pod/a", form="json")))
    assert one["kind"] == "Pod"
    many = json.loads("\n".join(output(seen.objects, "pods", form="json")))
    assert many["kind"] == "List"
    assert len(many["items"]) == 2


def test_documents_keep_unknown_fields_and_are_joined(seen):
    one = json.loads("\n".join(output(seen.objects, "pod/a", form="json")))
    assert one["spec"]["containers"][0]["mystery"] == 5
    assert one["spec"]["nodeName"] == "n1"
    assert one["status"]["phase"] == "Running"
    assert one["metadata"]["resourceVersion"] == "3"
    joined = json.loads("\n".join(output(seen.objects, "node/n1", form="json")))
    assert joined["status"]["mystery"] == 1
    assert joined["status"]["conditions"][0]["type"] == "Ready"


def test_a_marker_removes_the_object(seen):
    seen.folds.apply(pod("b", 9, **{headers.OPERATION: headers.DELETED}))
    assert output(seen.objects, "pods", form="name") == ["pod/a"]
    assert not seen.objects.has(ObjectKey("pods", "default", "b"))


@pytest.mark.parametrize("namespace", [None, "default", "other"])
@pytest.mark.parametrize(
    ("words", "selector"), [(("pods",), ""), (("pods",), "app=web"), (("nodes",), ""), (("pods,nodes",), "")], ids=str
)
def test_what_changes_is_shown_if_a_listing_would_show_it(seen, words, selector, namespace):
    query = getting.parse(words[0], words[1:], namespace, selector, "table")
    every = [key for resource in ("pods", "nodes") for key in seen.objects.keys(resource)]
    listed = getting.select(query, seen.objects)
    assert [key for key in every if getting.is_meant(query, seen.objects, key)] == listed
    assert not getting.is_meant(query, seen.objects, ObjectKey("pods", "default", "gone"))


def test_what_is_named_and_not_there_is_missing(seen):
    query = getting.parse("pods", ("a", "zzz"), "default", "", "name")
    assert getting.missing(query, getting.select(query, seen.objects)) == ["pods/zzz"]


def test_a_listing_replaces_what_was_there(seen):
    seen.folds.begin_listing()
    seen.folds.apply(pod("b", 4))
    assert output(seen.objects, "pods", form="name") == ["pod/a", "pod/b"]
    seen.folds.end_listing(20)
    assert output(seen.objects, "pods", form="name") == ["pod/b"]


def wait(what="pods", state="Running", **more):
    return Wait(what=what, state=state, **more)


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (wait(name="a"), True),
        (wait(name="b"), False),
        (wait(), False),
        (wait(count=1), True),
        (wait(count=2), False),
        (wait(state="Pending", name="b"), True),
        (wait(state="Bound", count=1), True),
        (wait(state="Unschedulable", name="b"), True),
        (wait(state="Unschedulable", name="a"), False),
        (wait(state="Gone", name="zzz"), True),
        (wait(state="Gone", name="a"), False),
        (wait(name="zzz"), False),
        (wait(selector=label_text.parse("app=web")), True),
        (wait("nodes", "Ready", name="n1"), True),
        (wait("nodes", "Ready"), False),
        (wait("nodes", "Ready", count=1), True),
        (wait("nodes", "NotReady", name="n2"), True),
        (wait("nodes", "MemoryPressure", name="n1"), False),
    ],
    ids=lambda value: value.described() if isinstance(value, Wait) else "",
)
def test_when_a_wait_holds(seen, wanted, holds):
    assert waiting.holds(wanted, seen.objects.view) is holds


def test_how_far_a_wait_is(seen):
    assert waiting.progress(wait(), seen.objects.view) == "1 of 2 are"
    assert waiting.progress(wait(state="Gone"), seen.objects.view) == "2 are still there"


NESTED = b"[" * 600 + b"]" * 600


def broken(delivery, sequence):
    """As version 0.1.0 may have stored it."""
    payload = delivery.payload.replace(b'"spec":', b'"more":' + NESTED + b',"spec":')
    return Delivery(delivery.subject, payload, sequence, NOW)


def notes(objects, *words, namespace="default"):
    query = getting.parse(words[0], words[1:], namespace, "", "table")
    return list(listing.notes(objects, getting.select(query, objects)))


def test_an_object_that_cannot_be_read_is_shown_with_its_name_and_why(seen):
    seen.folds.apply(broken(pod("bad", 9), 9))
    reason = "nested too deep: more than 500 levels"
    lines = [line.split() for line in output(seen.objects, "pods")]
    assert [line[0] for line in lines] == ["NAME", "a", "b", "bad"]
    assert lines[3] == ["bad", "<unreadable>"]
    assert notes(seen.objects, "pods") == [
        f"pod/bad -n default: unreadable, counts as absent: {reason}; `podyard delete pod/bad -n default` removes it"
    ]
    assert notes(seen.objects, "pods", "a") == []
    (document,) = json.loads(output(seen.objects, "pods", "bad", form="json")[0].join("[]"))
    assert (document["metadata"]["name"], document["podyardError"]) == ("bad", reason)
    assert output(seen.objects, "pods", form="name") == ["pod/a", "pod/b", "pod/bad"]
    assert [line.split()[0] for line in output(seen.objects, "pods", selector="app=web")] == ["NAME", "a"]


def test_an_object_of_another_kind_that_cannot_be_read_is_shown_in_its_table(seen):
    document = {"metadata": {"name": "web", "namespace": "default", "uid": "d"}, "spec": {"replicas": 10**30}}
    seen.folds.apply(delivered(stored.version("deployments", document), 9))
    assert output(seen.objects, "deployments")[1].split() == ["web", "<unreadable>"]
    assert "spec.replicas: must be at most 9223372036854775807" in notes(seen.objects, "deployments")[0]
    assert json.loads(output(seen.objects, "deployments", "web", form="json")[0])["spec"]["replicas"] == 10**30


def test_a_node_whose_agent_cannot_be_understood_is_blind(seen):
    seen.folds.apply(Delivery(ready("n1", 9).subject, b"7", 9, NOW))
    assert [line.split()[:2] for line in output(seen.objects, "nodes")][1:] == [
        ["n1", "Ready,Blind"],
        ["n2", "Unknown"],
    ]
    (note,) = notes(seen.objects, "nodes")
    assert note == (
        "node/n1: what its agent said last cannot be read, so what it said before is shown: "
        "not a NodeStatusFact: Expected `object`, got `int`"
    )


def test_a_pod_says_what_cannot_be_read_of_what_others_know(seen):
    seen.folds.apply(Delivery(running("a", "n1", 9).subject, b"7", 9, NOW))
    (note,) = notes(seen.objects, "pods")
    assert note.startswith("pod/a -n default: what the agent of node n1 said of it cannot be read: not a PodStatusFact")
    seen.folds.begin_listing()
    seen.folds.apply(pod("a", 3))
    seen.folds.apply(Delivery(binding("a", "n1", 6).subject, b"7", 10, NOW))
    seen.folds.end_listing(10)
    (note,) = notes(seen.objects, "pods")
    assert note.startswith("pod/a -n default: its binding cannot be read: not a Binding or Tombstone")
    assert note.endswith("; see podyard mend")
