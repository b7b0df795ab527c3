"""Which nodes are lost, what is said of them, and when it ends."""

import pytest

from podyard.proto.facts import NodeLifeFact
from podyard.workloads.core.node_life import Beat, Hearing, Tick
from tests.support import stored
from tests.unit.workloads.node_stage import Stage, life_message

GRACE_S = 50.0


@pytest.fixture
def stage() -> Stage:
    return Stage.of_two()


def silence(stage: Stage, *names: str) -> None:
    """The agents have just beaten, and beat no more."""
    stage.beat(names)
    stage.alive.difference_update(names)


def test_nothing_is_said_of_nodes_that_beat(stage: Stage) -> None:
    stage.pass_time(600.0)
    assert not stage.view.node_lives


def test_a_node_is_lost_after_the_grace_period_and_not_before(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(GRACE_S)
    assert stage.life("n1") is None
    stage.pass_time(5.1)
    assert stage.conditions("n1") == {
        "Ready": "Unknown",
        "MemoryPressure": "Unknown",
        "DiskPressure": "Unknown",
        "PIDPressure": "Unknown",
    }
    assert stage.taints("n1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    assert stage.life("n2") is None


def test_conditions_are_worded_as_the_reference_does(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    life = stage.life("n1")
    assert life is not None
    worded = {one.type: (one.reason, one.message) for one in life.conditions}
    assert worded["Ready"] == ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert worded["PIDPressure"] == ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert [(one.key.name, one.reason, one.message) for one in stage.announced] == [
        ("n1", "NodeNotReady", "Node n1 status is now: NodeNotReady")
    ]


def test_the_agents_own_words_stay_as_they_are(stage: Stage) -> None:
    silence(stage, "n1")
    before = stage.seen("n1").status
    stage.pass_time(60.0)
    assert stage.seen("n1").status is before
    assert {one.type: one.status for one in stage.seen("n1").reported.status.conditions} == {"Ready": "True"}


@pytest.mark.parametrize("sign", ["beat", "status"])
def test_the_first_sign_of_life_ends_it_at_once(stage: Stage, sign: str) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    if sign == "beat":
        stage.beat(["n1"])
    else:
        stage.report("n1")
    stage.pass_time(0.2)
    assert stage.life("n1") is None
    assert (stage.conditions("n1"), stage.taints("n1")) == ({"Ready": "True"}, set())


def test_a_status_that_is_listed_again_is_no_sign_of_life(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(40.0)
    document = stage.document("nodes", "n1", "")
    document["metadata"]["labels"]["changed"] = "meanwhile"
    stage.stream.put(stored.version("nodes", document))
    stage.relist()
    assert stage.seen("n1").labels["changed"] == "meanwhile"
    stage.pass_time(16.0)
    assert stage.life("n1") is not None


def test_a_node_that_nobody_reported_about_has_the_startup_period(stage: Stage) -> None:
    stage.node("new", beats=False, agent=False)
    stage.pass_time(5.0)
    stage.pass_time(60.0)
    assert stage.life("new") is None
    stage.pass_time(5.1)
    life = stage.life("new")
    assert life is not None
    assert {one.reason for one in life.conditions} == {"NodeStatusNeverUpdated"}


def test_a_node_that_says_itself_that_it_is_not_ready_is_tainted_as_that(stage: Stage) -> None:
    stage.report("n1", Ready="False")
    stage.pass_time(0.2)
    assert stage.taints("n1") == {"not-ready:NoSchedule"}
    stage.pass_time(5.0)
    assert stage.taints("n1") == {"not-ready:NoSchedule", "not-ready:NoExecute"}
    assert stage.conditions("n1") == {"Ready": "False"}
    silence(stage, "n1")
    stage.pass_time(60.0)
    assert stage.taints("n1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    stage.report("n1", Ready="False")
    stage.pass_time(6.0)
    assert stage.taints("n1") == {"not-ready:NoSchedule", "not-ready:NoExecute"}
    stage.report("n1")
    stage.pass_time(6.0)
    assert stage.life("n1") is None


def test_a_pressure_that_the_agent_tainted_itself_needs_no_fact(stage: Stage) -> None:
    key = "node.kubernetes.io/memory-pressure"
    stage.report("n1", MemoryPressure="True", NetworkUnavailable="True")
    stage.taint("n1", {"key": key, "effect": "NoSchedule"})
    stage.pass_time(6.0)
    life = stage.life("n1")
    assert life is not None
    assert [(one.key, one.effect) for one in life.taints] == [("node.kubernetes.io/network-unavailable", "NoSchedule")]


def test_what_lasts_keeps_its_times(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    first = stage.life("n1")
    stage.pass_time(120.0)
    assert stage.life("n1") is first, "nothing is written again"
    assert first is not None
    stage.begin()
    stage.pass_time(120.0)
    assert stage.life("n1") == first


def test_what_is_said_goes_with_the_node(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    stage.remove_node("n1")
    stage.pass_time(0.2)
    assert not stage.view.node_lives


def test_a_new_leader_clears_away_what_was_said_of_a_node_that_is_gone(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    stage.hold = True
    stage.remove_node("n1")
    stage.begin()
    stage.hold = False
    assert stage.view.node_lives
    stage.release()
    stage.pass_time(6.0)
    assert not stage.view.node_lives


def test_a_node_made_anew_under_its_name_is_not_lost(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    document = stage.document("nodes", "n1", "")
    document["metadata"]["uid"] = "another"
    stage.stream.put(stored.version("nodes", document))
    stage.follow()
    assert stage.taints("n1") == set()
    stage.pass_time(40.0)
    assert not stage.view.node_lives


# Silence that we did not listen to


def test_after_a_take_over_every_node_has_its_time_again(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(49.0)
    stage.begin()
    stage.pass_time(GRACE_S)
    assert stage.life("n1") is None
    stage.pass_time(6.0)
    assert stage.life("n1") is not None


def test_after_a_take_over_a_lost_node_is_lost_until_it_is_heard(stage: Stage) -> None:
    silence(stage, "n1")
    stage.pass_time(60.0)
    stage.begin()
    stage.pass_time(20.0)
    assert stage.taints("n1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    stage.beat(["n1"])
    stage.pass_time(0.2)
    assert stage.life("n1") is None


def test_who_does_not_hear_the_bus_declares_nobody_lost(stage: Stage) -> None:
    stage.step(Hearing(False))
    stage.reaches = False
    stage.pass_time(600.0)
    assert not stage.view.node_lives
    stage.step(Hearing(True))
    stage.pass_time(GRACE_S)
    assert not stage.view.node_lives, "every node has its time again"
    stage.reaches = True
    stage.alive.discard("n1")
    stage.pass_time(11.0)
    assert set(stage.view.node_lives) == {"n1"}


def test_who_was_stopped_did_not_hear(stage: Stage) -> None:
    """The process is paused for longer than the grace period: the first that it does is to tick."""
    stage.now += 300.0
    stage.step(Tick())
    stage.next_beat = stage.now + GRACE_S + 4.0
    stage.pass_time(GRACE_S)
    assert not stage.view.node_lives


def test_a_beat_of_a_node_that_is_not_there_is_ignored(stage: Stage) -> None:
    assert stage.step(Beat("nobody")) == []


# Facts on their way


def test_facts_that_could_not_be_stored_are_said_again(stage: Stage) -> None:
    silence(stage, "n1")
    stage.hold = True
    stage.pass_time(60.0)
    assert len(stage.held) == 1, "one after the other"
    stage.fail()
    stage.hold = False
    stage.pass_time(1.2)
    assert stage.taints("n1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}


def test_a_node_that_is_heard_while_its_fact_is_on_its_way_is_freed_afterwards(stage: Stage) -> None:
    silence(stage, "n1")
    stage.hold = True
    stage.pass_time(60.0)
    stage.beat(["n1"])
    stage.hold = False
    stage.release()
    stage.pass_time(0.2)
    assert stage.life("n1") is None


def test_a_fact_that_somebody_else_wrote_is_put_right(stage: Stage) -> None:
    stage.stream.put(life_message("n1", NodeLifeFact(node="n1", node_uid="uid-n1")))
    stage.pass_time(6.0)
    assert stage.life("n1") is None


def test_a_node_that_beats_and_never_said_whether_it_is_ready_is_lost_no_more(stage: Stage) -> None:
    stage.node("n3", agent=False, beats=False)
    stage.pass_time(70.0)
    assert stage.taints("n3") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    stage.alive.add("n3")
    stage.pass_time(20.0)
    assert (stage.life("n3"), stage.taints("n3")) == (None, set())


def test_a_node_that_is_ready_again_waits_for_no_taint(stage: Stage) -> None:
    """It would take the turn of another one."""
    for name in ("n3", "n4", "n5"):
        stage.node(name)
    stage.report("n1", Ready="False")
    stage.report("n2", Ready="False")
    stage.pass_time(5.1)
    assert len(stage.given_up()) == 1
    (second,) = {"n1", "n2"} - stage.given_up()
    stage.report(second)
    stage.report("n3", Ready="False")
    stage.pass_time(10.0)
    assert "n3" in stage.given_up()


def kubelet_says(stage: Stage, name: str, heartbeat: str) -> None:
    """Whoever keeps a node that no agent of Podyard's keeps writes its status."""
    document = stage.document("nodes", name, "")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    document.setdefault("status", {})["conditions"] = [ready]
    stage.stream.put(stored.version("nodes", document))
    stage.follow()


def renew(stage: Stage, name: str, namespace: str = "kube-node-lease") -> None:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-lease-{name}"}
    document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    stage.stream.put(stored.version("leases", {**document, "spec": {"renewTime": str(stage.now)}}))
    stage.follow()


@pytest.mark.parametrize("how", ["lease", "status"])
def test_a_kubelet_that_is_not_podyards_lives_by_its_lease_or_its_status(stage: Stage, how: str) -> None:
    stage.node("theirs", beats=False, agent=False)
    kubelet_says(stage, "theirs", "2026-01-01T00:00:00Z")
    for minute in range(1, 5):
        stage.pass_time(40.0)
        if how == "lease":
            renew(stage, "theirs")
        else:
            kubelet_says(stage, "theirs", f"2026-01-01T00:0{minute}:00Z")
    assert stage.life("theirs") is None
    stage.pass_time(GRACE_S + 5.1)
    assert stage.taints("theirs") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    if how == "lease":
        renew(stage, "theirs")
    else:
        kubelet_says(stage, "theirs", "2026-01-01T01:00:00Z")
    stage.pass_time(0.2)
    assert stage.life("theirs") is None


def test_other_leases_and_other_changes_of_its_node_are_no_sign_of_life(stage: Stage) -> None:
    stage.node("theirs", beats=False, agent=False)
    kubelet_says(stage, "theirs", "2026-01-01T00:00:00Z")
    stage.pass_time(40.0)
    renew(stage, "theirs", "kube-system")
    document = stage.document("nodes", "theirs", "")
    document["metadata"]["labels"]["changed"] = "by somebody"
    stage.stream.put(stored.version("nodes", document))
    stage.follow()
    stage.pass_time(22.0)
    assert stage.life("theirs") is not None
