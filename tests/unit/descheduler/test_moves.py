"""What is remembered of moves: what came in a pod's place, and who undoes whose."""

from typing import Any

import pytest

from podyard.cluster.view import ClusterView
from podyard.descheduler.core import moves
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed
from podyard.descheduler.core.moves import Moves, Workload, workload_of
from podyard.objects import times
from podyard.proto.facts import PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.placement import BoundPod
from tests.support import objects, stored
from tests.support.stream import ClusterStream
from tests.unit.descheduler.make import NOW, OWNER, pod, policy
from tests.unit.descheduler.stage import INTERVAL_S, Stage
from tests.unit.descheduler.test_plugins_that_fail import Sweep

WEB = Workload("Deployment", "web", "web", "rs-1")


def seen(*pods: tuple[str, str, float], replicasets: tuple[dict[str, Any], ...] = ()) -> ClusterView:
    """Pods of one ReplicaSet: name, node (none if empty; `~n1` starts there), time of creation."""
    stream, commits = ClusterStream(lambda: NOW), 0
    for one in replicasets:
        stream.put(stored.version("replicasets", one))
    for name, place, made_at in pods:
        metadata = {"ownerReferences": OWNER, "creationTimestamp": times.rfc3339(made_at)}
        document = objects.pod(name, metadata=metadata)
        stream.put(stored.version("pods", document))
        uid, node = document["metadata"]["uid"], place.removeprefix("~")
        if node:
            commits += 1
            bound = BoundPod(namespace="default", name=name, uid=uid, node=node, attempt=name)
            stream.put_all(stored.commit(commits, bindings=[bound]))
        if node and node == place:
            fact = PodStatusFact(namespace="default", name=name, uid=uid, node=node, phase="Running")
            stream.put(stored.pod_status(fact))
    view = ClusterView()
    view.begin_listing()
    for delivery in stream.listed():
        view.apply(delivery)
    view.end_listing(stream.last)
    return view


def moved(memory: Moves, name: str, node: str, at: float, plugin: str = "Tidy") -> MoveRecord:
    wanted = Eviction(pod(name, node), "p", plugin, "why", None)
    record = memory.tried(wanted, EvictionDone(trace="00-1"), WEB, at)
    assert record is not None
    return record


def test_an_eviction_is_remembered_with_who_and_why() -> None:
    record = moved(Moves(), "a", "n1", NOW)
    assert (record.kind, record.name, record.owner, record.pod, record.from_node) == (
        "Deployment", "web", "web", "a", "n1"
    )  # fmt: skip
    assert (record.profile, record.plugin, record.reason, record.outcome, record.trace) == (
        "p", "Tidy", "why", "moving", "00-1"
    )  # fmt: skip


@pytest.mark.parametrize(("place", "outcome"), [("", "pending"), ("~n2", "moving"), ("n2", "running"), ("n1", "back")])
def test_what_came_in_its_place_says_what_came_of_it(place: str, outcome: str) -> None:
    memory = Moves()
    moved(memory, "a", "n1", NOW)
    assert memory.seen(seen(("old", "n3", NOW - 100)), NOW + 1) == []
    (record,) = memory.seen(seen(("old", "n3", NOW - 100), ("new", place, NOW + 1)), NOW + 5)
    assert (record.outcome, record.to_pod, record.to_node) == (outcome, "new", place.removeprefix("~"))
    assert record.known_at == NOW + 5
    assert memory.seen(seen(("new", place, NOW + 1)), NOW + 9) == [], "nothing more is known"


def test_each_new_pod_counts_for_one_move_the_oldest_for_the_first() -> None:
    memory = Moves()
    moved(memory, "a", "n1", NOW)
    moved(memory, "b", "n2", NOW + 1)
    first, second = memory.seen(seen(("d", "n1", NOW + 3), ("c", "n3", NOW + 2)), NOW + 5)
    assert [(one.pod, one.to_pod, one.outcome) for one in (first, second)] == [
        ("a", "c", "running"), ("b", "d", "running")
    ]  # fmt: skip


