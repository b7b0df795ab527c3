"""Events that wait to be sent: so many, so many a second, each once."""

from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.shell.event_outbox import A_SECOND, MOST, Outbox


def event(number: int, count: int = 1) -> K8sEvent:
    about = ObjectRef(resource="pods", namespace="default", name="web")
    return K8sEvent(regarding=about, reason="Killed", reporter="test", at=1.0, id=f"{number}", count=count)


def filled(number: int) -> Outbox:
    outbox = Outbox()
    for at in range(number):
        outbox.put(event(at))
    return outbox


def ids(events: list[K8sEvent]) -> list[str]:
    return [one.id for one in events]


def test_no_more_than_fifty_are_taken_within_a_second() -> None:
    outbox = filled(120)
    assert ids(outbox.take(10.0)) == [f"{at}" for at in range(A_SECOND)]
    assert outbox.take(10.9) == []
    assert outbox.due_at(10.9) == 11.0
    assert ids(outbox.take(11.0)) == [f"{at}" for at in range(A_SECOND, 2 * A_SECOND)]
    assert len(outbox) == 20


def test_those_that_were_taken_little_by_little_come_free_little_by_little() -> None:
    outbox = filled(20)
    outbox.take(10.0)
    for at in range(100, 180):
        outbox.put(event(at))
    assert len(outbox.take(10.5)) == 30
    assert outbox.due_at(10.6) == 11.0
    assert len(outbox.take(11.0)) == 20
    assert outbox.due_at(11.0) == 11.5


def test_one_that_happens_again_while_it_waits_is_sent_once_with_its_last_count() -> None:
    outbox = filled(2)
    outbox.put(event(0, count=2))
    assert [(one.id, one.count) for one in outbox.take(10.0)] == [("0", 2), ("1", 1)]


def test_of_too_many_the_oldest_are_dropped() -> None:
    outbox = filled(MOST)
    assert outbox.put(event(MOST)) == 1
    assert len(outbox) == MOST
    assert outbox.take(10.0)[0].id == "1"


def test_what_is_given_back_comes_first_and_never_over_a_newer_count() -> None:
    outbox = filled(3)
    taken = outbox.take(10.0)
    outbox.put(event(7))
    outbox.put(event(1, count=2))
    assert outbox.give_back(taken) == 0
    assert [(one.id, one.count) for one in outbox.take(12.0)] == [("0", 1), ("2", 1), ("7", 1), ("1", 2)]


def test_what_is_given_back_beyond_the_bound_is_dropped() -> None:
    outbox = filled(A_SECOND)
    taken = outbox.take(10.0)
    for at in range(1000, 1000 + MOST):
        outbox.put(event(at))
    assert outbox.give_back(taken) == A_SECOND
    assert len(outbox) == MOST
