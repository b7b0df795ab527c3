"""Events that nobody sends are told from what is stored, in the reference's words."""

from typing import Any

import pytest

from podyard.objects import times
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Condition, ContainerEnd, ContainerFact, NodeStatusFact, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import COMBINED, K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.telling import events
from podyard.telling.event_facts import EventFacts, scope
from podyard.telling.evidence import Evidence
from tests.support import objects, stored

AT = 1_800_000_000.0
PLACE = subjects.binding("default", "web", "u")
NO_ROOM = "0/5 nodes are available: 5 Insufficient cpu."


def attempt(at: float = 0.0, message: str = NO_ROOM, **more: Any) -> AttemptRecord:
    fields = {"outcome": "unschedulable", "scheduler": "s-1", "attempt": f"{at}", **more}
    return AttemptRecord(namespace="default", name="web", uid="u", message=message, at=AT + at, **fields)


def bound(**more: Any) -> Binding:
    fields = {"attempt": "a", "decision": attempt(outcome="scheduled"), "bound_at": AT, **more}
    return Binding(namespace="default", name="web", uid="u", node="n1", **fields)


def deleted(at: float = 0.0, **spec: Any) -> Any:
    times_ = {"deletionTimestamp": times.rfc3339(AT + at + 30), "deletionGracePeriodSeconds": 30}
    return objects.typed_pod("web", uid="u", metadata=times_, **spec)


def status(**more: Any) -> PodStatusFact:
    return PodStatusFact(namespace="default", name="web", uid="u", node="n1", phase="Running", **more)


def told(event: K8sEvent) -> tuple[str, str, str, float, int]:
    return event.type, event.reason, event.message, event.at, event.count


def test_a_binding_says_scheduled() -> None:
    (event,) = events.scheduled(bound())
    assert told(event) == ("Normal", "Scheduled", "Successfully assigned default/web to n1", AT, 1)
    assert (event.action, event.controller, event.instance) == ("Binding", "default-scheduler", "s-1")
    assert event.regarding == ObjectRef(resource="pods", namespace="default", name="web", uid="u")


def test_so_does_what_is_left_of_it() -> None:
    left = Tombstone(namespace="default", name="web", uid="u", node="n1", reason="terminated", attempt="a", bound_at=AT)
    assert [told(event)[1:3] for event in events.scheduled(left)] == [
        ("Scheduled", "Successfully assigned default/web to n1")
    ]


def test_a_pod_that_was_created_with_its_node_was_not_scheduled() -> None:
    assert list(events.scheduled(bound(attempt="", decision=None, forced=True))) == []


def test_attempts_that_fail_with_the_same_words_are_one_event() -> None:
    other = "0/5 nodes are available: 5 node(s) had untolerated taint(s)."
    found = events.failed_scheduling([attempt(0), attempt(5, other), attempt(9), attempt(12, outcome="error")])
    assert [told(event) for event in found] == [
        ("Warning", "FailedScheduling", NO_ROOM, AT + 12, 3),
        ("Warning", "FailedScheduling", other, AT + 5, 1),
    ]
    assert (found[0].first_at, found[0].action, found[0].controller) == (AT, "Scheduling", "default-scheduler")


@pytest.mark.parametrize("outcome", ["gated", "scheduled"])
def test_of_what_is_no_failure_none_tells(outcome: str) -> None:
    assert events.failed_scheduling([attempt(outcome=outcome)]) == []


def test_a_long_reason_is_cut_as_the_scheduler_cuts_it() -> None:
    (event,) = events.failed_scheduling([attempt(message="x" * 2000)])
    assert event.message == "x" * 1020 + " ..."


@pytest.mark.parametrize(
    ("kind", "resource", "controller"),
    [
        ("ReplicaSet", "replicasets", "replicaset-controller"),
        ("ReplicationController", "replicationcontrollers", "replication-controller"),
        ("DaemonSet", "daemonsets", "daemonset-controller"),
        ("Job", "jobs", "job-controller"),
    ],
)
def test_a_pod_tells_that_its_controller_made_it(kind: str, resource: str, controller: str) -> None:
    owner = {"kind": kind, "name": "web", "uid": "owner", "controller": True}
    made = {"ownerReferences": [owner], "creationTimestamp": times.rfc3339(AT)}
    (event,) = events.created(objects.typed_pod("web-x", metadata=made).metadata)
    assert told(event) == ("Normal", "SuccessfulCreate", "Created pod: web-x", AT, 1)
    assert (event.regarding, event.controller) == (
        ObjectRef(resource=resource, namespace="default", name="web", uid="owner"),
        controller,
    )


def test_a_stateful_set_has_words_of_its_own() -> None:
    owner = {"kind": "StatefulSet", "name": "db", "uid": "owner", "controller": True}
    made = {"ownerReferences": [owner], "creationTimestamp": times.rfc3339(AT)}
    (event,) = events.created(objects.typed_pod("db-0", metadata=made).metadata)
    assert event.message == "Create Pod db-0 in StatefulSet db successful"


