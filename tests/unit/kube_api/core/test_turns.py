"""When watches send: at once while few do, in turn while many do, and none waits for long."""

from itertools import pairwise

import pytest

from podyard.kube_api.core.turns import GATHER_S, SENDS_A_SECOND, SENDS_AT_ONCE, Turns

SHARE_S = 1 / SENDS_A_SECOND


def test_whoever_sends_now_and_then_sends_at_once() -> None:
    turns = Turns()
    times = [1000.0 + number * 2 * SHARE_S for number in range(10_000)]
    assert [turns.take(now) for now in times] == times


def test_a_burst_goes_at_once_and_what_comes_after_it_in_turn() -> None:
    turns = Turns()
    taken = [turns.take(1000.0) for _ in range(SENDS_AT_ONCE + 5)]
    assert taken[:SENDS_AT_ONCE] == [1000.0] * SENDS_AT_ONCE
    late = taken[SENDS_AT_ONCE - 1 :]
    assert [after - before for before, after in pairwise(late)] == [pytest.approx(SHARE_S)] * 5


def test_many_who_always_have_something_to_send_share_the_sends_evenly() -> None:
    turns, watches = Turns(), 50
    free = dict.fromkeys(range(watches), 1000.0)
    sent = dict.fromkeys(free, 0)
    while min(free.values()) < 1010.0:
        watch = min(free, key=lambda one: free[one])
        free[watch] = turns.take(free[watch])
        sent[watch] += 1
    assert sum(sent.values()) == pytest.approx(10 * SENDS_A_SECOND, rel=0.01)
    assert max(sent.values()) - min(sent.values()) <= SENDS_AT_ONCE


def test_nobody_waits_longer_than_told_however_many_there_are() -> None:
    turns = Turns()
    waits = [turns.take(1000.0) - 1000.0 for _ in range(5000)]
    assert max(waits) == pytest.approx(GATHER_S)
    assert turns.take(1000.0 + GATHER_S + SENDS_AT_ONCE * SHARE_S) == 1000.0 + GATHER_S + SENDS_AT_ONCE * SHARE_S
