"""Events that are told from what the store reads."""

from typing import Any

import msgspec
import pytest

from podyard.kube_api.core import event_telling
from podyard.kube_api.core.event_store import EVENTS, EventStore
from podyard.kube_api.core.event_telling import FailedAttempt, Teller
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Readers
from podyard.objects import times
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Condition, NodeStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent, Reason
from tests.support import objects, stored
from tests.support.cluster import bound
from tests.support.stream import ClusterStream
from tests.unit.kube_api.core.world import World

NOW = 1_800_000_000.0
KEPT_S = 3600.0


class Told(World):
    """A world of whose steps a teller tells."""

    def __init__(self, stream: ClusterStream | None = None) -> None:
        super().__init__()
        self.stream = stream or ClusterStream(clock=lambda: NOW)
        self.events = EventStore(NOW, KEPT_S)
        self.teller = Teller(self.store, self.events)
        self.store.reader = Readers(self.watchers, self.teller)
        self.events.expire(NOW)
        self.relist()

    def relist(self) -> None:
        super().relist()
        self.teller.listed()

    def made(self, name: str, *, owner: str = "rs", at: float = 0.0) -> None:
        """A pod that its ReplicaSet has made."""
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        more = {"ownerReferences": [reference], "creationTimestamp": times.rfc3339(NOW + at)}
        self.pod(name, metadata=more)

    def placed(self, name: str) -> None:
        self.stream.put(stored.binding(bound(name, attempt="a")))

    def documents(self) -> list[dict[str, Any]]:
        return [item.moment.document({}) for item in self.events.items(Scope(EVENTS))]

    def told(self) -> list[tuple[str, str, int]]:
        return [(one["reason"], one["message"], one["count"]) for one in self.documents()]


def test_a_pod_is_made_and_scheduled():
    world = Told()
    world.made("a")
    world.placed("a")
    world.deliver()
    assert world.told() == [
        ("Scheduled", "Successfully assigned default/a to n1", 1),
        ("SuccessfulCreate", "Created pod: a", 1),
    ]
    scheduled, created = world.documents()
    assert (scheduled["reportingComponent"], scheduled["involvedObject"]["uid"]) == ("default-scheduler", "uid-a")
    assert (created["involvedObject"]["kind"], created["involvedObject"]["name"]) == ("ReplicaSet", "rs")


def test_one_that_was_created_with_its_node_was_not_scheduled():
    world = Told()
    world.pod("a", node="n1")
    world.stream.put(stored.binding(bound("a")))
    world.deliver()
    assert world.told() == []


def test_what_a_listing_finds_is_told_and_told_once():
    world = Told()
    world.made("a")
    world.placed("a")
    world.deliver()
    before = world.documents(), world.events.position
    world.relist()
    assert (world.documents(), world.events.position) == before
    anew = Told(world.stream)
    assert anew.told() == world.told()


def test_what_is_too_old_is_not_told():
    world = Told()
    world.made("a", at=-KEPT_S - 1)
    world.deliver()
    assert world.told() == []


def test_a_pod_that_is_deleted_has_its_containers_stopped_once():
    world = Told()
    world.pod("a")
    world.placed("a")
    world.deliver()
    deleting = {"deletionTimestamp": times.rfc3339(NOW + 40), "deletionGracePeriodSeconds": 30}
    for label in ("x", "y"):
        world.pod("a", metadata=deleting, labels={"l": label})
        world.deliver()
    world.delete_pod("a")
    world.deliver()
    assert [one for one in world.told() if one[0] == "Killing"] == [("Killing", "Stopping container main", 1)]


def test_of_many_pods_of_one_owner_the_tenth_and_all_others_are_one():
    world = Told()
    for at in range(30):
        world.made(f"p{at:02}", at=at)
    world.deliver()
    found = sorted(world.told())
    assert len(found) == 10
    assert found[0] == ("SuccessfulCreate", "(combined from similar events): Created pod: p29", 21)


def failed(at: float, message: str = "no room", outcome: str = "unschedulable") -> FailedAttempt:
    record = AttemptRecord(
        namespace="default", name="a", uid="u", attempt=f"{at}", outcome=outcome, at=NOW + at, message=message
    )
    return msgspec.json.decode(codec.encode(record), type=FailedAttempt)


def test_attempts_that_failed_count():
    world = Told()
    for at in (1.0, 2.0, 2.0, 3.0):
        world.teller.attempted(failed(at))
    world.teller.attempted(failed(4.0, "other"))
    world.teller.attempted(failed(5.0, "", "gated"))
    assert sorted(world.told()) == [("FailedScheduling", "no room", 3), ("FailedScheduling", "other", 1)]


def says(world: Told, reason: str, at: float = 0.0) -> None:
    condition = Condition(
        type="MemoryPressure", status="False", reason=reason, last_transition_time=times.rfc3339(NOW + at)
    )
    fact = NodeStatusFact(node="n1", node_uid="uid-n1", conditions=(condition,))
    world.stream.put(stored.Outgoing(subjects.node_status("n1"), codec.encode(fact)))
    world.deliver()


def test_a_node_tells_what_no_event_says_that_was_sent():
    world = Told()
    world.stream.put(stored.version("nodes", objects.node("n1")))
    says(world, "KubeletHasSufficientMemory")
    message = "Node n1 status is now: NodeHasSufficientMemory"
    assert world.told() == [("NodeHasSufficientMemory", message, 1)]
    about = ObjectRef(resource="nodes", name="n1", uid="uid-n1")
    sent = K8sEvent(
        regarding=about,
        reason=Reason("NodeHasSufficientMemory"),
        message=message,
        reporter="node_agent",
        controller="kubelet",
        at=NOW + 0.5,
        id="1",
        count=2,
    )
    world.teller.sent(subjects.k8s_event("", "nodes", "n1", "1"), sent, 1, NOW)
    assert world.told() == [("NodeHasSufficientMemory", message, 2)]
    says(world, "KubeletHasInsufficientMemory", 10)
    assert sorted(one[0] for one in world.told()) == ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"]


def test_what_waits_is_told_when_somebody_looks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_telling, "MOST_WAITING", 4)
    world = Told()
    for at in range(3):
        world.made(f"p{at}", at=at)
        world.placed(f"p{at}")
    world.deliver()
    assert len(world.events) == 2
    assert len(world.told()) == 6
    watching = EventStore(NOW, KEPT_S)
    world.store.reader = Teller(world.store, watching, lambda: True)
    world.made("more")
    world.deliver()
    assert len(watching) == 1
