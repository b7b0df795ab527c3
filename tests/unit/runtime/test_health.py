from wsgiref.util import setup_testing_defaults

import prometheus_client
import pytest

from podyard.runtime import health as health_module
from podyard.runtime.health import Health
from podyard.runtime.http import application
from podyard.runtime.pages import Pages


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


@pytest.fixture
def get(health, registry):
    app = application(health, registry, Pages())

    def ask(path: str) -> tuple[int, str]:
        answers: list[str] = []
        environ: dict[str, object] = {}
        setup_testing_defaults(environ)
        environ["PATH_INFO"] = path
        body = b"".join(app(environ, lambda status, _headers: answers.append(status)))
        return int(answers[0].split()[0]), body.decode()

    return ask


def test_not_ready_before_any_check(get):
    assert get("/readyz") == (503, "not ready\n")


def test_ready_when_every_check_is(health, get):
    health.set_ready("nats", True)
    health.set_ready("view", False, "listing")
    assert get("/readyz") == (503, "[+] nats\n[-] view: listing\nnot ready\n")
    health.set_ready("view", True)
    assert get("/readyz") == (200, "[+] nats\n[+] view\nready\n")


def test_a_removed_check_no_longer_counts(health, get):
    health.set_ready("nats", True)
    health.set_ready("lease", False, "standby")
    health.remove("lease")
    assert get("/readyz")[0] == 200


def test_since_moves_only_when_the_answer_changes(registry):
    now = Clock()
    health = Health(stall_limit_s=10, registry=registry, now=now)
    health.set_ready("nats", False, "a")
    now.now = 200.0
    health.set_ready("nats", False, "b")
    assert health.checks["nats"].since == 100.0
    health.set_ready("nats", True)
    assert health.checks["nats"].since == 200.0


def test_a_stalled_loop_is_neither_alive_nor_ready(health, get, clock):
    health.set_ready("nats", True)
    assert get("/healthz") == (200, "ok\n")
    clock.now += 10.5
    assert get("/healthz") == (503, "the event loop has not run for 10.5 s\n")
    assert get("/readyz")[0] == 503
    health.tick()
    assert get("/healthz")[0] == 200


def test_metrics_are_shown(health, get):
    health.set_ready("nats", False)
    status, text = get("/metrics")
    assert status == 200
    assert 'podyard_ready{check="nats"} 0.0' in text


def test_other_paths_say_what_there_is(get):
    status, text = get("/")
    assert status == 404
    assert "/readyz" in text
