"""What cannot be read harms nobody else: workloads lives, tells it once on the object, and looks after all
others."""

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.operations import K8sEvent
from podyard.workloads.service import SERVICE
from tests.contract.workloads.test_workloads import Cluster, has_replicas
from tests.support import objects, stored
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.unit.workloads.stage import replica_set

NESTED = b"[" * 900 + b"]" * 900


def nested_object(resource: str, document: objects.Document) -> Outgoing:
    message = stored.version(resource, document)
    return message.but(payload=message.payload.replace(b'"spec":', b'"more":' + NESTED + b',"spec":', 1))


async def test_what_cannot_be_read_is_told_once_on_its_object_and_all_others_are_looked_after(bus, connect_bus):
    cluster, told = Cluster(bus), list[K8sEvent]()
    await bus.subscribe("k8sevents.>", lambda subject, payload, trace: told.append(codec.decode(K8sEvent, payload)))
    await cluster.node("n1")
    for message in (
        Outgoing(subjects.node_status("n1"), b'{"node":"n1","more":' + b"[" * 5_000),
        Outgoing(subjects.pod_status("n1", "default", "other", "u"), b"\xff"),
        Outgoing(subjects.binding("default", "lost", "v"), b"7"),
        nested_object("pods", objects.pod("bad")),
        nested_object("replicasets", replica_set(2, "worse")),
        Outgoing("cluster.podstatus", b"7"),
    ):
        await cluster.write(message)
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        await cluster.apply(replica_set(2))
        await eventually("its pods", lambda: has_replicas(cluster, 2))
        await eventually("all is told", lambda: len(told) >= 5)
    regarded = [(event.regarding.resource, event.regarding.name, event.reason) for event in told]
    assert sorted(regarded) == [
        ("nodes", "n1", "Unreadable"),
        ("pods", "bad", "Unreadable"),
        ("pods", "lost", "Unreadable"),
        ("pods", "other", "Unreadable"),
        ("replicasets", "worse", "Unreadable"),
    ]
    message = next(event.message for event in told if event.regarding.resource == "replicasets")
    assert "nested too deep" in message


async def test_what_is_told_on_a_pod_is_told_where_those_look_who_explain_it(bus, connect_bus):
    cluster, told = Cluster(bus), list[K8sEvent]()
    _, place = subjects.k8s_events_about("default", "pods", "bad")
    await bus.subscribe(place, lambda subject, payload, trace: told.append(codec.decode(K8sEvent, payload)))
    await cluster.write(nested_object("pods", objects.pod("bad")))
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        await eventually("it is told", lambda: bool(told))
    assert [event.reason for event in told] == ["Unreadable"]
