"""A pod whose volumes are to be made waits for them in the binder: with its room and its other volumes, and
not for ever."""

from collections.abc import Callable

import pytest

from podyard.binder.core import effects
from podyard.plugins.defaults import default_profile
from podyard.proto import subjects
from podyard.proto.binder_api import BindAnswer, Decision
from podyard.proto.placement import VolumeChoice
from tests.unit.binder.stage import Stage, Term
from tests.unit.plugins.volume_binding.provisioner import fail, provision, put_claim, selected, stored
from tests.unit.plugins.volume_binding.test_promises import MADE, STATIC, claim, volume

PROFILE = default_profile()
TIMEOUT_S = 600.0
CLAIM = subjects.object_("persistentvolumeclaims", "default", "p")


@pytest.fixture
def stage() -> Stage:
    """Node n1 with room for one of the pods p and q (q without claims), and a local volume."""
    stage = Stage()
    stage.node(cpu="2")
    for manifest in (STATIC, MADE):
        stage.put_object("storageclasses", manifest)
    stage.put_object("persistentvolumes", volume("local"))
    put_claim(stage, claim("p", "made"))
    for name in ("disk", "other"):
        put_claim(stage, claim(name))
    stage.pod("p", cpu="2", volumes=uses("p"))
    stage.pod("q", cpu="2")
    return stage


@pytest.fixture
def binder(stage: Stage) -> Term:
    return stage.serving(profile=PROFILE)


