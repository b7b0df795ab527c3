import prometheus_client
import pytest

from podyard.runtime import health as health_module
from podyard.runtime.health import Health
from podyard.runtime.probes import Found

LOOP = Found("loop", True)
PING = Found("ping", True)


class Clock:
    """A monotonic clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(health_module.time, "monotonic", found)
    return found


@pytest.fixture
def registry():
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def health(clock, registry):
    return Health(stall_limit_s=10, registry=registry)


def test_not_ready_before_any_check(health):
    assert not health.ready
    assert health.readiness() == [LOOP, Found("running", False, "nothing is known yet")]


def test_ready_when_every_check_is(health):
    health.set_ready("view", False, "listing")
    health.set_ready("nats", True)
    assert not health.ready
    assert health.readiness() == [LOOP, Found("nats", True), Found("view", False, "listing")]
    health.set_ready("view", True)
    assert health.ready
    assert all(check.ok for check in health.readiness())


def test_a_removed_check_no_longer_counts(health):
    health.set_ready("nats", True)
    health.set_ready("lease", False, "standby")
    health.remove("lease")
    assert health.readiness() == [LOOP, Found("nats", True)]


def test_since_moves_only_when_the_answer_changes(registry):
    now = Clock()
    health = Health(stall_limit_s=10, registry=registry, now=now)
    health.set_ready("nats", False, "a")
    now.now = 200.0
    health.set_ready("nats", False, "b")
    assert health.checks["nats"].since == 100.0
    health.set_ready("nats", True)
    assert health.checks["nats"].since == 200.0


def test_who_is_not_ready_lives(health):
    health.set_ready("nats", False, "no contact")
    assert health.life() == [PING, LOOP]


def test_a_stalled_loop_is_neither_alive_nor_ready(health, clock):
    health.set_ready("nats", True)
    clock.now += 10.5
    stalled = Found("loop", False, "it has not run for 10.5 s")
    assert health.life() == [PING, stalled]
    assert health.readiness() == [stalled, Found("nats", True)]
    health.tick()
    assert health.life() == [PING, LOOP]


def test_a_watch_is_asked_each_time_and_counts_for_both(health):
    troubles = ["", "still leads", "still leads"]
    health.set_ready("nats", True)
    health.watch("leaderElection", lambda: troubles.pop(0))
    assert health.life() == [PING, LOOP, Found("leaderElection", True)]
    assert health.life() == [PING, LOOP, Found("leaderElection", False, "still leads")]
    assert health.readiness()[0] == Found("leaderElection", False, "still leads")


def test_checks_are_metrics(health, registry):
    health.set_ready("nats", False)
    assert registry.get_sample_value("podyard_ready", {"check": "nats"}) == 0
