"""The cache with a bound in bytes."""

import tracemalloc

from podyard.memory.kept import ENTRY_BYTES, Kept


def keys(kept: "Kept[str, int]") -> list[str]:
    return list(kept)


def test_what_was_not_used_the_longest_time_goes_first() -> None:
    kept = Kept[str, int](3 * ENTRY_BYTES)
    for number, key in enumerate("abc"):
        assert kept.keep(key, number) == []
    kept.use("a")
    assert kept.keep("d", 3) == [1]
    assert keys(kept) == ["c", "a", "d"]
    assert (kept.get("b"), kept.get("a")) == (None, 0)


def test_bytes_count_not_entries() -> None:
    kept = Kept[str, int](10 * ENTRY_BYTES)
    for number, key in enumerate("abc"):
        kept.keep(key, number, 2 * ENTRY_BYTES)
    assert kept.keep("large", 9, 6 * ENTRY_BYTES) == [0, 1]
    assert (keys(kept), kept.bytes) == (["c", "large"], 10 * ENTRY_BYTES)


def test_a_value_larger_than_all_is_not_kept() -> None:
    kept = Kept[str, int](2 * ENTRY_BYTES)
    assert kept.keep("huge", 1, 2 * ENTRY_BYTES) == [1]
    assert (len(kept), kept.bytes, kept.get("huge")) == (0, 0, None)


def test_the_fewest_stay_whatever_they_take() -> None:
    kept = Kept[str, int](ENTRY_BYTES, fewest=2)
    for number, key in enumerate("abc"):
        kept.keep(key, number, 100 * ENTRY_BYTES)
    assert keys(kept) == ["b", "c"]


def test_a_key_kept_again_counts_once() -> None:
    kept = Kept[str, int](10 * ENTRY_BYTES)
    kept.keep("a", 1, 100)
    kept.keep("b", 2)
    kept.keep("a", 3, 50)
    assert (keys(kept), kept.get("a"), kept.bytes) == (["b", "a"], 3, 2 * ENTRY_BYTES + 50)
    assert (kept.pop("a"), kept.pop("a"), kept.bytes) == (3, None, ENTRY_BYTES)
    kept.clear()
    assert (len(kept), kept.bytes) == (0, 0)


def test_an_entry_takes_no_more_than_is_said() -> None:
    texts = [f"{number:06}" for number in range(20_000)]
    kept = Kept[str, None](1 << 40)
    tracemalloc.start()
    try:
        for text in texts:
            kept.keep(text, None, len(text))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.bytes * 0.3 < taken < kept.bytes
