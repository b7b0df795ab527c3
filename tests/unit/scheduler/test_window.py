"""How many decisions may be with the binder at once, by what it refuses."""

from collections.abc import Iterator

import pytest

from podyard.proto.binder_api import BindAnswer, BindResult
from podyard.scheduler import window
from podyard.scheduler.window import Window

MOST = 256


def answers(result: BindResult, count: int) -> Iterator[BindAnswer]:
    return (BindAnswer(attempt=f"1-{number}", uid=str(number), result=result) for number in range(count))


def test_without_conflicts_it_is_as_large_as_it_may_be():
    one = Window(MOST)
    for _ in range(20):
        one.asked(one.room)
        assert one.room == 0
        one.answered(answers("bound", MOST))
        assert (one.size, one.room) == (MOST, MOST)


def test_what_is_under_way_takes_room_until_it_is_answered_whatever_the_answer():
    one = Window(MOST)
    one.asked(200)
    assert one.room == 56
    one.answered([*answers("gone", 30), *answers("error", 20), *answers("alreadyBound", 10)])
    assert one.room == 56 + 60


def test_conflicts_make_it_smaller_and_never_smaller_than_the_fewest():
    one = Window(MOST)
    one.asked(MOST)
    one.answered(answers("conflict", 2))
    assert one.size == MOST // 4
    assert one.room == 0, "what was asked before is still under way"
    one.answered(answers("conflict", MOST - 2))
    assert (one.size, one.room) == (window.FEWEST, window.FEWEST)


def test_it_grows_back_within_a_few_hundred_answers():
    one = Window(MOST)
    one.asked(1000)
    one.answered(answers("conflict", 100))
    one.answered(answers("bound", 150))
    assert window.FEWEST < one.size < MOST
    one.answered(answers("bound", 210))
    assert one.size == MOST


@pytest.mark.parametrize("every", [30, 50, 80])
def test_the_conflict_rate_at_which_it_keeps_its_size(every: int):
    """It grows if conflicts are rarer than that, and shrinks if they are more frequent."""
    one = Window(100_000)
    one.asked(1_000_000)
    one.answered(answers("conflict", 7))
    before = one.size
    for _ in range(10):
        one.answered([*answers("bound", every - 1), *answers("conflict", 1)])
    if every == 50:
        assert one.size == pytest.approx(before, rel=0.2)
    else:
        assert (one.size > before * 2) is (every > 50)
        assert (one.size < before / 2) is (every < 50)


def test_a_request_is_not_begun_for_a_pod_or_two_while_others_are_under_way():
    one = Window(MOST)
    one.asked(MOST - window.WORTH_ASKING + 1)
    assert one.room == 0
    one.answered(answers("bound", 1))
    assert one.room == window.WORTH_ASKING


def test_a_small_cluster_has_less_under_way_from_the_beginning_and_a_request_is_always_worth_it():
    one = Window(MOST)
    sizes: list[int] = []
    for nodes in (8, 100, 5000):
        one.spread_over(nodes)
        sizes.append(one.size)
    assert sizes == [window.WORTH_ASKING, 25, MOST]
    one.spread_over(100)
    one.asked(20)
    assert one.room == 0
    one.answered([*answers("bound", 6), *answers("conflict", 4)])
    assert one.size == MOST // 16, "what conflicts ask for counts if it is less"
