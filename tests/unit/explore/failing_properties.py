"""Properties that do not hold, for the tests of exploring: given to pytest by name, never collected
otherwise."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule


@given(st.lists(st.integers()))
def test_no_list_has_two_large_numbers(numbers: list[int]) -> None:
    assert sum(number > 1000 for number in numbers) < 2


class Counting(RuleBasedStateMachine):
    """Counts to three, which it must not."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @rule(by=st.integers(1, 2))
    def add(self, by: int) -> None:
        self.count += by
        assert self.count < 3


test_counting = Counting.TestCase


@given(st.integers())
def test_a_number_is_itself(number: int) -> None:
    assert number == number