def test_of_pods_that_others_make_it_does_not() -> None:
    owner = {"kind": "Operator", "name": "db", "uid": "owner", "controller": True}
    made = {"ownerReferences": [owner], "creationTimestamp": times.rfc3339(AT)}
    assert list(events.created(objects.typed_pod("db-0", metadata=made).metadata)) == []
    assert list(events.created(objects.typed_pod("alone").metadata)) == []


def test_a_pod_that_is_deleted_has_its_containers_stopped() -> None:
    sidecar = {"name": "proxy", "image": "x", "restartPolicy": "Always"}
    setup = {"name": "setup", "image": "x"}
    found = list(events.killing(deleted(initContainers=[setup, sidecar]), None))
    assert [told(event) for event in found] == [
        ("Normal", "Killing", f"Stopping container {name}", AT, 1) for name in ("proxy", "main")
    ]
    assert [event.field_path for event in found] == ["spec.initContainers{proxy}", "spec.containers{main}"]
    assert {event.controller for event in found} == {"kubelet"}


@pytest.mark.parametrize(("stored_at", "at"), [(0.4, 0.4), (0.0, 0.0), (-0.1, 0.0), (1.0, 0.0), (600.0, 0.0)])
def test_what_was_stored_in_the_same_second_tells_the_time(stored_at: float, at: float) -> None:
    (event,) = events.killing(deleted(), None, AT + stored_at)
    assert event.at == AT + at
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    made = {"ownerReferences": [owner], "creationTimestamp": times.rfc3339(AT)}
    (event,) = events.created(objects.typed_pod("web-x", metadata=made).metadata, AT + stored_at)
    assert event.at == AT + at


def test_of_a_pod_that_lives_none_are() -> None:
    assert list(events.killing(objects.typed_pod("web"), None)) == []


def test_a_container_that_had_ended_or_waits_is_not_stopped() -> None:
    pod = deleted(containers=[{"name": name, "image": "x"} for name in ("runs", "ended", "waits", "stopped")])
    before, after = times.rfc3339(AT - 5), times.rfc3339(AT + 2)
    fact = status(
        containers=(
            ContainerFact(name="runs", started_at=before),
            ContainerFact(name="ended", end=ContainerEnd(finished_at=before)),
            ContainerFact(name="waits", reason="CrashLoopBackOff"),
            ContainerFact(name="stopped", end=ContainerEnd(finished_at=after)),
        )
    )
    assert [event.field_path for event in events.killing(pod, fact)] == [
        "spec.containers{runs}",
        "spec.containers{stopped}",
    ]


def test_a_pod_that_had_ended_before_it_was_deleted_is_not_killed() -> None:
    fact = status(ended=True, at=times.rfc3339(AT - 5))
    assert list(events.killing(deleted(), fact)) == []


def node(at: float = 0.0, **reasons: str) -> NodeStatusFact:
    said = {"MemoryPressure": "KubeletHasSufficientMemory", "Ready": "KubeletReady", **reasons}
    when = times.rfc3339(AT + at)
    conditions = [
        Condition(type=name, status="True", reason=reason, last_transition_time=when) for name, reason in said.items()
    ]
    return NodeStatusFact(node="n1", node_uid="un", conditions=tuple(conditions))


def test_a_nodes_conditions_tell_what_its_kubelet_said_when_they_turned() -> None:
    found = list(events.of_node(node(ReadingsStale="NoUsableReading")))
    assert [told(event) for event in found] == [
        ("Normal", reason, f"Node n1 status is now: {reason}", AT, 1)
        for reason in ("NodeHasSufficientMemory", "NodeReady")
    ]
    assert {(event.controller, event.instance) for event in found} == {("kubelet", "n1")}


def sent(reason: str = "NodeReady", at: float = 0.0, **more: Any) -> K8sEvent:
    about = more.pop("about", ObjectRef(resource="nodes", name="n1", uid="un"))
    fields = {"reporter": "node_agent", "controller": "kubelet", "id": f"{reason}{at}", **more}
    return K8sEvent(regarding=about, reason=reason, at=AT + at, message="sent", **fields)


@pytest.mark.parametrize(
    ("event", "left"),
    [
        pytest.param(sent(at=0.3), 1, id="the same, sent"),
        pytest.param(sent(at=-100), 2, id="of an earlier turn"),
        pytest.param(sent("NodeNotReady"), 2, id="another reason"),
        pytest.param(sent(about=ObjectRef(resource="nodes", name="n1", uid="other")), 2, id="of a node before it"),
    ],
)
def test_what_was_sent_is_not_told_twice(event: K8sEvent, left: int) -> None:
    assert len(events.unsent(events.of_node(node()), [event])) == left


def made(number: int, at: float = 0.0, owner: str = "web") -> K8sEvent:
    about = ObjectRef(resource="replicasets", namespace="default", name=owner, uid=owner)
    return sent("SuccessfulCreate", at, about=about, id=f"{owner}-{number}-{at}", first_at=AT + at)


def test_many_pods_of_one_controller_are_told_as_a_recorder_would() -> None:
    found = events.combined([*(made(number, number) for number in range(500)), made(1, 3, owner="other")])
    mine = [event for event in found if event.regarding.name == "web"]
    assert [event.count for event in mine] == [1] * 9 + [491]
    assert (mine[-1].message, mine[-1].first_at, mine[-1].at) == (f"{COMBINED}sent", AT + 9, AT + 499)
    assert len(found) == 11