def uses(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def once(binder: Term, decision: Decision) -> BindAnswer:
    """What the decision is answered; then time for all that follows, so that what waits is at rest."""
    ticket = binder.ask(decision)
    binder.stage.pass_time(0.05)
    (answer,) = binder.answers(ticket)
    return answer


def claim_writes(binder: Term) -> int:
    return sum(write.subject == CLAIM for send in binder.sends for write in send.writes)


def test_the_claim_gets_the_node_first_without_a_binding(stage: Stage, binder: Term) -> None:
    answer = once(binder, stage.decide("p"))
    assert (answer.result, answer.cause) == ("waiting", "VolumeBinding")
    assert answer.reasons == ('binding volumes: waiting for the volumes of PVC "p" to be made',)
    assert [write.subject for write in binder.sends[-1].writes] == [CLAIM, subjects.FENCE]
    assert selected(stage, "p") == "n1"
    assert stage.stream.commits == []


def test_it_is_bound_when_its_volume_is_there(stage: Stage, binder: Term) -> None:
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    provision(stage, "p")
    stage.pass_time(0.011)
    assert stage.stream.live() == {"p": "n1"}
    assert once(binder, decision).result == "bound"
    assert claim_writes(binder) == 1


def test_a_volume_that_is_there_before_its_claim_is_complete_does_not_end_the_wait(stage: Stage, binder: Term) -> None:
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    document = stored(stage, "persistentvolumeclaims", "default", "p")
    document["spec"]["volumeName"] = "made-p"
    put_claim(stage, document)
    stage.pass_time(0.05)
    assert once(binder, decision).result == "waiting"
    made = volume("made-p", claim={"namespace": "default", "name": "p", "uid": "uid-p"})
    stage.put_object("persistentvolumes", made)
    stage.pass_time(0.05)
    assert once(binder, decision).result == "waiting"
    provision(stage, "p")
    stage.pass_time(0.011)
    assert once(binder, decision).result == "bound"


def test_the_room_is_kept_meanwhile(stage: Stage, binder: Term) -> None:
    assert once(binder, stage.decide("p")).result == "waiting"
    answer = once(binder, stage.decide("q"))
    assert (answer.result, answer.cause) == ("conflict", "fit")


def test_asked_again_it_says_so_at_once_and_writes_nothing(stage: Stage, binder: Term) -> None:
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    sends = len(binder.sends)
    ticket = binder.ask(decision, wait=False)
    assert [answer.result for answer in binder.answers(ticket)] == ["waiting"]
    stage.pass_time(1)
    assert len(binder.sends) == sends


def test_the_others_of_the_request_are_answered_without_it(stage: Stage, binder: Term) -> None:
    stage.node("n2")
    ticket = binder.ask(stage.decide("p"), stage.decide("q", node="n2"))
    assert [answer.result for answer in binder.answers(ticket)] == ["waiting", "bound"]


def test_after_its_time_it_is_refused_and_all_is_given_back_but_the_mark(stage: Stage, binder: Term) -> None:
    stage.pod("p", cpu="2", volumes=uses("p", "disk"))
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    stage.pod("r", cpu="2", volumes=uses("other"))
    stage.node("n2", cpu="2")
    (refused,) = binder.answers(binder.ask(stage.decide("r", node="n2")))
    # the only local volume is promised
    assert (refused.result, refused.cause) == ("conflict", "VolumeBinding")
    stage.pass_time(TIMEOUT_S - 1)
    assert once(binder, decision).result == "waiting"
    stage.pass_time(1.1)
    stage.pass_time(0.011)
    answer = once(binder, decision)
    assert (answer.result, answer.cause) == ("error", "VolumeBinding")
    assert "not done within 600 s" in answer.reasons
    assert once(binder, stage.decide("r")).result == "bound"
    assert selected(stage, "p") == "n1"


def test_what_it_gets_besides_is_bound_with_it_and_not_before(stage: Stage, binder: Term) -> None:
    stage.pod("p", cpu="2", volumes=uses("p", "disk"))
    assert once(binder, stage.decide("p")).result == "waiting"
    assert "claimRef" not in stored(stage, "persistentvolumes", "", "local")["spec"]
    provision(stage, "p")
    stage.pass_time(0.011)
    assert stage.stream.live() == {"p": "n1"}
    assert stored(stage, "persistentvolumes", "", "local")["spec"]["claimRef"]["name"] == "disk"


def lose(stage: Stage) -> None:
    put_claim(stage, stored(stage, "persistentvolumeclaims", "default", "p") | {"status": {"phase": "Lost"}})


def end(stage: Stage) -> None:
    document = stored(stage, "persistentvolumeclaims", "default", "p")
    document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    put_claim(stage, document)


def replace(stage: Stage) -> None:
    document = stored(stage, "persistentvolumeclaims", "default", "p")
    document["metadata"]["uid"] = "another"
    put_claim(stage, document)


def take(stage: Stage) -> None:
    reference = {"namespace": "x", "name": "y", "uid": "z"}
    stage.put_object("persistentvolumes", volume("local", claim=reference))


@pytest.mark.parametrize(
    ("what", "cause", "reason"),
    [
        pytest.param(
            lambda stage: fail(stage, "p"), "VolumeBinding", "provisioning failed for PVC", id="not made there"
        ),
        pytest.param(lose, "VolumeBinding", "has lost its volume", id="lost"),
        pytest.param(end, "VolumeBinding", "is being deleted", id="being deleted"),
        pytest.param(replace, "VolumeBinding", 'persistentvolumeclaim "p" not found', id="another of its name"),
        pytest.param(take, "VolumeBinding", 'pv "local" is bound to another claim', id="local volume taken"),
        pytest.param(lambda stage: stage.remove("nodes", "n1"), "nodeGone", "n1 does not exist", id="node gone"),
        pytest.param(lambda stage: stage.remove("pods", "p"), "podGone", "with this uid exists", id="pod gone"),
        pytest.param(lambda stage: stage.pod("p", deleting=True), "podGone", "being deleted", id="pod being deleted"),
    ],
)
def test_what_cannot_be_any_more_ends_the_wait(
    stage: Stage, binder: Term, what: Callable[[Stage], None], cause: str, reason: str
) -> None:
    stage.pod("p", cpu="2", volumes=uses("p", "disk"))
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    what(stage)
    stage.pass_time(0.011)
    answer = once(binder, decision)
    assert (answer.result in ("error", "conflict", "gone"), answer.cause) == (True, cause)
    assert reason in " ".join(answer.reasons)
    stage.node()
    stage.pod("s", cpu="2")
    assert once(binder, stage.decide("s")).result == "bound"


def test_a_successor_finds_the_mark_and_goes_on(stage: Stage, binder: Term) -> None:
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    successor = stage.term("binder-b", PROFILE).elect(2)
    assert once(successor, decision).result == "waiting"
    assert claim_writes(successor) == 0
    assert once(successor, stage.decide("q")).cause == "fit"
    provision(stage, "p")
    stage.pass_time(0.011)
    assert once(successor, decision).result == "bound"
    assert stage.stream.commits[-1].epoch == successor.core.keeper.epoch


def test_a_successor_binds_what_was_made_while_no_binder_looked(stage: Stage, binder: Term) -> None:
    decision = stage.decide("p")
    assert once(binder, decision).result == "waiting"
    stage.terms.remove(binder)
    provision(stage, "p")
    successor = stage.term("binder-b", PROFILE).elect(2)
    assert once(successor, decision).result == "bound"


def test_the_mark_is_written_only_by_who_holds_the_fence(stage: Stage, binder: Term) -> None:
    stage.move_fence("binder-b")
    ticket = binder.ask(stage.decide("p"))
    assert ticket not in binder.replies
    assert selected(stage, "p") is None
    assert len(binder.of(effects.StepDown)) == 1


def test_a_claim_that_changed_meanwhile_is_a_conflict(stage: Stage, binder: Term) -> None:
    binder.faults.append("hold")
    decision = stage.decide("p")
    ticket = binder.ask(decision, wait=False)
    stage.now += 0.011
    binder.step(effects.Tick())
    put_claim(stage, claim("p", "made") | {"more": [1]})
    for message in binder.release_held():
        binder.step(message)
    stage.pass_time(0.05)
    assert [(one.result, one.cause) for one in binder.answers(ticket)] == [("conflict", "PreBind")]
    assert once(binder, stage.decide("q")).result == "bound"


@pytest.mark.parametrize("fault", ["lost", "lost ack"])
def test_an_unclear_first_write_is_settled_and_written_once(stage: Stage, binder: Term, fault: str) -> None:
    binder.faults.append(fault)
    decision = stage.decide("p")
    ticket = binder.ask(decision)
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["waiting"]
    provision(stage, "p")
    stage.pass_time(0.011)
    assert stage.stream.live() == {"p": "n1"}


def test_pods_that_share_a_claim_wait_for_it_together(stage: Stage, binder: Term) -> None:
    stage.node(cpu="4")
    stage.pod("p2", cpu="2", volumes=uses("p"))
    ticket = binder.ask(stage.decide("p"), stage.decide("p2"))
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["waiting", "waiting"]
    assert claim_writes(binder) == 1
    provision(stage, "p")
    stage.pass_time(0.011)
    assert stage.stream.live() == {"p": "n1", "p2": "n1"}


def test_the_decision_tells_which_volumes_are_to_be_made(stage: Stage, binder: Term) -> None:
    decided = Decision(
        **{field: getattr(stage.decide("p"), field) for field in Decision.__struct_fields__}
        | {"volumes": (VolumeChoice(claim="p", volume=""),)}
    )
    assert once(binder, decided).result == "waiting"
    provision(stage, "p")
    stage.pass_time(0.011)
    assert once(binder, decided).result == "bound"
