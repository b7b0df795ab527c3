"""Which records under a name are about which pod."""

import msgspec

from podyard.objects import times
from podyard.proto import codec
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo, QueueListReply
from podyard.telling import evidence
from podyard.telling.evidence import Records
from tests.support import objects, stored

AT = 1_800_000_000.0
NEW, OLD = "uid-new", "uid-old"


def version(**metadata) -> ClusterEvent:
    metadata = {"creationTimestamp": times.rfc3339(AT), **metadata}
    document = objects.pod("web", uid=NEW, schedulerName="mine", priority=7, metadata=metadata)
    return codec.decode(ClusterEvent, stored.version("pods", document).payload)


def attempt(uid: str, at: float = AT) -> AttemptRecord:
    return AttemptRecord(namespace="default", name="web", uid=uid, attempt=uid, at=at, outcome="unschedulable")


def status(uid: str, node: str) -> PodStatusFact:
    begun = times.rfc3339(AT + 5)
    return PodStatusFact(namespace="default", name="web", uid=uid, node=node, phase="Running", start_time=begun)


def bound(uid: str, node: str, at: float = AT) -> Binding:
    return Binding(namespace="default", name="web", uid=uid, node=node, bound_at=at)


def told(uid: str) -> K8sEvent:
    about = ObjectRef(resource="pods", namespace="default", name="web", uid=uid)
    return K8sEvent(regarding=about, reason="Started", message="", at=AT, reporter="node_agent")


def queue(uid: str, **more) -> QueueListReply:
    pod = QueuedPodInfo(namespace="default", name="web", uid=uid, pool="activeQ")
    return QueueListReply(epoch=1, pods=(pod,), profiles=("default-scheduler",), **more)


def records(**more) -> Records:
    return Records(namespace="default", name="web", **more)


def test_the_living_pod_is_meant_and_what_is_of_its_namesakes_left_out():
    about = evidence.of(
        records(
            version=version(),
            attempts=[attempt(OLD), attempt(NEW)],
            placements=[
                Tombstone(namespace="default", name="web", uid=OLD, node="n1", reason="terminated"),
                bound(NEW, "n2"),
            ],
            statuses=[status(OLD, "n1"), status(NEW, "n2")],
            events=[told(OLD), told(NEW), told("")],
            queue=queue(OLD),
        )
    )
    assert about is not None
    assert (about.uid, about.scheduler, about.priority, about.created_at) == (NEW, "mine", 7, AT)
    assert not about.deleted
    assert not about.deleting
    assert [record.uid for record in about.attempts] == [NEW]
    assert about.placement == bound(NEW, "n2")
    assert about.status == status(NEW, "n2")
    assert about.started_at == AT + 5
    assert [event.regarding.uid for event in about.events] == [NEW, ""]
    assert about.queued is None


def test_a_pod_that_is_being_deleted_says_so():
    about = evidence.of(records(version=version(deletionTimestamp=times.rfc3339(AT))))
    assert about is not None
    assert about.deleting
    assert not about.deleted


def test_without_an_object_the_pod_of_the_newest_record_is_meant():
    about = evidence.of(
        records(attempts=[attempt(OLD, AT), attempt(NEW, AT + 2)], placements=[bound(OLD, "n1", AT + 1)])
    )
    assert about is not None
    assert about.uid == NEW
    assert about.deleted
    assert about.placement is None


def test_a_version_that_cannot_be_read_is_as_none():
    broken = msgspec.structs.replace(version(), object=msgspec.Raw(b'{"metadata":7}'))
    about = evidence.of(records(version=broken, attempts=[attempt(OLD)]))
    assert about is not None
    assert about.uid == OLD


def test_without_any_trace_there_is_no_evidence():
    assert evidence.of(records()) is None
    assert evidence.of(records(queue=queue(NEW))) is None


def test_what_the_queue_says_is_of_this_pod_or_it_does_not_answer():
    waits = OutsidePod(namespace="default", name="web", uid=NEW, scheduler="batch")
    about = evidence.of(records(version=version(), queue=queue(NEW, outside=(waits,))))
    assert about is not None
    assert about.queued is not None
    assert (about.outside, about.profiles, about.unheard) == (waits, ("default-scheduler",), False)
    unheard = evidence.of(records(version=version()))
    assert unheard is not None
    assert (unheard.queued, unheard.outside, unheard.unheard) == (None, None, True)
