"""What single deliveries do to a view, and what a change tells of them."""

from typing import Any

import pytest

from podyard.bus import Outgoing
from podyard.cluster.changes import Change, DeadDelivery, RelistNeeded, Unreadable
from podyard.cluster.view import ClusterView
from podyard.proto import codec, subjects
from podyard.proto.facts import Condition
from podyard.proto.placement import BoundPod, CommitRecord, Release
from tests.support import stored
from tests.unit.cluster.stream import (
    LOST_AT,
    MEMORY_S,
    WrittenStream,
    bound_pod,
    empty_view,
    listing_of,
    node_document,
    occupied_after,
    occupied_before,
    pod_document,
    release_of,
)

POD = ("default", "a")
SUBJECT = subjects.object_("pods", "default", "a")


class Follower:
    """A stream and a view that follows it."""

    def __init__(self) -> None:
        self.stream = WrittenStream()
        self.view = empty_view()
        self.read = 0

    def news(self) -> list[Change]:
        """Changes since last asked."""
        found = [change for one in self.stream.followed(self.read) for change in self.view.apply(one)]
        self.read = self.stream.last
        return found

    def labels(self) -> list[str]:
        return [event.label for change in self.news() for event in change.events]

    def relist(self) -> list[Change]:
        self.read = self.stream.last
        self.view.begin_listing()
        for delivery in self.stream.listed():
            self.view.apply(delivery)
        return self.view.end_listing(self.stream.last)


@pytest.fixture
def reader() -> Follower:
    return Follower()


# Pods and their bindings


def test_the_life_of_a_pod_as_events(reader: Follower) -> None:
    document, bound = pod_document("a", "u1"), bound_pod("a", "u1", "n1")
    reader.stream.write("pods", document)
    assert reader.labels() == ["UnschedulablePodAdd"]
    reader.stream.commit([bound])
    assert reader.labels() == ["AssignedPodAdd"]
    reader.stream.write("pods", pod_document("a", "u1", labels={"x": "y"}))
    assert reader.labels() == ["AssignedPodUpdatePodLabel"]
    reader.stream.commit([], [release_of(bound)])
    assert reader.labels() == ["AssignedPodDelete"]
    reader.stream.remove("pods", document)
    assert reader.labels() == []
    assert not reader.view.pods
    assert not reader.view.placements


def expected(bound: BoundPod) -> CommitRecord:
    return CommitRecord(n=1, epoch=1, batch="b1", bindings=(bound,))


@pytest.mark.parametrize("as_written", [True, False])
def test_a_record_that_its_writer_expects_is_what_he_holds_unless_another_one_is_stored(
    reader: Follower, as_written: bool
) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    (stored_record,) = (one for one in reader.stream.log if one.subject == subjects.commit(1))
    own = expected(bound_pod("a", "u1", "n1" if as_written else "elsewhere"))
    payload = stored_record.payload if as_written else codec.encode(own)
    reader.view.expect(stored_record.subject, payload, own)
    reader.news()
    placed = reader.view.placements["u1"]
    assert (placed is own.bindings[0]) == as_written
    assert placed.node == "n1"