def test_ten_minutes_apart_they_are_told_one_by_one() -> None:
    assert len(events.combined([made(number, number * 601.0) for number in range(20)])) == 20


def test_groups_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_GROUPS", 2)
    found = events.combined([made(number, number, owner=str(number % 3)) for number in range(60)])
    assert len(found) == 60


def test_the_events_of_a_pod_are_in_the_order_of_time() -> None:
    about = Evidence(
        namespace="default",
        name="web",
        uid="u",
        attempts=[attempt(-20), attempt(-10)],
        placement=bound(),
        pod=deleted(60),
        events=[sent("Evicted", 50)],
    )
    assert [event.reason for event in events.of_pod(about)] == ["FailedScheduling", "Scheduled", "Evicted", "Killing"]


# ---- gathered from stored messages


class Gathered:
    def __init__(self, since: float = AT - 100) -> None:
        self.facts = EventFacts(since)
        self.sequence = 0

    def take(self, subject: str, payload: bytes, stored_at: float = AT) -> bool:
        self.sequence += 1
        return self.facts.take(subject, payload, self.sequence, stored_at)

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.facts.events()]


@pytest.fixture
def gathered() -> Gathered:
    return Gathered()


def test_events_are_told_from_every_stream(gathered: Gathered) -> None:
    pod = stored.version("pods", objects.pod("web", uid="u"))
    fact = stored.node_status(node(at=5))
    record = attempt(-50)
    for subject, payload in (
        (pod.subject, pod.payload),
        (PLACE, codec.encode(bound())),
        (fact.subject, fact.payload),
        (subjects.decisions("default", "web", "u"), codec.encode(record)),
        (subjects.k8s_event("default", "pods", "web", "1"), codec.encode(sent("Evicted", 10))),
    ):
        assert gathered.take(subject, payload)
    assert gathered.reasons == ["FailedScheduling", "Scheduled", "NodeHasSufficientMemory", "NodeReady", "Evicted"]


def test_an_event_that_happened_again_replaces_the_one_before_and_old_ones_stand_beside_each_other(
    gathered: Gathered,
) -> None:
    new, old = subjects.k8s_event("default", "pods", "web", "1"), "k8sevents.default.Pod.web"
    for count in (1, 2):
        gathered.take(new, codec.encode(sent("Evicted", 10, count=count)))
        gathered.take(old, codec.encode(sent("Killed", 20 + count)))
    assert [(event.reason, event.count) for event in gathered.facts.events()] == [
        ("Evicted", 2),
        ("Killed", 1),
        ("Killed", 1),
    ]


def test_what_is_too_old_is_neither_read_nor_told(gathered: Gathered) -> None:
    assert not gathered.take(subjects.k8s_event("default", "pods", "web", "1"), b"{", AT - 200)
    assert gathered.facts.unreadable == 0
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    old = {"ownerReferences": [owner], "creationTimestamp": times.rfc3339(AT - 5000)}
    pod = stored.version("pods", objects.pod("web", metadata=old))
    gathered.take(pod.subject, pod.payload)
    assert gathered.reasons == []


def test_what_becomes_too_old_is_forgotten(gathered: Gathered) -> None:
    gathered.take(subjects.k8s_event("default", "pods", "web", "1"), codec.encode(sent("Evicted")))
    gathered.take(PLACE, codec.encode(bound()))
    gathered.facts.forget(AT - 50)
    assert gathered.reasons == ["Evicted", "Scheduled"] or gathered.reasons == ["Scheduled", "Evicted"]
    gathered.facts.forget(AT + 50)
    assert gathered.reasons == []


def test_what_cannot_be_read_is_counted_and_others_are_told(gathered: Gathered) -> None:
    assert not gathered.take("decisions.default.web.u", b"{")
    assert not gathered.take(
        "cluster.pods.default.web", b'{"resource":"pods","name":"web","uid":"u","who":"x","object":[]}'
    )
    gathered.take(PLACE, codec.encode(bound()))
    assert (gathered.facts.unreadable, gathered.reasons) == (2, ["Scheduled"])


def test_a_deleted_pods_marker_still_tells_of_its_end(gathered: Gathered) -> None:
    document = objects.pod(
        "web",
        uid="u",
        metadata={"deletionTimestamp": times.rfc3339(AT + 30), "deletionGracePeriodSeconds": 30},
    )
    marker = stored.marker("pods", document)
    gathered.take(marker.subject, marker.payload)
    gathered.take(subjects.pod_status("n1", "default", "web", "u"), b"")
    assert gathered.reasons == ["Killing"]


def test_nodes_belong_to_the_namespace_default() -> None:
    assert subjects.ALL_NODE_STATUS in scope("default").cluster
    assert subjects.ALL_NODE_STATUS not in scope("other").cluster
    assert scope("default").sent == ("k8sevents.default.>", "k8sevents._.>")
    assert scope(None).sent == ("k8sevents.>",)
