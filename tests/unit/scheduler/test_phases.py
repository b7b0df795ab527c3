"""Phases of an assumption: only the moves of the table, written in one place; what two facts say does not
depend on which came first."""

import ast
from itertools import permutations
from pathlib import Path

import pytest

from podyard.proto.binder_api import BindResult
from podyard.scheduler.core import assumptions
from podyard.scheduler.core.assumptions import MOVES, Assumption, Assumptions, Phase
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play
from tests.unit.scheduler.test_undone import Bench

CORE = Path(assumptions.__file__).parent


def decided(play: Play) -> Assumption:
    pod = make_pod("p")
    play.add(pod)
    play.schedule(pod)
    found = play.core._placing.assumptions.get(pod.uid)  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    return found


def test_a_move_that_is_not_in_the_table_raises():
    moves = {
        Phase.ASKED: Assumptions.permitted,
        Phase.WAITING: Assumptions.waits,
        Phase.ASKED_AGAIN: Assumptions.ask_again,
        Phase.SEEN: Assumptions.seen,
        Phase.BOUND: Assumptions.bound,
    }
    assert moves.keys() | {Phase.AT_PERMIT} == MOVES.keys() == set(Phase)
    found = decided(Play(make_node("a")))
    for phase in Phase:
        for to, move in moves.items():
            one = Assumptions()
            one.add(found)
            found.phase = phase
            if to in MOVES[phase]:
                move(one, found)
                assert found.phase is to
            else:
                with pytest.raises(AssertionError, match=f"{phase.name} -> {to.name}"):
                    move(one, found)


def test_one_function_writes_phases():
    writers = [
        (path.name, node.name)
        for path in CORE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute) and target.attr == "phase" and isinstance(target.ctx, ast.Store)
    ]
    assert writers == [("assumptions.py", "_move")]


SETTLING = (("waiting", "seen"), ("seen", "bound"), ("waiting", "seen", "bound"))
"""Facts of which the last one to be heard settles the binding."""


@pytest.mark.parametrize("order", [order for facts in SETTLING for order in permutations(facts)], ids=" ".join)
def test_a_binding_settles_whatever_is_heard_first(order: tuple[str, ...]):
    play = Play(make_node("a"))
    decision = decided(play).decision
    answers: dict[str, BindResult] = {"waiting": "waiting", "bound": "bound"}
    for fact in order:
        if fact == "seen":
            play.bind(decision)
        else:
            play.answer(decision, answers[fact])
    assert not play.core.is_unsettled(decision.uid)
    assert (play.core.waiting, play.core.unanswered) == (0, 0)
    assert [result.outcome for result in play.results("p")] == ["scheduled"]


def test_a_pod_whose_wait_at_permit_has_just_ended_is_an_open_attempt():
    bench = Bench()
    bench.wait()
    attempts = bench.play.core.open_attempts()
    for plugin in ("First", "Second"):
        bench.waiting.allow(bench.pod.uid, plugin)
    assert bench.play.core.open_attempts() == attempts != ()


def test_a_pod_that_goes_when_its_wait_at_permit_has_just_ended_is_asked_about_no_more():
    bench = Bench()
    bench.wait()
    for plugin in ("First", "Second"):
        bench.waiting.allow(bench.pod.uid, plugin)
    bench.play.delete(bench.pod)
    assert bench.play.work() == []
    assert [result.outcome for result in bench.play.results("p")] == ["error"]
