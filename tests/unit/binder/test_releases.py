"""Releases: their reasons, their tombstones (docs/rules.md, tombstone-stays-with-the-object); forced
bindings."""

import pytest

from podyard.binder.core import effects
from podyard.cluster.changes import Change, Origin
from podyard.proto import headers
from podyard.proto.placement import Binding, Tombstone
from tests.unit.binder.stage import Stage, Term, binding_subject, uid_of

SOON = 0.02


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="2")
    stage.pod("a")
    return stage


@pytest.fixture
def binder(stage: Stage) -> Term:
    binder = stage.serving()
    assert binder.bind(stage.decide("a")) == ["bound"]
    return binder


def tombstone(stage: Stage, name: str = "a") -> Tombstone:
    found = stage.stream.placement(name)
    assert isinstance(found, Tombstone)
    return found


def expires(stage: Stage, name: str = "a") -> bool:
    return headers.TTL in stage.stream.messages[binding_subject(name)].headers


def test_a_completed_pod_is_released_and_its_tombstone_stays(stage: Stage, binder: Term):
    before = stage.stream.messages[binding_subject("a")].sequence
    stage.status("a")
    stage.pass_time(SOON)
    (release,) = stage.stream.commits[-1].releases
    assert (release.uid, release.node, release.reason) == (uid_of("a"), "n1", "completed")
    stone = tombstone(stage)
    assert (stone.reason, stone.attempt) == ("completed", "1-a")
    assert stone.decision is not None
    assert stone.bound_at > 0
    assert not expires(stage)
    assert binder.sends[-1].writes[0].expect == before
    assert not binder.core.world.table.pods_on("n1")


def test_a_pod_that_still_runs_is_not_released(stage: Stage, binder: Term):
    stage.status("a", ended=False, phase="Failed")  # evicted, its containers still end
    stage.pod("a", deleting=True)
    stage.pass_time(1)
    assert stage.stream.live() == {"a": "n1"}


def test_a_deleted_pod_that_ended_is_released_as_terminated(stage: Stage, binder: Term):
    stage.pod("a", deleting=True)
    stage.status("a")
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "terminated"
    assert not expires(stage)  # the object is still there


def test_the_tombstone_gets_a_ttl_when_the_object_is_gone(stage: Stage, binder: Term):
    stage.pod("a", deleting=True)
    stage.status("a")
    stage.pass_time(SOON)
    stage.remove("pods", "a")
    stage.pass_time(1.1)
    assert expires(stage)
    assert tombstone(stage).reason == "terminated"
    assert len(stage.stream.commits) == 2  # no record for it: nothing changed for readers


def test_an_object_removed_at_once_releases_with_a_ttl(stage: Stage, binder: Term):
    stage.remove("pods", "a")
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "terminated"
    assert expires(stage)
    writes = len(binder.sends)
    stage.pass_time(5)
    assert len(binder.sends) == writes  # nothing more to do


def test_a_binding_whose_object_was_gone_at_its_position_is_an_orphan(stage: Stage):
    stage.pod("b")
    binder = stage.serving()
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("b"))
    stage.remove("pods", "b")
    (answer,) = binder.release_held()
    binder.step(answer)
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert [found.result for found in binder.answers(ticket)] == ["bound"]
    assert tombstone(stage, "b").reason == "orphan"
    assert expires(stage, "b")
    assert stage.stream.live() == {}


def test_an_orphan_that_no_binder_saw_is_released_at_take_over(stage: Stage, binder: Term):
    stage.terms.clear()
    stage.remove("pods", "a")
    stage.serving("binder-b")
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "orphan"
    assert expires(stage)


def test_pods_of_a_node_that_is_gone_are_released(stage: Stage, binder: Term):
    stage.remove("nodes", "n1")
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "nodeGone"
    assert stage.stream.live() == {}


def test_a_node_that_is_back_before_the_release_is_written_keeps_its_pods(stage: Stage, binder: Term):
    stage.remove("nodes", "n1")
    stage.node(cpu="2")
    stage.pass_time(SOON)
    assert stage.stream.live() == {"a": "n1"}
    assert isinstance(stage.stream.placement("a"), Binding)
    stage.remove("nodes", "n1")
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "nodeGone"


def test_a_release_that_was_lost_is_judged_again(stage: Stage, binder: Term):
    binder.faults.append("hold")
    stage.remove("nodes", "n1")
    stage.pass_time(SOON)
    (lost,) = (send.batch_id for send in binder.held)
    binder.held.clear()
    stage.node(cpu="2")
    binder.step(effects.Unclear(lost, "lost"))
    stage.pass_time(SOON)
    assert stage.stream.live() == {"a": "n1"}


def test_a_binding_written_while_its_node_vanished_is_released(stage: Stage, binder: Term):
    stage.pod("b")
    binder.faults.append("hold")
    binder.ask(stage.decide("b"))
    stage.remove("nodes", "n1")
    (answer,) = binder.release_held()
    binder.step(answer)
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert stage.stream.live() == {}


def test_a_tombstone_whose_pod_went_while_no_binder_looked_gets_its_ttl(stage: Stage, binder: Term):
    stage.status("a")
    stage.pass_time(SOON)
    stage.terms.clear()
    stage.remove("pods", "a")
    assert not expires(stage)
    stage.serving("binder-b")
    stage.pass_time(1.1)
    stage.pass_time(SOON)
    assert expires(stage)


