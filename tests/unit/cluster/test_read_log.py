"""What a reader remembers of the messages that it has read."""

from podyard.cluster.read_log import KEPT, ReadLog


def test_a_message_is_known_by_its_number_and_its_time() -> None:
    log = ReadLog(remembers=True)
    for sequence in (3, 5, 8):
        log.note(sequence, 1000.5 + sequence)
    assert [sequence for sequence in range(10) if log.holds(sequence, 1000.5 + sequence)] == [3, 5, 8]
    assert not log.holds(5, 1000.5)


def test_a_message_that_is_repeated_counts_once() -> None:
    log = ReadLog(remembers=True)
    for sequence in (3, 5, 3, 5):
        log.note(sequence, float(sequence))
    assert (len(log), log.last, log.last_at) == (2, 5, 5.0)


def test_one_that_does_not_remember_knows_the_last_message_alone() -> None:
    log = ReadLog(remembers=False)
    log.note(3, 1.5)
    assert (log.last, log.last_at, len(log), log.holds(3, 1.5)) == (3, 1.5, 0, False)


def test_of_many_the_last_are_remembered_and_their_number_is_bounded() -> None:
    log = ReadLog(remembers=True)
    for sequence in range(1, 3 * KEPT):
        log.note(sequence, float(sequence))
        assert len(log) <= KEPT
    assert not log.holds(KEPT, float(KEPT))
    assert all(log.holds(sequence, float(sequence)) for sequence in range(3 * KEPT - KEPT // 2, 3 * KEPT))
