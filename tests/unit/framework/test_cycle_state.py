"""What a plugin finds or makes is made once a cycle."""

from podyard.framework.cycle_state import CycleState, StateKey

KEY = StateKey[str]("KEY")


def test_what_was_written_is_found_and_not_made_again() -> None:
    state = CycleState()
    state.write(KEY, "written")
    assert state.find_or_make(KEY, str.upper, "made") == "written"


def test_what_is_made_is_found_the_next_time() -> None:
    state = CycleState()
    assert state.find_or_make(KEY, str.upper, "first") == "FIRST"
    assert state.find_or_make(KEY, str.upper, "second") == "FIRST"
    assert state.find(KEY) == "FIRST"
