"""What every core keeps to, whichever it is.

A core joins by a case of its own in `CASES`.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.cores import binder, census, descheduler, host, node_agent, node_life, queue, scheduler, workloads
from tests.contract.cores.recording import Case, Tape, Told, play, record

CASES = (
    workloads.CASE,
    census.CASE,
    node_life.CASE,
    binder.CASE,
    scheduler.CASE,
    queue.CASE,
    descheduler.CASE,
    node_agent.CASE,
    host.CASE,
)
EVERY = 5
"""Of so many moments one is looked at closely: each costs the play up to it."""
LATE_S = 60.0


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def moments(tape: Tape) -> Iterator[tuple[int, Told]]:
    """Some of the moments at which the core was told something."""
    told = [(index, one) for index, one in enumerate(tape) if isinstance(one, Told)]
    yield from told[::EVERY]
    yield told[-1]


def up_to(case: Case, tape: Tape, index: int) -> Any:
    """A core that was told the tape up to and including an entry."""
    core, view = case.begin()
    for one in tape[: index + 1]:
        play(one, core, view)
    return core


def test_the_play_has_the_core_do_and_ask_something(case: Case) -> None:
    told = [one for one in record(case) if isinstance(one, Told)]
    assert sum(1 for one in told if one.wanted) > 10
    assert {*case.answers} <= {type(one.message) for one in told}


def test_the_same_messages_give_the_same_effects(case: Case) -> None:
    tape = record(case)
    core, view = case.begin()
    for one in tape:
        wanted = play(one, core, view)
        if isinstance(one, Told):
            assert wanted == one.wanted, one.message


def test_nothing_is_due_before_wake_at(case: Case) -> None:
    """A tick that comes early finds nothing to do, and changes nothing of what comes later."""
    tape = record(case)
    core, view = case.begin()
    told = [one for one in tape if isinstance(one, Told)]
    until = {id(one): later.now for one, later in itertools.pairwise(told)}
    for one in tape:
        wanted = play(one, core, view)
        if not isinstance(one, Told):
            continue
        assert wanted == one.wanted, one.message
        due = core.wake_at
        end = min(until.get(id(one), one.now + LATE_S), float("inf") if due is None else due)
        for part in (0.1, 0.5, 0.99):
            moment = one.now + part * (end - one.now)
            assert not (one.now < moment < end and core.step(case.tick, moment)), (one.message, part)


@pytest.mark.parametrize("late_s", [0.0, LATE_S])
def test_what_is_due_is_done_at_the_tick_however_late_it_comes(case: Case, late_s: float) -> None:
    """It asks for another one only for later, so that nobody ticks in vain for ever."""
    tape = record(case)
    ticked = 0
    for index, one in moments(tape):
        core = up_to(case, tape, index)
        if core.wake_at is None or core.wake_at == float("inf"):
            continue
        now = max(one.now, core.wake_at) + late_s
        core.step(case.tick, now)
        ticked += 1
        assert core.wake_at is None or core.wake_at > now, one.message
    assert ticked > 3


@pytest.mark.parametrize("case", [case for case in CASES if case.answers], ids=str, indirect=True)
def test_an_answer_to_what_is_settled_changes_nothing(case: Case) -> None:
    tape = record(case)
    core, view = case.begin()
    for one in tape:
        wanted = play(one, core, view)
        if isinstance(one, Told):
            assert wanted == one.wanted, one.message
            if isinstance(one.message, case.answers):
                assert not core.step(one.message, one.now), one.message


@pytest.mark.parametrize("case", [case for case in CASES if case.deposed], ids=str, indirect=True)
def test_who_has_stepped_down_says_nothing_more(case: Case) -> None:
    tape = record(case, case.deposed)
    core, view = case.begin()
    for one in tape:
        wanted = play(one, core, view)
        if wanted and any(effect[0] == "StepDown" for effect in wanted):
            break
    else:
        raise AssertionError("it did not step down")
    assert core.wake_at is None
    told = [one for one in tape if isinstance(one, Told)]
    for one in told:
        assert not core.step(one.message, told[-1].now), one.message
    assert not core.step(case.tick, told[-1].now + LATE_S)
