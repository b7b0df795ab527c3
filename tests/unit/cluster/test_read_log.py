"""What a reader remembers of the messages that it has read."""

from podyard.cluster.read_log import KEPT, ReadLog


def test_a_message_is_known_by_its_number_and_its_time() -> None:
    log = ReadLog()
    for sequence in (3, 5, 8):
        log.note(sequence, 1000.5 + sequence)
    assert [sequence for sequence in range(10) if log.holds(sequence, 1000.5 + sequence)] == [3, 5, 8]
    assert not log.holds(5, 1000.5)


def test_a_new_listing_knows_nothing_of_what_was_read_before() -> None:
    log = ReadLog()
    log.note(3, 1.0)
    log.clear()
    assert not log.holds(3, 1.0)
    log.note(2, 2.0)
    assert log.holds(2, 2.0)


def test_of_many_the_last_are_remembered_and_their_number_is_bounded() -> None:
    log = ReadLog()
    for sequence in range(1, 3 * KEPT):
        log.note(sequence, float(sequence))
        assert len(log) <= KEPT
    assert not log.holds(KEPT, float(KEPT))
    assert all(log.holds(sequence, float(sequence)) for sequence in range(3 * KEPT - KEPT // 2, 3 * KEPT))
