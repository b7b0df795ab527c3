"""The steady clock: whatever the wall clock does, a second of it takes nearly a second, and it never goes
back."""

from collections.abc import Callable

import pytest

from podyard.runtime.clock import LOOK_EVERY_S, SLEW, Clock

NOON = 1_700_000_000.0
HOUR_S = 3600.0
ROUNDING_S = 1e-5


class Host:
    """A machine's clocks, which tests set."""

    def __init__(self) -> None:
        self.uptime = 500.0
        self.ahead_s = 0.0
        """By how much somebody has set the wall clock."""

    def wall(self) -> float:
        return NOON + self.uptime - 500.0 + self.ahead_s

    def steady(self) -> float:
        return self.uptime

    def later(self, seconds: float) -> None:
        self.uptime += seconds


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def clock(host: Host) -> Clock:
    return Clock(host.wall, host.steady)


def lengths(host: Host, now: Callable[[], float], step_s: float, times: int) -> list[float]:
    """How long each of these steps was on the clock, as a share of its real length."""
    found, before = list[float](), now()
    for _ in range(times):
        host.later(step_s)
        found.append((now() - before) / step_s)
        before = now()
    return found


def test_it_shows_the_wall_clocks_time_while_nobody_sets_that(host: Host, clock: Clock) -> None:
    for _ in range(50):
        host.later(0.3)
        assert clock.now() == pytest.approx(host.wall(), abs=ROUNDING_S)
    assert clock.behind_s() == pytest.approx(0.0, abs=ROUNDING_S)


@pytest.mark.parametrize("set_by_s", [-HOUR_S, HOUR_S])
@pytest.mark.parametrize("step_s", [0.05, 0.7, 1.0, 30.0, 600.0])
def test_a_wall_clock_set_by_an_hour_neither_stalls_nor_hastens_it(
    host: Host, clock: Clock, set_by_s: float, step_s: float
) -> None:
    host.ahead_s = set_by_s
    shares = lengths(host, clock.now, step_s, 200)
    assert min(shares) >= 1.0 - SLEW - ROUNDING_S / step_s
    assert max(shares) <= 1.0 + SLEW + ROUNDING_S / step_s


@pytest.mark.parametrize("set_by_s", [-10.0, 10.0])
@pytest.mark.parametrize("step_s", [0.05, 7.0])
def test_it_is_drawn_to_the_wall_clock_and_stays_there(
    host: Host, clock: Clock, set_by_s: float, step_s: float
) -> None:
    host.ahead_s = set_by_s
    needed_s = 10.0 / SLEW
    lengths(host, clock.now, step_s, int(needed_s / 2 / step_s))
    assert abs(clock.behind_s()) == pytest.approx(5.0, abs=step_s + LOOK_EVERY_S)
    lengths(host, clock.now, step_s, int((needed_s / 2 + 3 * LOOK_EVERY_S) / step_s) + 1)
    for _ in range(20):
        host.later(step_s)
        assert clock.now() == pytest.approx(host.wall(), abs=ROUNDING_S)


def test_a_clock_that_begins_takes_the_wall_clocks_time_at_once(host: Host) -> None:
    host.ahead_s = HOUR_S
    assert Clock(host.wall, host.steady).now() == host.wall()


def test_how_far_the_wall_clock_is_ahead_can_be_seen(host: Host, clock: Clock) -> None:
    host.ahead_s = -HOUR_S
    assert clock.behind_s() == pytest.approx(-HOUR_S, abs=ROUNDING_S)
