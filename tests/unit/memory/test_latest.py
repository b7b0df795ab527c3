"""The cache with a bound in number."""

import pytest

from podyard.memory.latest import Latest


def test_what_was_not_used_the_longest_time_goes_first() -> None:
    latest = Latest[str, int](3)
    for number, key in enumerate("abc"):
        assert latest.keep(key, number) == []
    latest.use("a")
    assert latest.get("b") == 1  # reading is no use
    assert latest.keep("d", 3) == [1]
    assert list(latest.items()) == [("c", 2), ("a", 0), ("d", 3)]


def test_a_key_kept_again_counts_once_and_is_the_one_used_last() -> None:
    latest = Latest[str, int](2)
    latest.keep("a", 1)
    latest.keep("b", 2)
    assert latest.keep("a", 3) == []
    assert latest.keep("c", 4) == [2]
    assert list(latest.items()) == [("a", 3), ("c", 4)]


def test_without_a_number_whoever_keeps_drops_the_oldest() -> None:
    latest = Latest[int, str]()
    for number in range(5000):
        latest.keep(number, "")
    latest.use(0)
    assert (len(latest), latest.oldest(), latest.pop_oldest(), latest.oldest()) == (5000, (1, ""), (1, ""), (2, ""))


def test_an_empty_one_has_no_oldest() -> None:
    latest = Latest[str, int](1)
    with pytest.raises(StopIteration):
        latest.oldest()
    with pytest.raises(KeyError):
        latest.pop_oldest()
    with pytest.raises(KeyError):
        latest.use("a")
