"""Decisions at positions that the view has not reached."""

from hypothesis import given
from hypothesis import strategies as st

from podyard.binder.core import ahead
from podyard.binder.core.ahead import Ahead
from podyard.binder.core.pending import Pending
from podyard.proto.binder_api import Decision


def decided(number: int, position: int, received_at: float = 0.0) -> Pending:
    decision = Decision(
        namespace="default",
        name=f"p{number}",
        uid=f"u{number}",
        attempt=f"1-{number}",
        node="n",
        number=number,
        position=position,
    )
    return Pending(decision, ("session", number), received_at, None)


def waiting(*positions: int) -> Ahead:
    found = Ahead()
    for number, position in enumerate(positions, start=1):
        found.add(decided(number, position, float(number)))
    return found


def numbers(found: list[Pending]) -> list[int]:
    return [pending.decision.number for pending in found]


def test_those_that_the_view_has_reached_come_in_the_order_in_which_they_came():
    there = waiting(30, 10, 20, 40)
    assert numbers(there.reached(30)) == [1, 2, 3]
    assert len(there.entries) == 1
    assert there.reached(39) == []
    assert numbers(there.reached(40)) == [4]


def test_those_that_came_long_ago_wait_no_more():
    there = waiting(100, 100, 5)
    assert numbers(there.received_before(2.0)) == [1, 2]
    assert numbers(there.reached(100)) == [3]
    assert len(there.entries) == 0


class Counted(int):
    """A position that counts how often it is looked at."""

    looks = 0

    def __le__(self, other: int) -> bool:
        Counted.looks += 1
        return int(self) <= other

    def __lt__(self, other: int) -> bool:
        Counted.looks += 1
        return int(self) < other


def test_a_look_costs_nothing_for_those_that_wait_on():
    there = Ahead()
    for number in range(1, 1001):
        pending = decided(number, 10**6, float(number))
        there.add(pending)
        there._by_position[-1] = (Counted(10**6), *there._by_position[-1][1:])
    Counted.looks = 0
    for position in range(100):
        assert there.reached(position) == []
        assert there.received_before(0.0) == []
    assert 100 <= Counted.looks <= 200


def test_those_that_have_gone_leave_nothing_behind():
    there = Ahead()
    for number in range(1, 10_001):
        there.add(decided(number, 10**9, float(number)))
        there.received_before(number - 100.0)
    assert len(there.entries) == 100
    assert len(there._by_position) <= 2 * len(there.entries) + ahead.SPARE + 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))))
def test_each_goes_once_and_only_when_it_may(steps: list[tuple[int, int, int]]):
    there, plain = Ahead(), dict[int, Pending]()
    for now, (wanted, position, limit) in enumerate(steps, start=1):
        plain[now] = decided(now, wanted, float(now))
        there.add(plain[now])
        reached = [number for number, pending in plain.items() if pending.decision.position <= position]
        assert numbers(there.reached(position)) == reached
        plain = {number: pending for number, pending in plain.items() if number not in reached}
        late = [number for number, pending in plain.items() if pending.received_at <= limit]
        assert numbers(there.received_before(limit)) == late
        plain = {number: pending for number, pending in plain.items() if number not in late}
    assert len(there.entries) == len(plain)
