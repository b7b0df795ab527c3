"""Volume, claim and binding are durable together, or not at all."""

from typing import Any

import msgspec
import pytest

from podyard.binder.core import effects
from podyard.plugins.defaults import default_profile
from podyard.proto.placement import VolumeChoice
from tests.unit.binder.stage import Stage, Term
from tests.unit.plugins.volume_binding.provisioner import stored
from tests.unit.plugins.volume_binding.test_promises import MADE, STATIC, claim, volume

PROFILE = default_profile()


def staged(*pods: str, volumes: tuple[str, ...] = ("a", "b"), storage_class: str = "static") -> tuple[Stage, Term]:
    """Pods, each with a claim of its own name, and volumes."""
    stage = Stage()
    stage.node()
    for manifest in (STATIC, MADE):
        stage.put_object("storageclasses", manifest)
    for name in volumes:
        stage.put_object("persistentvolumes", volume(name) | {"unknownField": {"kept": True}})
    for name in pods:
        stage.put_object("persistentvolumeclaims", claim(name, storage_class) | {"more": [1]})
        stage.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    return stage, stage.serving(profile=PROFILE)


def decide(stage: Stage, name: str, chosen: str | None = None) -> Any:
    volumes = () if chosen is None else (VolumeChoice(claim=name, volume=chosen),)
    return msgspec.structs.replace(stage.decide(name), volumes=volumes)


def test_the_volume_of_the_decision_is_bound_on_both_sides_in_the_commit() -> None:
    stage, binder = staged("p")
    assert binder.bind(decide(stage, "p", "b")) == ["bound"]
    written = [write.subject.split(".")[1] for write in binder.sends[-1].writes]
    assert written == ["bindings", "persistentvolumes", "persistentvolumeclaims", "commits", "fence"]
    taken = stored(stage, "persistentvolumes", "", "b")
    assert taken["spec"]["claimRef"]["uid"] == "uid-p"
    assert taken["spec"]["local"] == {"path": "/x"}
    assert taken["status"] == {"phase": "Bound"}
    assert taken["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert taken["unknownField"] == {"kept": True}
    bound = stored(stage, "persistentvolumeclaims", "default", "p")
    assert bound["spec"]["volumeName"] == "b"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert bound["more"] == [1]
    assert stored(stage, "persistentvolumes", "", "a")["spec"].get("claimRef") is None
    assert stage.stream.commits[-1].bindings[0].volumes == (VolumeChoice(claim="p", volume="b"),)


def test_a_claim_whose_volume_is_to_be_made_gets_the_node() -> None:
    stage, binder = staged("p", volumes=(), storage_class="made")
    assert binder.bind(decide(stage, "p", "")) == ["waiting"]
    selected = stored(stage, "persistentvolumeclaims", "default", "p")
    assert selected["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}
    assert "volumeName" not in selected["spec"]


def test_a_volume_that_somebody_else_took_is_a_conflict() -> None:
    stage, binder = staged("p", "q")
    assert binder.bind(decide(stage, "p", "a")) == ["bound"]
    (answer,) = binder.answers(binder.ask(decide(stage, "q", "a")))
    assert (answer.result, answer.cause) == ("conflict", "VolumeBinding")
    assert binder.bind(decide(stage, "q", "b")) == ["bound"]


def test_mates_in_one_batch_do_not_get_one_volume() -> None:
    stage, binder = staged("p", "q", "r")
    ticket = binder.ask(decide(stage, "p", "a"), decide(stage, "q", "a"), decide(stage, "r", "b"))
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "conflict", "bound"]


def test_without_a_choice_in_the_decision_the_binder_chooses() -> None:
    stage, binder = staged("p", "q")
    ticket = binder.ask(decide(stage, "p"), decide(stage, "q"))
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "bound"]
    assert {stored(stage, "persistentvolumeclaims", "default", name)["spec"]["volumeName"] for name in "pq"} == {
        "a",
        "b",
    }


def test_a_batch_that_is_not_written_leaves_its_volumes_free() -> None:
    stage, binder = staged("p", "q", volumes=("a",))
    binder.faults.append("hold")
    ticket = binder.ask(decide(stage, "p", "a"), wait=False)
    stage.pass_time(0.011)
    stage.remove("pods", "p")
    binder.held.clear()  # lost: nobody ever writes it
    binder.step(effects.Unclear(binder.sends[-1].batch_id, "time-out"))
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["gone"]
    assert binder.bind(decide(stage, "q", "a")) == ["bound"]


def test_a_volume_that_changed_meanwhile_fails_only_that_decision() -> None:
    stage, binder = staged("p", "q")
    binder.faults.append("hold")
    ticket = binder.ask(decide(stage, "p", "a"), decide(stage, "q", "b"), wait=False)
    stage.now += 0.011
    stage.put_object("persistentvolumes", volume("a", claim={"namespace": "x", "name": "y", "uid": "z"}))
    stage.pass_time(0.05)
    for message in binder.release_held():
        binder.step(message)
    stage.pass_time(0.05)
    results = {answer.uid: answer.result for answer in binder.answers(ticket)}
    assert sorted(results.values()) == ["bound", "conflict"]
    assert stored(stage, "persistentvolumes", "", "a")["spec"]["claimRef"]["name"] == "y"


@pytest.mark.parametrize(("volumes", "storage_class"), [(("a", "b"), "static"), ((), "made")])
def test_a_claim_that_is_named_twice_is_written_once(volumes: tuple[str, ...], storage_class: str) -> None:
    stage, binder = staged("p", volumes=volumes, storage_class=storage_class)
    twice = [{"name": name, "persistentVolumeClaim": {"claimName": "p"}} for name in ("v", "w")]
    stage.pod("p", volumes=twice)
    assert binder.bind(decide(stage, "p")) == ["bound" if volumes else "waiting"]
    written = [write.subject.split(".")[1] for write in binder.sends[-1].writes]
    assert written.count("persistentvolumeclaims") == 1
    assert written.count("persistentvolumes") == bool(volumes)


def test_bound_claims_are_left_as_they_are() -> None:
    stage, binder = staged("p")
    done = claim("p")
    done["spec"]["volumeName"] = "a"
    done["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    stage.put_object("persistentvolumeclaims", done)
    assert binder.bind(decide(stage, "p")) == ["bound"]
    assert [write.subject.split(".")[1] for write in binder.sends[-1].writes] == ["bindings", "commits", "fence"]


def test_pods_that_share_a_claim_take_one_volume_in_one_batch_and_leave_the_others_free() -> None:
    stage, binder = staged("p", "r")
    for name in ("q", "s"):
        stage.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}])
    chosen = {"p": "a", "s": "a", "q": "b"}
    ticket = binder.ask(
        *(
            msgspec.structs.replace(stage.decide(name), volumes=(VolumeChoice(claim="p", volume=one),))
            for name, one in chosen.items()
        )
    )
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "bound", "conflict"]
    assert binder.bind(stage.decide("q")) == ["bound"]
    assert binder.bind(decide(stage, "r", "b")) == ["bound"]