def test_release_acts_by_uid_when_a_namesake_took_the_name(stage: Stage, binder: Term):
    stage.pod("a", uid="new")
    stage.pass_time(SOON)
    assert [release.uid for release in stage.stream.commits[-1].releases] == [uid_of("a")]
    assert binder.bind(stage.decide("a", uid="new")) == ["bound"]


def test_room_is_free_only_after_the_release_is_durable(stage: Stage, binder: Term):
    """docs/rules.md, ending-pod-keeps-its-room."""
    stage.pod("big", cpu="2")
    binder.faults.append("hold")
    stage.status("a")
    stage.pass_time(SOON)
    assert binder.core.world.table.placed(uid_of("a")) is not None
    (answer,) = binder.release_held()
    binder.step(answer)
    assert binder.core.world.table.placed(uid_of("a")) is None
    assert binder.bind(stage.decide("big")) == ["bound"]


def test_a_release_that_was_lost_is_written_again(stage: Stage, binder: Term):
    binder.faults.append("lost")
    stage.status("a")
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert tombstone(stage).reason == "completed"
    assert [len(record.releases) for record in stage.stream.commits] == [0, 1]


def test_the_view_of_a_released_pod_does_not_bring_its_room_back(stage: Stage, binder: Term):
    """Between the acknowledgement of a release and its record in the view, other changes of the pod show it
    as bound."""
    world = binder.core.world
    world.free(uid_of("a"))
    shown = binder.view.pods_by_uid[uid_of("a")]
    assert shown.bound is not None
    world.follow([Change("pods", shown.uid, shown, shown, Origin())])
    assert world.table.placed(uid_of("a")) is None
    world.follow([Change("pods", shown.uid, shown, None, Origin(), release=object())])
    assert world.unseen_releases == set()


# ---- forced bindings


def test_a_pod_with_a_node_name_is_bound_without_judgement(stage: Stage):
    stage.pod("huge", cpu="64", nodeName="n1")
    stage.serving()
    stage.pass_time(SOON)
    binding = stage.stream.placement("huge")
    assert isinstance(binding, Binding)
    assert (binding.node, binding.forced, binding.attempt, binding.decision) == ("n1", True, "", None)
    assert stage.stream.commits[-1].bindings[0].forced


def test_a_forced_pod_takes_room(stage: Stage):
    binder = stage.serving()
    stage.pod("forced", cpu="2", nodeName="n1")
    stage.pass_time(SOON)
    assert binder.bind(stage.decide("a")) == ["conflict"]


def test_a_forced_pod_waits_for_its_node(stage: Stage):
    binder = stage.serving()
    stage.pod("forced", nodeName="n9")
    stage.pass_time(SOON)
    assert stage.stream.placement("forced") is None
    stage.node("n9")
    stage.pass_time(SOON)
    assert stage.stream.live() == {"forced": "n9"}
    assert binder.core.phase.name == "SERVING"


def test_pods_forced_to_missing_nodes_are_forgotten_when_they_go(stage: Stage):
    forced = stage.serving().core._forced
    for number in range(8):
        stage.pod(f"forced-{number}", nodeName=f"missing-{number % 2}")
    stage.pass_time(SOON)
    assert forced.waiting == 8
    for number in range(4):
        stage.remove("pods", f"forced-{number}")
    stage.pod("forced-4", nodeName="missing-0", phase="Failed")
    stage.pod("forced-5", nodeName="missing-1", deleting=True)
    stage.pass_time(SOON)
    assert forced.waiting == 2
    assert {node: len(uids) for node, uids in forced._by_node.items()} == {"missing-0": 1, "missing-1": 1}
    stage.node("missing-0")
    stage.pass_time(SOON)
    assert (set(stage.stream.live()), forced.waiting, list(forced._by_node)) == ({"forced-6"}, 1, ["missing-1"])


def test_a_forced_pod_that_is_gone_or_has_ended_is_left_alone(stage: Stage):
    stage.serving()
    stage.pod("ended", nodeName="n1", phase="Failed")
    stage.pod("going", nodeName="n1", deleting=True)
    stage.pod("gone", nodeName="n9")
    stage.remove("pods", "gone")
    stage.node("n9")
    stage.pass_time(SOON)
    assert stage.stream.commits == []


def test_a_forced_pod_that_changes_before_the_view_shows_its_binding_is_not_bound_again(stage: Stage):
    binder = stage.serving()
    binder.faults.append("hold")
    stage.pod("forced", nodeName="n1")
    stage.pass_time(SOON)
    (answer,) = binder.release_held()
    binder.step(answer)
    seen = binder.view.pods_by_uid[uid_of("forced")]
    assert seen.bound is None
    binder.pump = lambda: None
    binder.step(effects.Changed([Change("pods", seen.uid, seen, seen, Origin())]))
    sends = len(binder.sends)
    stage.pass_time(SOON)
    assert len(binder.sends) == sends


def test_a_forced_binding_that_was_lost_is_written_again(stage: Stage):
    binder = stage.serving()
    binder.faults.append("lost")
    stage.pod("forced", nodeName="n1")
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert stage.stream.live() == {"forced": "n1"}


def test_a_scheduler_may_not_move_a_pod_that_its_creator_placed(stage: Stage):
    stage.node("n2")
    stage.pod("forced", nodeName="n9")
    binder = stage.serving()
    (answer,) = binder.answers(binder.ask(stage.decide("forced", node="n2")))
    assert (answer.result, answer.cause) == ("conflict", "NodeName")