def test_the_joined_pod_has_its_node_and_its_agents_word(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.stream.pod_status("n1", "a", "u1", "Running", start_time="2026-01-01T00:00:00Z")
    reader.news()
    pod = reader.view.pods[POD].pod
    assert (pod.spec.node_name, pod.status.phase, pod.status.start_time) == ("n1", "Running", "2026-01-01T00:00:00Z")


def test_another_nodes_agent_is_not_believed(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.news()
    reader.stream.pod_status("n2", "a", "u1", "Failed", ended=True)
    assert reader.news() == []
    assert not reader.view.pods[POD].ended


def test_facts_about_a_namesake_are_ignored(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u2"))
    reader.news()
    reader.stream.nominate("a", "u1", "n1")
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    changes = reader.news()
    assert [change.uid for change in changes] == ["u1"]
    view = reader.view.pods[POD]
    assert (view.nominated_node, view.node_name, view.bound) == ("", "", None)


def test_a_nomination_is_joined_and_ends(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.nominate("a", "u1", "n1")
    reader.news()
    assert reader.view.pods[POD].pod.status.nominated_node_name == "n1"
    reader.stream.nominate("a", "u1", "")
    (change,) = reader.news()
    assert (change.old.nominated_node, change.new.nominated_node) == ("n1", "")


def test_room_comes_free_by_the_release_and_not_by_the_deletion(reader: Follower) -> None:
    """docs/rules.md, ending-pod-keeps-its-room: what terminates still holds its resources."""
    document, bound = pod_document("a", "u1"), bound_pod("a", "u1", "n1")
    reader.stream.write("pods", document)
    reader.stream.commit([bound])
    reader.news()
    reader.stream.remove("pods", document)
    (deleted,) = reader.news()
    assert (deleted.new, deleted.events, occupied_after(deleted)) == (None, (), bound)
    assert list(reader.view.pods_on("n1")) == ["u1"]
    assert POD not in reader.view.pods
    reader.stream.commit([], [release_of(bound)])
    (released,) = reader.news()
    assert (released.old.uid, occupied_before(released), occupied_after(released)) == ("u1", bound, None)
    assert [event.label for event in released.events] == ["AssignedPodDelete"]
    assert not reader.view.pods_on("n1")


def test_a_release_of_an_unknown_pod_is_told_too(reader: Follower) -> None:
    release = Release(namespace="default", name="a", uid="u1", node="n1", reason="orphan")
    reader.stream.commit([], [release])
    (change,) = reader.news()
    assert (change.old, change.new, change.release) == (None, None, release)
    assert str(change.key) == "pods default/a"
    assert [event.label for event in change.events] == ["AssignedPodDelete"]


def test_a_released_uid_is_known_as_long_as_its_object_lives(reader: Follower) -> None:
    document, bound = pod_document("a", "u1"), bound_pod("a", "u1", "n1")
    reader.stream.write("pods", document)
    reader.stream.commit([bound])
    reader.stream.commit([], [release_of(bound, "completed")])
    reader.news()
    view = reader.view.pods[POD]
    assert (view.released, view.bound, view.node_name) == (True, None, "n1")
    assert reader.view.placements["u1"] == release_of(bound, "completed")


def test_a_binding_told_twice_changes_nothing(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    view = listing_of(reader.stream)
    changes = [change for one in reader.stream.log if "commits" in one.subject for change in view.apply(one)]
    assert changes == []


def test_usage_is_the_bindings_once_bound(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1", cpu="2"))
    reader.news()
    assert reader.view.pods[POD].usage.requests == {"cpu": 2000}
    reader.stream.commit([bound_pod("a", "u1", "n1", decided_at=reader.stream.last)])
    reader.news()
    assert reader.view.pods[POD].usage.requests == {"cpu": 100}


def test_a_bound_pod_that_is_resized_takes_what_it_requests_now(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1", cpu="2"))
    reader.stream.commit([bound_pod("a", "u1", "n1", decided_at=reader.stream.last)])
    reader.stream.write("pods", pod_document("a", "u1", cpu="3"))
    reader.news()
    assert reader.view.pods[POD].usage.requests["cpu"] == 3000
    assert listing_of(reader.stream).pods[POD].usage == reader.view.pods[POD].usage


def test_a_resized_pod_whose_object_is_gone_takes_what_its_binding_says(reader: Follower) -> None:
    """Who lists knows nothing else of it: all readers add up alike."""
    reader.stream.write("pods", pod_document("a", "u1", cpu="2"))
    reader.stream.commit([bound_pod("a", "u1", "n1", decided_at=reader.stream.last)])
    reader.stream.write("pods", pod_document("a", "u1", cpu="3"))
    reader.stream.remove("pods", pod_document("a", "u1"))
    reader.news()
    assert reader.view.pods_by_uid["u1"].usage.requests == {"cpu": 100}
    assert listing_of(reader.stream).pods_by_uid["u1"].usage == reader.view.pods_by_uid["u1"].usage


def test_another_uid_is_a_deletion_and_an_addition(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.write("pods", pod_document("a", "u2"))
    gone, came = reader.news()
    assert (gone.uid, gone.new, came.uid, came.old) == ("u1", None, "u2", None)
    assert list(reader.view.pods_by_uid) == ["u2"]


# Nodes and others


def test_a_nodes_pressure_taint_is_joined_before_it_is_classified(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.node_status("n1", "u1")
    reader.news()
    reader.stream.node_status("n1", "u1", "node.kubernetes.io/memory-pressure")
    assert reader.labels() == ["NodeUpdateNodeTaint"]
    taints = reader.view.nodes["n1"].node.spec.taints
    assert [(taint.key, taint.effect) for taint in taints] == [("node.kubernetes.io/memory-pressure", "NoSchedule")]
    reader.stream.node_status("n1", "u1")
    assert reader.labels() == ["NodeUpdateNodeTaint"]


def test_a_status_of_an_earlier_node_of_that_name_is_ignored(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u2"))
    reader.stream.node_status("n1", "u1", "old")
    reader.news()
    assert reader.view.nodes["n1"].node.spec.taints == ()


def test_what_is_said_of_a_silent_node_is_joined_after_the_agents_words(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.node_status("n1", "u1", "node.kubernetes.io/memory-pressure")
    reader.news()
    reader.stream.node_life("n1", "u1", "node.kubernetes.io/unreachable")
    assert reader.labels() == ["NodeUpdateNodeTaint", "NodeUpdateNodeCondition"]
    node = reader.view.nodes["n1"]
    assert [(taint.key, taint.effect) for taint in node.node.spec.taints] == [
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    assert [(one.type, one.status) for one in node.node.status.conditions] == [("Ready", "Unknown")]
    assert [(one.type, one.status) for one in node.reported.status.conditions] == [("Ready", "True")]
    reader.stream.node_life("n1", "u1")
    assert reader.labels() == ["NodeUpdateNodeTaint", "NodeUpdateNodeCondition"]
    node = reader.view.nodes["n1"]
    assert node.node is node.reported
    assert dict(reader.view.node_lives) == {}


READY = Condition(type="Ready", status="True", reason="Agent", last_transition_time="2026-01-01T00:00:00Z")


def readiness(reader: Follower, name: str = "a") -> tuple[str, str, str | None]:
    (condition,) = reader.view.pods["default", name].pod.status.conditions
    return condition.status, condition.reason, condition.last_transition_time


def test_pods_of_a_lost_node_are_not_ready_until_it_is_heard(reader: Follower) -> None:
    """docs/rules.md, pods-of-a-lost-node-are-not-ready"""
    reader.stream.write("nodes", node_document("n1", "n-u1"))
    for name, uid, node in (("a", "u1", "n1"), ("b", "u2", "n2")):
        reader.stream.write("pods", pod_document(name, uid))
        reader.stream.commit([bound_pod(name, uid, node)])
        reader.stream.pod_status(node, name, uid, conditions=(READY,))
    reader.news()
    reader.stream.node_life("n1", "n-u1", "node.kubernetes.io/unreachable")
    assert [(change.resource, change.uid) for change in reader.news()] == [("nodes", "n-u1"), ("pods", "u1")]
    assert readiness(reader) == ("False", "Agent", LOST_AT)
    assert readiness(reader, "b")[0] == "True"
    reader.stream.pod_status("n1", "a", "u1", conditions=(READY,), message="came late")
    reader.stream.write("pods", pod_document("a", "u1", labels={"a": "b"}))
    reader.news()
    assert readiness(reader)[0] == "False"
    reader.stream.node_life("n1", "n-u1")
    assert [(change.resource, change.uid) for change in reader.news()] == [("nodes", "n-u1"), ("pods", "u1")]
    assert readiness(reader) == ("True", "Agent", READY.last_transition_time)


def test_pods_of_a_node_made_anew_are_as_ready_as_its_agent_says(reader: Follower) -> None:
    reader.stream.node_life("n1", "n-u1", "node.kubernetes.io/unreachable")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.stream.pod_status("n1", "a", "u1", conditions=(READY,))
    reader.stream.write("nodes", node_document("n1", "n-u1"))
    reader.news()
    assert readiness(reader)[0] == "False"
    reader.stream.write("nodes", node_document("n1", "n-u2"))
    reader.news()
    assert readiness(reader)[0] == "True"


def test_a_pod_of_a_lost_node_that_nobody_called_ready_has_no_such_condition(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "n-u1"))
    reader.stream.node_life("n1", "n-u1", "node.kubernetes.io/unreachable")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.news()
    assert reader.view.pods["default", "a"].lost is not None
    assert reader.view.pods["default", "a"].pod.status.conditions == ()


@pytest.mark.parametrize("uid", ["u1", ""])
def test_what_is_said_of_an_earlier_node_of_that_name_is_ignored(reader: Follower, uid: str) -> None:
    reader.stream.write("nodes", node_document("n1", "u2"))
    reader.stream.node_life("n1", uid, "node.kubernetes.io/unreachable")
    reader.news()
    assert reader.view.nodes["n1"].node.spec.taints == ()
    assert list(reader.view.node_lives) == ["n1"]


def test_what_is_said_of_a_node_and_cannot_be_read_counts_as_nothing(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.node_life("n1", "u1", "node.kubernetes.io/unreachable")
    reader.stream.put(Outgoing(subjects.node_life("n1"), b"7"))
    reader.news()
    assert reader.view.nodes["n1"].life is None
    assert list(reader.view.unreadable) == ["cluster.nodelife.n1"]


def test_other_kinds_have_the_general_update(reader: Follower) -> None:
    claim = {"metadata": {"name": "c", "namespace": "default", "uid": "u1"}}
    reader.stream.write("persistentvolumeclaims", claim)
    reader.stream.write("persistentvolumeclaims", claim | {"spec": {"volumeName": "v"}})
    reader.stream.remove("persistentvolumeclaims", claim)
    kind = "PersistentVolumeClaim"
    assert reader.labels() == [f"{kind}Add", f"{kind}Update", f"{kind}Delete"]


def test_a_volume_made_anew_whose_deletion_was_not_read_has_its_document(reader: Follower) -> None:
    volume = {"metadata": {"name": "v", "uid": "v1"}}
    reader.stream.write("persistentvolumes", volume)
    reader.news()
    reader.stream.remove("persistentvolumes", volume)
    reader.read = reader.stream.last
    anew = reader.stream.write("persistentvolumes", {"metadata": {"name": "v", "uid": "v2"}})
    reader.news()
    document = reader.view.document("persistentvolumes", ("", "v"))
    assert document == {"metadata": {"name": "v", "uid": "v2", "resourceVersion": str(anew.sequence)}}


# Predecessors, markers, gaps


def test_a_missed_version_is_a_gap_with_all_actions(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.news()
    reader.stream.write("nodes", node_document("n1", "u1", cpu="5"))
    reader.read = reader.stream.last
    reader.stream.write("nodes", node_document("n1", "u1", cpu="4"))
    (change,) = reader.news()
    assert change.gap
    assert [event.label for event in change.events] == ["NodeAll"]
    reader.stream.write("nodes", node_document("n1", "u1", cpu="6"))
    (change,) = reader.news()
    assert not change.gap


def test_a_version_that_names_no_predecessor_is_a_gap(reader: Follower) -> None:
    known = reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.publish(Outgoing(known.subject, known.payload))
    (change,) = reader.news()
    assert [event.label for event in change.events] == ["UnschedulablePodAll"]


@pytest.mark.parametrize("expired", [True, False], ids=["the marker has expired", "the marker is there"])
def test_a_create_after_a_marker_is_a_plain_create(reader: Follower, expired: bool) -> None:
    document = pod_document("a", "u1")
    reader.stream.write("pods", document)
    reader.stream.remove("pods", document)
    reader.news()
    if expired:
        reader.stream.expire(SUBJECT)
    reader.stream.write("pods", pod_document("a", "u2"))
    (change,) = reader.news()
    assert (change.gap, change.old, change.new.uid) == (False, None, "u2")


def test_a_create_that_expects_nothing_where_an_object_lives_is_a_gap(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.expire(SUBJECT)
    reader.stream.write("pods", pod_document("a", "u2"))
    assert [change.gap for change in reader.news()] == [False, True]


def test_markers_are_forgotten_after_a_while(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.remove("pods", pod_document("a", "u1"))
    reader.news()
    assert reader.view.version_of(SUBJECT) == 2
    late = reader.stream.remove("pods", pod_document("b", "u2"))
    late.stored_at += MEMORY_S + 10.0
    reader.news()
    assert reader.view.version_of(SUBJECT) == 0


def test_a_release_of_an_unknown_pod_is_forgotten_after_a_while(reader: Follower) -> None:
    for number, at in ((1, 0.0), (2, MEMORY_S + 1_000.0)):
        bound = bound_pod("a", f"u{number}", "n1")
        reader.stream.commit([], [release_of(bound)])
        for delivery in reader.stream.log[-3:]:
            delivery.stored_at += at
    reader.news()
    assert list(reader.view.placements) == ["u2"]


def test_a_repeated_delivery_changes_nothing(reader: Follower) -> None:
    """docs/rules.md, status-alone-causes-no-attempt: the same version again is no update."""
    delivery = reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    assert reader.view.apply(delivery) == []


# What cannot be read


@pytest.mark.parametrize(
    "payload", [b"{", b"{}", b'{"resource":"pods","name":"a","uid":"u","who":"x","object":{"spec":7}}']
)
def test_an_unreadable_version_counts_as_deleted(reader: Follower, payload: bytes) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    bad = reader.stream.put(Outgoing(SUBJECT, payload))
    assert reader.labels() == ["UnschedulablePodDelete"]
    (effect,) = reader.view.take_effects()
    assert isinstance(effect, DeadDelivery)
    assert effect.delivery is bad
    assert not reader.view.take_effects()
    reader.stream.write("pods", pod_document("a", "u1"))
    (change,) = reader.news()
    assert (change.old, change.gap) == (None, False)


def test_an_unreadable_fact_counts_as_gone(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.stream.pod_status("n1", "a", "u1", ended=True)
    reader.news()
    assert reader.view.pods[POD].ended
    subject = subjects.pod_status("n1", "default", "a", "u1")
    reader.stream.put(Outgoing(subject, b"7"))
    reader.news()
    assert reader.view.pods[POD].status is None
    assert list(reader.view.unreadable) == [subject]


def test_a_census_is_nothing_of_the_cluster(reader: Follower) -> None:
    """Who follows all objects by `cluster.>` gets it, too."""
    census = reader.stream.put(Outgoing(subjects.CENSUS, b"{}"))
    assert reader.news() == []
    assert reader.view.position == census.sequence
    assert reader.relist() == []
    assert not reader.view.unreadable
    assert not reader.view.take_effects()


def test_why_a_pod_is_not_scheduled_is_nothing_that_is_decided_by(reader: Follower) -> None:
    """Who follows all objects by `cluster.>` gets it, too."""
    told = reader.stream.put(Outgoing(subjects.pod_scheduled("default", "web", "u1"), b"{}"))
    assert reader.news() == []
    assert reader.view.position == told.sequence
    assert reader.relist() == []
    assert not reader.view.unreadable
    assert not reader.view.take_effects()


def test_what_cannot_be_read_is_remembered_until_it_can_be_or_goes(reader: Follower) -> None:
    bad = reader.stream.put(Outgoing(SUBJECT, b"{"))
    reader.news()
    found = reader.view.unreadable[SUBJECT]
    assert (found.sequence, found.reason) == (bad.sequence, "not a ClusterEvent: Input data was truncated")
    reader.relist()
    assert list(reader.view.unreadable) == [SUBJECT]
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    assert not reader.view.unreadable
    reader.stream.put(Outgoing(SUBJECT, b"{"))
    reader.stream.remove("pods", pod_document("a", "u1"))
    reader.news()
    assert not reader.view.unreadable


def test_what_cannot_be_read_is_told_once_however_often_it_is_listed(reader: Follower) -> None:
    reader.stream.put(Outgoing(SUBJECT, b"{"))
    reader.relist()
    assert [type(effect) for effect in reader.view.take_effects()] == [DeadDelivery]
    reader.relist()
    reader.relist()
    assert not reader.view.take_effects()
    reader.stream.put(Outgoing(SUBJECT, b"["))
    reader.relist()
    assert [type(effect) for effect in reader.view.take_effects()] == [DeadDelivery]


def test_a_pod_without_a_uid_and_a_volume_that_is_no_document_cannot_be_read(reader: Follower) -> None:
    document = pod_document("a", "u1")
    del document["metadata"]["uid"]
    reader.stream.write("pods", document)
    volume = stored.version("persistentvolumes", {"metadata": {"name": "v", "uid": "v1"}, "more": 1})
    endless = volume.payload.replace(b'"more":1', b'"more":1' + b"0" * 5_000)
    reader.stream.put(volume.but(payload=endless))
    reader.news()
    assert [found.reason for found in reader.view.unreadable.values()] == [
        "metadata.uid: is missing",
        "[...]: Integer value out of range",
    ]
    assert (reader.view.pods, reader.view.resources) == ({}, [])


def test_an_object_of_another_name_than_its_subjects_cannot_be_read(reader: Follower) -> None:
    """Two nodes that call themselves alike were one row of the node table, which never again was what the
    view said."""
    reader.stream.write("nodes", node_document("n1", "u1"))
    for name, document in (
        ("n2", node_document("n1", "u2")),
        ("n3", node_document("n3", "u3", metadata={"namespace": "x"})),
    ):
        reader.stream.put(stored.version("nodes", document).but(subject=subjects.object_("nodes", "", name)))
    reader.news()
    assert list(reader.view.nodes) == ["n1"]
    assert [found.reason for found in reader.view.unreadable.values()] == [
        'metadata.name: is "n1", but it is stored as "n2"',
        'metadata.namespace: is "x", but it is stored in ""',
    ]


def test_an_object_with_an_amount_that_is_none_cannot_be_read(reader: Follower) -> None:
    """Each such node ended a term of scheduler and binder, who add the amounts up."""
    reader.stream.write("nodes", node_document("n1", "u1", amounts={"cpu": "1", "memory": "much"}))
    reader.stream.write(
        "persistentvolumes", {"metadata": {"name": "v", "uid": "v1"}, "spec": {"capacity": {"storage": "1.5.0Gi"}}}
    )
    reader.news()
    assert (dict(reader.view.nodes), reader.view.resources) == ({}, [])
    found = {one.subject: one.reason for one in reader.view.unreadable.values()}
    assert 'status.capacity[memory]: Invalid value: "much": quantities must match' in found["cluster.nodes._.n1"]
    assert 'spec.capacity[storage]: Invalid value: "1.5.0Gi"' in found["cluster.persistentvolumes._.v"]


@pytest.mark.parametrize(
    "tokens", ["podstatus", "nodestatus", "nodelife", "nominations", "podstatus.n1", "nominations.a.b.c.d"]
)
def test_a_fact_on_a_subject_of_no_fact_harms_nobody(reader: Follower, tokens: str) -> None:
    reader.stream.put(Outgoing(f"cluster.{tokens}", b"{}"))
    reader.news()
    assert list(reader.view.unreadable) == [f"cluster.{tokens}"]


# Of a node's status the last that could be read stays


def test_a_node_whose_status_cannot_be_read_is_blind_and_keeps_the_last(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.node_status("n1", "u1", "t")
    reader.news()
    reader.stream.put(Outgoing(subjects.node_status("n1"), b"7"))
    (change,) = reader.news()
    assert change.events == ()
    node = reader.view.nodes["n1"]
    assert [taint.key for taint in node.node.spec.taints] == ["t"]
    assert (change.old.blind, node.blind) == ("", "not a NodeStatusFact: Expected `object`, got `int`")
    reader.relist()
    assert reader.view.nodes["n1"].status == node.status
    assert reader.view.nodes["n1"].blind
    reader.stream.write("nodes", node_document("n1", "u1", unschedulable=True))
    reader.news()
    assert reader.view.nodes["n1"].blind
    reader.stream.node_status("n1", "u1")
    assert reader.labels() == ["NodeUpdateNodeTaint"]
    assert not reader.view.nodes["n1"].blind


def test_who_begins_with_a_status_that_cannot_be_read_knows_none(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.put(Outgoing(subjects.node_status("n1"), b"7"))
    reader.relist()
    node = reader.view.nodes["n1"]
    assert (node.status, bool(node.blind)) == (None, True)


# What is known of a place stays where it cannot be read any more


def test_a_binding_that_cannot_be_read_any_more_keeps_its_room(reader: Follower) -> None:
    bound = bound_pod("a", "u1", "n1")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound])
    reader.news()
    subject = subjects.binding("default", "a", "u1")
    bad = reader.stream.put(Outgoing(subject, b"7"))
    assert reader.relist() == []
    assert reader.view.pods[POD].bound == bound
    assert reader.view.unreadable_placements == [
        Unreadable(subject, bad.sequence, "not a Binding or Tombstone: Expected `object`, got `int`")
    ]


def test_a_tombstone_that_cannot_be_read_any_more_stays_one(reader: Follower) -> None:
    bound = bound_pod("a", "u1", "n1")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound])
    reader.stream.commit([], [release_of(bound)])
    reader.news()
    reader.stream.put(Outgoing(subjects.binding("default", "a", "u1"), b"7"))
    assert reader.relist() == []
    assert reader.view.pods[POD].released


@pytest.mark.parametrize("pod_first", [True, False])
def test_a_pod_of_whose_place_nothing_is_known_is_not_taken_for_unbound(reader: Follower, pod_first: bool) -> None:
    writes = [
        lambda: reader.stream.write("pods", pod_document("a", "u1")),
        lambda: reader.stream.put(Outgoing(subjects.binding("default", "a", "u1"), b"7")),
    ]
    for write in writes if pod_first else reversed(writes):
        write()
    reader.relist()
    assert reader.view.pods[POD].unknown_place
    reader.stream.write("pods", pod_document("a", "u1", labels={"x": "y"}))
    reader.stream.nominate("a", "u1", "n2")
    reader.news()
    assert reader.view.pods[POD].unknown_place


@pytest.mark.parametrize("gone", [False, True])
def test_a_commit_says_where_a_pod_is_of_whose_place_nothing_was_known(reader: Follower, gone: bool) -> None:
    bound = bound_pod("a", "u1", "n1")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.put(Outgoing(subjects.binding("default", "a", "u1"), b"7"))
    reader.relist()
    reader.stream.commit([] if gone else [bound], [release_of(bound)] if gone else [])
    (change,) = reader.news()
    pod = reader.view.pods[POD]
    assert (pod.released, pod.bound, pod.unknown_place) == (gone, None if gone else bound, False)
    assert occupied_after(change) == pod.bound
    assert not reader.view.unreadable


def test_an_unreadable_commit_asks_for_a_listing(reader: Follower) -> None:
    reader.stream.put(Outgoing(subjects.commit(1), b"7"))
    reader.news()
    assert [type(effect) for effect in reader.view.take_effects()] == [DeadDelivery, RelistNeeded]


def test_an_unreadable_binding_in_a_listing_does_not_list_for_ever(reader: Follower) -> None:
    reader.stream.put(Outgoing(subjects.binding("default", "a", "u1"), b"7"))
    reader.relist()
    assert [type(effect) for effect in reader.view.take_effects()] == [DeadDelivery]


def test_a_fence_beyond_the_last_record_asks_for_a_listing(reader: Follower) -> None:
    reader.stream.commit()
    reader.news()
    reader.stream.commit()
    reader.view.apply(reader.stream.log[-1])
    (effect,) = reader.view.take_effects()
    assert effect == RelistNeeded("the fence is at commit 2, read were 1")


def test_a_take_over_moves_the_fence_without_a_commit(reader: Follower) -> None:
    reader.stream.commit()
    reader.news()
    reader.stream.epoch = 2
    reader.stream.commit_n -= 1
    reader.stream.commit()
    fence = reader.stream.log[-1]
    reader.view.apply(fence)
    assert not reader.view.take_effects()
    assert reader.view.fence is not None
    assert reader.view.fence.epoch == 2


# Listing


def test_the_old_state_is_shown_until_the_listing_ends(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.view.begin_listing()
    assert POD in reader.view.pods
    assert reader.view.end_listing(9)[0].new is None
    assert (POD in reader.view.pods, reader.view.position, reader.view.listings) == (False, 9, 2)


def test_an_update_found_by_listing_is_a_gap(reader: Follower) -> None:
    reader.stream.write("nodes", node_document("n1", "u1"))
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.write("nodes", node_document("n1", "u1", cpu="9"))
    (change,) = reader.relist()
    assert (change.relisted, change.gap, change.resource) == (True, True, "nodes")


def test_a_binding_and_its_release_that_were_both_missed_are_told(reader: Follower) -> None:
    bound = bound_pod("a", "u1", "n1")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    reader.stream.commit([bound])
    reader.stream.commit([], [release_of(bound)])
    (change,) = reader.relist()
    assert change.release == release_of(bound)
    assert [event.label for event in change.events] == ["AssignedPodDelete"]


def test_records_told_again_after_the_listing_are_ignored(reader: Follower) -> None:
    """Following may begin before S: a pod whose end the listing held would be bound again, and the fence go
    back."""
    bound, document = bound_pod("a", "u1", "n1"), pod_document("a", "u1")
    reader.stream.write("pods", document)
    reader.stream.commit([bound])
    reader.stream.remove("pods", document)
    reader.stream.commit([], [release_of(bound)])
    reader.relist()
    assert [change for one in reader.stream.followed(0) for change in reader.view.apply(one)] == []
    first = next(one for one in reader.stream.log if one.subject == subjects.commit(1))
    assert reader.view.apply(first) == []
    assert not reader.view.pods_on("n1")
    assert reader.view.fence is not None
    assert reader.view.fence.n == 2
    assert not reader.view.take_effects()


def test_a_bound_pod_of_which_nothing_is_left_is_released(reader: Follower) -> None:
    bound, document = bound_pod("a", "u1", "n1"), pod_document("a", "u1")
    reader.stream.write("pods", document)
    reader.stream.commit([bound])
    reader.news()
    reader.stream.remove("pods", document)
    reader.stream.expire(SUBJECT)
    reader.stream.expire(subjects.binding("default", "a", "u1"))
    deleted, released = reader.relist()
    assert (deleted.new, occupied_after(deleted)) == (None, bound)
    assert (released.release.reason, occupied_after(released)) == ("terminated", None)
    assert not reader.view.pods_on("n1")


def test_a_binding_that_is_nowhere_any_more_is_released_though_its_pod_lives(reader: Follower) -> None:
    """As after a loss of the stream, when somebody has published the pod again."""
    bound = bound_pod("a", "u1", "n1")
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.stream.commit([bound])
    reader.news()
    reader.stream.expire(subjects.binding("default", "a", "u1"))
    (released,) = reader.relist()
    assert (released.release.node, occupied_before(released), occupied_after(released)) == ("n1", bound, None)
    assert released.new is not None
    assert released.new.bound is None
    assert not reader.view.pods_on("n1")


def test_a_binding_without_an_object_still_takes_room(reader: Follower) -> None:
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    (change,) = reader.relist()
    assert (change.new.gone, change.new.priority, change.new.labels) == (True, 5, {"a": "b"})
    assert list(reader.view.pods_on("n1")) == ["u1"]
    assert not reader.view.pods


def test_positions_only_grow_and_wait_for_the_listing() -> None:
    view = ClusterView()
    view.begin_listing()
    view.advance(50)
    view.apply(WrittenStream().write("pods", pod_document("a", "u1")))
    assert view.position == 0
    view.end_listing(7)
    view.advance(5)
    assert view.position == 7
    view.advance(12)
    assert view.position == 12


def test_who_and_why_come_with_the_change(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"), why="because", causes=("00-1",))
    (change,) = reader.news()
    assert (change.who, change.why, change.causes, change.sequence) == ("test", "because", ("00-1",), 1)


def test_views_are_never_changed(reader: Follower) -> None:
    reader.stream.write("pods", pod_document("a", "u1"))
    reader.news()
    before: Any = reader.view.pods[POD]
    told = before.facts()
    reader.stream.commit([bound_pod("a", "u1", "n1")])
    reader.stream.nominate("a", "u1", "n2")
    reader.news()
    assert before.facts() == told


def test_what_was_read_belongs_to_the_state_that_is_shown() -> None:
    """While a listing is under way decisions are made by the old state: they must not name what it has not
    read."""
    stream, view = WrittenStream(), ClusterView(remembers=True)
    stream.write("pods", pod_document("a", "u1"))
    view.begin_listing()
    for delivery in stream.listed():
        view.apply(delivery)
    view.end_listing(stream.last)
    old = stream.log[-1]
    stream.write("pods", pod_document("b", "u2"))
    new = stream.log[-1]
    view.begin_listing()
    for delivery in stream.listed():
        view.apply(delivery)
    assert (view.read, view.read_at) == (old.sequence, old.stored_at)
    assert view.has_read(old.sequence, old.stored_at)
    assert not view.has_read(new.sequence, new.stored_at)
    view.end_listing(stream.last)
    assert (view.read, view.read_at) == (new.sequence, new.stored_at)
    assert view.has_read(new.sequence, new.stored_at)
