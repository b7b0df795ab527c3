"""Deletion markers are remembered as long as they matter, and in bounded memory."""

import tracemalloc

from podyard.cluster.markers import ENTRY_BYTES, MarkerMemory
from podyard.cluster.read_log import ReadLog
from podyard.cluster.tables import Tables


def test_a_marker_is_forgotten_after_twice_its_own_time() -> None:
    memory = MarkerMemory()
    memory.mark("a", 1000.0, 60)
    assert memory.mark("b", 1119.0, 60) == []
    assert memory.mark("c", 1121.0, 60) == ["a"]


def test_more_than_fits_forgets_the_oldest() -> None:
    memory = MarkerMemory(most_bytes=3 * (ENTRY_BYTES + 1))
    for key in "abc":
        assert memory.mark(key, 0.0) == []
    assert memory.mark("d", 0.0) == ["a"]
    assert (len(memory), memory.bytes) == (3, 3 * (ENTRY_BYTES + 1))
    assert not memory.unmark("a")
    assert memory.unmark("b")
    assert memory.bytes == 2 * (ENTRY_BYTES + 1)


def test_a_marker_takes_no_more_than_is_said() -> None:
    """Together with the version that its keeper holds under the same key."""
    count, tables = 20_000, Tables(ReadLog(remembers=False))
    tracemalloc.start()
    try:
        for number in range(count):
            subject = f"cluster.pods.default.pod-{number:06}"
            tables.succeeds(subject, 100_000 + number, None)
            tables.mark(subject, 1000.0 + number / 1000, 60)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    said = count * (ENTRY_BYTES + 30)
    assert said * 0.5 < taken < said
