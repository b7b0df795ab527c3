"""The sizes of parked pods as columns: nobody who could fit is left out, and columns are bounded whatever
pods ask for."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podyard.plugins.node_resources_fit import room_index
from podyard.plugins.node_resources_fit.room_index import MOST_COLUMNS, RoomIndex
from tests.support import objects

RESOURCES = [f"example.com/r{number}" for number in range(5)]
SIZES = st.dictionaries(st.sampled_from(["cpu", *RESOURCES]), st.integers(1, 3), max_size=4).map(
    lambda size: tuple(sorted(size.items()))
)
ROOMS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 3), max_size=5)


def new_index() -> RoomIndex:
    return RoomIndex(lambda resource: False, lambda resource: False)


def node(cpu: int, room: dict[str, int]) -> Any:
    return objects.typed_node(cpu=f"{cpu}m", amounts={name: str(amount) for name, amount in room.items()})


def helped(sizes: set[Any], had: tuple[int, dict[str, int]], has: tuple[int, dict[str, int]]) -> set[Any]:
    """Sizes that fit the node as it is now, and want something of which it had less."""
    before, now = {"cpu": had[0], **had[1]}, {"cpu": has[0], **has[1]}
    return {
        size
        for size in sizes
        if all(amount <= now.get(name, 0) for name, amount in size)
        and any(now.get(name, 0) > before.get(name, 0) for name, _ in size)
    }


@pytest.mark.parametrize("columns", [2, MOST_COLUMNS])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.booleans(), SIZES), max_size=30),
    had=st.tuples(st.integers(0, 3), ROOMS),
    has=st.tuples(st.integers(0, 3), ROOMS),
)
def test_whoever_a_node_could_help_is_a_candidate(
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    steps: list[tuple[bool, Any]],
    had: tuple[int, dict[str, int]],
    has: tuple[int, dict[str, int]],
) -> None:
    """With a column for each resource nobody else is; with too few of them others are asked, too."""
    monkeypatch.setattr(room_index, "MOST_COLUMNS", columns)
    index, parked = new_index(), set[Any]()
    for comes, size in steps:
        if comes and size not in parked:
            index.add(size)
            parked.add(size)
        elif not comes and size in parked:
            index.remove(size)
            parked.remove(size)
    found = index.candidates(node(*had), node(*has))
    assert found is not None
    found = list(found)
    assert len(found) == len(set(found))
    assert set(found) <= parked
    assert set(found) >= helped(parked, had, has)
    if columns == MOST_COLUMNS:
        assert set(found) == helped(parked, had, has)


def test_columns_are_bounded_and_go_with_the_last_who_wants_them() -> None:
    index = new_index()
    sizes = [((f"example.com/r{number}", 1),) for number in range(10_000)]
    for size in sizes:
        index.add(size)
    assert len(index._columns) == MOST_COLUMNS  # pyright: ignore[reportPrivateUsage] - what is bounded
    for size in sizes:
        index.remove(size)
    assert index._columns == {}  # pyright: ignore[reportPrivateUsage]
    index.add(sizes[-1])
    assert list(index.candidates(None, node(1, {"example.com/r9999": 1})) or ()) == [sizes[-1]]
    assert list(index.candidates(None, node(1, {"example.com/r9998": 1})) or ()) == []
