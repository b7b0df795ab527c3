"""Decisions of somebody else's scheduler: judged and committed like any other."""

import msgspec
import pytest

from podyard.framework.extenders import Extender
from podyard.plugins.defaults import default_profile
from podyard.proto.binder_api import BindAnswer, Decision
from tests.unit.binder.stage import Stage, Term


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="1")
    stage.pod("a", schedulerName="theirs")
    stage.pod("b", schedulerName="theirs")
    return stage


def foreign(stage: Stage, name: str, **changed: object) -> Decision:
    decision = stage.decide(name, attempt=f"k-{name}")
    return msgspec.structs.replace(decision, **{"foreign": True, "profile": "theirs", **changed})


def answer_of(binder: Term, decision: Decision) -> BindAnswer:
    (answer,) = binder.answers(binder.ask(decision, session="kube_api-1"))
    return answer


def test_a_profile_that_nobody_has_is_judged_by_the_default_one(stage: Stage) -> None:
    binder = stage.serving()
    assert answer_of(binder, foreign(stage, "a")).result == "bound"
    full = answer_of(binder, foreign(stage, "b"))
    assert (full.result, full.reasons) == ("conflict", ("Insufficient cpu",))
    assert stage.stream.live() == {"a": "n1"}


def test_without_a_default_profile_the_first_judges(stage: Stage) -> None:
    binder = stage.serving(profile=default_profile("mine"))
    assert answer_of(binder, foreign(stage, "a")).result == "bound"


def test_a_profile_that_nobody_has_is_an_error_of_ones_own_scheduler(stage: Stage) -> None:
    decision = foreign(stage, "a", foreign=False)
    assert answer_of(stage.serving(), decision).cause == "profile"


def test_no_extender_is_asked_to_bind_what_another_scheduler_has_decided(stage: Stage) -> None:
    binder = stage.term(extender=Extender(name="http://x")).elect()
    assert answer_of(binder, foreign(stage, "a")).result == "bound"


def test_a_gated_pod_is_not_bound(stage: Stage) -> None:
    stage.pod("gated", schedulingGates=[{"name": "example.com/gate"}])
    answer = answer_of(stage.serving(), foreign(stage, "gated"))
    assert (answer.result, answer.cause) == ("conflict", "SchedulingGates")
