"""The room of nodes: exact whatever is stored, and no larger than what is stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.cluster.room import CPU, FIRST_RESOURCES, MEMORY, MOST_LINES, RAIL, Room
from podyard.proto.placement import Usage

ROWS = 64
LARGEST = 2**63 - 1


def takes(**amounts: int) -> Usage:
    return Usage(requests={name.replace("_", "/"): amount for name, amount in amounts.items()})


def test_a_sum_beyond_int64_is_exact_in_the_books_and_at_the_rail_in_its_column() -> None:
    room = Room(ROWS)
    for _ in range(3):
        room.add(5, takes(memory=LARGEST), 1)
    assert room.taken(5).requests == {"memory": 3 * LARGEST}
    assert room.requested[MEMORY, 5] == RAIL


def test_what_goes_leaves_exactly_what_was_before() -> None:
    room = Room(ROWS)
    room.add(5, takes(memory=12), 1)
    for sign in (1, -1):
        room.add(5, takes(memory=LARGEST), sign)
    assert room.requested[MEMORY, 5] == 12


@pytest.mark.parametrize("assumed", [LARGEST, 2**62])
def test_what_scoring_assumes_does_not_wrap_either(assumed: int) -> None:
    room = Room(ROWS)
    huge = Usage(nonzero_cpu_milli=assumed, nonzero_memory_bytes=assumed)
    for _ in range(4):
        room.add(5, huge, 1)
    assert (room.nonzero[CPU, 5], room.nonzero[MEMORY, 5]) == (RAIL, RAIL)
    for _ in range(4):
        room.add(5, huge, -1)
    assert (room.nonzero[CPU, 5], room.nonzero[MEMORY, 5]) == (0, 0)


def test_a_node_that_has_less_than_nothing_has_nothing() -> None:
    room = Room(ROWS)
    room.set_allocatable(5, {"cpu": "-3", "memory": "1", "pods": "110"})
    assert room.whole(5) == {"memory": 1}
    assert room.allocatable[CPU, 5] == 0


AMOUNTS = st.dictionaries(
    st.sampled_from(("cpu", "memory", "example.com/gpu")), st.sampled_from((0, 1, 2, LARGEST)), max_size=3
)


@given(AMOUNTS, st.lists(AMOUNTS, max_size=3), AMOUNTS)
def test_a_row_holds_what_fits_by_its_columns(
    whole: dict[str, int], placed: list[dict[str, int]], wanted: dict[str, int]
) -> None:
    room = Room(ROWS)
    amounts = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in whole.items()}
    room.set_allocatable(5, amounts)
    for requests in placed:
        room.add(5, Usage(requests=requests), 1)
    fits = True
    for name, amount in wanted.items():
        line = room.line(name)
        left = 0 if line is None else int(room.allocatable[line, 5]) - int(room.requested[line, 5])
        fits = fits and (not amount or amount <= left)
    assert room.holds(5, Usage(requests=wanted)) == fits


def test_resources_that_nobody_asks_for_take_no_columns() -> None:
    room = Room(ROWS)
    room.add(5, Usage(requests={f"example.com/r{number}": 1 for number in range(7000)}), 1)
    assert room.line_of == {name: line for line, name in enumerate(FIRST_RESOURCES)}
    assert room.line("example.com/r6999") is not None
    assert len(room.requested) <= 2 * len(FIRST_RESOURCES)


def test_lines_are_bounded_and_right_whichever_is_made_again() -> None:
    room = Room(ROWS)
    names = [f"example.com/r{number}" for number in range(4 * MOST_LINES)]
    room.add(5, Usage(requests={name: number + 1 for number, name in enumerate(names)}), 1)
    room.set_allocatable(7, dict.fromkeys(names, "9"))
    for _ in range(2):
        for number, name in enumerate(names):
            line = room.line(name)
            assert line is not None
            assert room.requested[line].tolist() == [number + 1 if row == 5 else 0 for row in range(ROWS)]
            assert room.allocatable[line].tolist() == [9 if row == 7 else 0 for row in range(ROWS)]
    assert room.requested.shape == (MOST_LINES, ROWS)
    assert [room.line_of[name] for name in FIRST_RESOURCES] == [0, 1, 2]


def test_the_line_of_a_resource_that_nobody_has_any_more_is_used_for_another() -> None:
    room = Room(ROWS)
    for number in range(10_000):
        name = f"example.com/r{number}"
        room.set_allocatable(3, {name: "2"})
        line = room.line(name)
        assert line is not None
        assert room.allocatable[line, 3] == 2
        assert np.count_nonzero(room.allocatable) == 1
    assert len(room.allocatable) <= 2 * len(FIRST_RESOURCES)
    assert len(room.line_of) == len(FIRST_RESOURCES) + 1