def test_a_refusal_is_remembered_once() -> None:
    memory = Moves()
    wanted = Eviction(pod("a"), "p", "Tidy", "why", None)
    record = memory.tried(wanted, EvictionFailed("its budget"), WEB, NOW)
    assert record is not None
    assert (record.outcome, record.problem) == ("refused", "its budget")
    assert memory.tried(wanted, EvictionFailed("its budget"), WEB, NOW + 300) is None
    assert memory.tried(wanted, EvictionFailed("another one"), WEB, NOW + 600) is not None


def test_refusals_of_two_plugins_are_remembered_once_each() -> None:
    memory = Moves()
    tried = [
        memory.tried(Eviction(pod("a"), "p", plugin, "why", None), EvictionFailed("its budget"), WEB, NOW + number)
        for number, plugin in enumerate(["Tidy", "Untidy", "Tidy", "Untidy"])
    ]
    assert [record is not None for record in tried] == [True, True, False, False]


@pytest.mark.parametrize(("second", "undoes"), [("Untidy", "p/Tidy"), ("Tidy", "")])
def test_a_plugin_that_undoes_anothers_move_is_named(second: str, undoes: str) -> None:
    """Tidy moves from n1, what comes runs on n2, and the second moves that; what comes runs on n1 again."""
    memory = Moves()
    moved(memory, "a", "n1", NOW)
    memory.seen(seen(("b", "n2", NOW + 2)), NOW + 5)
    moved(memory, "b", "n2", NOW + 10, second)
    (record,) = memory.seen(seen(("c", "n1", NOW + 12)), NOW + 15)
    assert (record.pod, record.to_pod, record.outcome, record.undoes) == ("b", "c", "running", undoes)


def test_what_is_known_already_is_not_forgotten_for_what_is_stored() -> None:
    """A record is stored a little later than it is known."""
    memory = Moves()
    before = moved(memory, "a", "n1", NOW)
    view = seen(("b", "n2", NOW + 2))
    (known,) = memory.seen(view, NOW + 5)
    memory.recall([before])
    assert memory.made() == [known]
    other = Moves()
    other.recall([before, known])
    assert other.made() == [known]


def test_what_earlier_terms_stored_is_followed_on() -> None:
    before = moved(Moves(), "a", "n1", NOW)
    memory = Moves()
    memory.recall([before])
    (record,) = memory.seen(seen(("b", "n2", NOW + 2)), NOW + 5)
    assert (record.id, record.outcome) == (before.id, "running")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MOST", 2)
    memory = Moves()
    for number in range(3):
        moved(memory, f"p{number}", "n1", NOW + number)
    found = memory.seen(seen(*((f"q{number}", "n2", NOW + 10 + number) for number in range(3))), NOW + 20)
    assert [one.pod for one in found] == ["p1", "p2"]


def test_the_workload_is_the_one_at_the_top() -> None:
    made_by = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "rs-1", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "d-1", "controller": True}
        ]},
        "spec": {"selector": {}, "template": {}},
    }  # fmt: skip
    assert workload_of(pod("a"), seen(replicasets=(made_by,))) == Workload("Deployment", "shop", "web", "rs-1")
    assert workload_of(pod("a"), seen()) == Workload("ReplicaSet", "web", "web", "rs-1")
    assert workload_of(pod("a", owners=[]), seen()) == Workload("Pod", "a")


def test_a_cycle_remembers_what_became_of_each_eviction() -> None:
    stage = Stage(policy(Sweep), Sweep)
    stage.pods("a", "b")
    stage.tick()
    stage.listed()
    stage.answer(EvictionFailed("its budget"))
    stage.answer()
    assert [(one.pod, one.outcome) for one in stage.remembered] == [("a", "refused"), ("b", "moving")]
    stage.tick(INTERVAL_S)
    stage.listed()
    stage.answer(EvictionFailed("its budget"))
    assert len(stage.remembered) == 2
