"""An extender that binds: it is asked once the node takes the pod, the room is kept meanwhile, and the commit
follows its answer."""

from typing import Any

import pytest

from podyard.binder.core import effects
from podyard.framework.extenders import Extender
from tests.unit.binder.stage import GATHER_S, Stage, Term, uid_of

BINDS_ALL = Extender(name="http://x")
BINDS_GPUS = Extender(name="http://x", managed_resources=frozenset({"example.com/gpu"}))


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node("n1", cpu="2")
    stage.pod("a", cpu="2")
    stage.pod("b", cpu="1")
    return stage


def asked(binder: Term) -> list[effects.AskToBind]:
    return binder.of(effects.AskToBind)


def ask(stage: Stage, binder: Term, *names: str, **more: Any) -> int:
    return binder.ask(*(stage.decide(name, **more) for name in names))


def say(stage: Stage, binder: Term, error: str = "") -> None:
    binder.step(effects.ExtenderAnswered(asked(binder)[-1].key, error))
    stage.pass_time(GATHER_S)


def test_the_commit_follows_the_extenders_answer(stage: Stage) -> None:
    binder = stage.term(extender=BINDS_ALL).elect()
    ticket = ask(stage, binder, "a")
    assert [(one.extender, one.pod.uid, one.node) for one in asked(binder)] == [("http://x", uid_of("a"), "n1")]
    assert stage.stream.live() == {}
    assert ticket not in binder.replies
    say(stage, binder)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound"]
    assert stage.stream.live() == {"a": "n1"}


def test_its_error_is_the_answer_and_the_room_is_free_again(stage: Stage) -> None:
    binder = stage.term(extender=BINDS_ALL).elect()
    ticket = ask(stage, binder, "a")
    say(stage, binder, "no such device")
    (answer,) = binder.answers(ticket)
    assert (answer.result, answer.cause, answer.reasons) == ("error", "Extender", ("no such device",))
    assert stage.stream.live() == {}
    assert binder.core.world.table.placed(uid_of("a")) is None


def test_the_room_is_kept_while_it_thinks(stage: Stage) -> None:
    binder = stage.term(extender=BINDS_ALL).elect()
    ticket = ask(stage, binder, "a")
    assert len(asked(binder)) == 1
    other = ask(stage, binder, "b")
    assert [answer.cause for answer in binder.answers(other)] == ["fit"]
    say(stage, binder)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound"]


def test_a_pod_that_is_none_of_its_business_is_bound_without_it(stage: Stage) -> None:
    binder = stage.term(extender=BINDS_GPUS).elect()
    ticket = ask(stage, binder, "b")
    assert not asked(binder)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound"]


def test_a_node_that_went_meanwhile_is_a_conflict(stage: Stage) -> None:
    binder = stage.term(extender=BINDS_ALL).elect()
    ticket = ask(stage, binder, "a")
    stage.remove("nodes", "n1")
    say(stage, binder)
    assert [answer.cause for answer in binder.answers(ticket)] == ["nodeGone"]
    assert stage.stream.live() == {}
