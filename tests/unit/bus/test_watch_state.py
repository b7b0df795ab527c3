"""The states of a watch, and who writes them."""

import re
from pathlib import Path

import pytest

import podyard.bus.watch
from podyard.bus.watch_state import NEXT, ImpossibleStepError, State, step


def test_every_state_is_reached_and_every_reading_ends() -> None:
    assert NEXT.keys() == set(State)
    reached, seen = {State.IDLE}, set[State]()
    while reached - seen:
        state = (reached - seen).pop()
        seen.add(state)
        reached |= NEXT[state]
    assert reached == set(State)
    for state in set(State) - {State.IDLE, State.BROKEN}:
        assert NEXT[state] >= {State.BROKEN, State.IDLE}


def test_a_broken_reading_is_not_mended_but_begun_anew() -> None:
    assert NEXT[State.BROKEN] == {State.IDLE}
    assert NEXT[State.IDLE] == {State.OPENING}


def test_a_step_that_the_table_does_not_know_is_a_bug() -> None:
    assert step(State.IDLE, State.OPENING) is State.OPENING
    with pytest.raises(ImpossibleStepError, match="from IDLE to FOLLOWING"):
        step(State.IDLE, State.FOLLOWING)


def test_one_function_writes_the_state() -> None:
    text = Path(podyard.bus.watch.__file__).read_text(encoding="utf-8")
    assert re.findall(r"self\._state = (.*)", text) == ["State.IDLE", "step(self._state, state)"]
