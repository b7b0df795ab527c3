"""LowNodeUtilization by a query of Prometheus: a real server on the loopback address, and what it may do
wrong."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from podyard.bus import Bus
from podyard.descheduler import making, prometheus
from podyard.descheduler.settings import DeschedulerSettings
from podyard.descheduler.term import CYCLE
from podyard.runtime.settings import ServiceSettings, SettingsError
from tests.contract.descheduler.test_descheduler import bound, deleted, service_of, stage, without_api, write_policy
from tests.contract.node_agent.stage import Stage
from tests.support.services import running
from tests.support.waiting import eventually

__all__ = ["stage", "without_api", "write_policy"]

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders:
- source: Prometheus
  prometheus: {{url: '{url}'{token}}}
profiles:
- name: usage
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {{MetricResource: 20}}
      targetThresholds: {{MetricResource: 50}}
      metricsUtilization: {{source: Prometheus, prometheus: {{query: 'rate(cpu[5m]) + 1'}}}}
      evictionLimits: {{node: 1}}
  - name: PodLifeTime
    args: {{maxPodLifeTimeSeconds: {age}}}
  plugins:
    deschedule: {{enabled: [PodLifeTime]}}
    balance: {{enabled: [LowNodeUtilization]}}
"""

LONG = 10**12
"""Seconds: no pod is so old."""

Answer = Callable[[float], Any]
"""From the time of the question to what is answered: something JSON-able, bytes, a status code, or parts
without an end."""


class Server:
    """A Prometheus that answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Answer = vector
        self.asked: list[tuple[str, str, str | None]] = []
        """Path, query and what came as Authorization."""


@contextmanager
def serving() -> Iterator[Server]:
    found = Server()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            found.asked.append((self.path, form["query"][0], self.headers["Authorization"]))
            answer = found.answer(float(form["time"][0]))
            if answer is None:
                ended.wait(10)
                return
            status, payload = (answer, b"") if isinstance(answer, int) else (200, answer)
            if isinstance(payload, tuple):
                status, payload = payload
            self.send_response(status)
            self.end_headers()
            self.wfile.write(payload if isinstance(payload, bytes) else json.dumps(payload).encode())

        def log_message(self, *args: Any) -> None:
            del args

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Clients hang up when they have waited or read enough."""

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield found
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def vector(at: float, **shares: str) -> dict[str, Any]:
    result = [{"metric": {"instance": node}, "value": [at, share]} for node, share in shares.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


async def cycle(bus: Bus, stage: Stage, policy: Path, **settings: Any) -> str:
    """What `/readyz` says of one."""
    made = service_of(bus, stage, policy, once=False, interval_s=600, **settings)
    async with running(made):
        check = await eventually("the end of a cycle", lambda: made.health.checks.get(CYCLE))
    assert check.ok
    return check.reason


async def test_pods_leave_the_node_that_prometheus_says_is_used_too_much(
    bus: Bus, stage: Stage, server: Server, write_policy: Callable[[str], Path]
) -> None:
    pods = await bound(stage, "web-1", "web-2", node="tainted")
    server.answer = lambda at: vector(at, tainted="0.9", free="1e-1")
    told = await cycle(bus, stage, write_policy(POLICY.format(url=f"{server.url}/prom/", token="", age=LONG)))
    assert told == "last cycle evicted 1 pods"
    assert len(await deleted(stage, pods)) == 1
    assert server.asked == [("/prom/api/v1/query", "rate(cpu[5m]) + 1", None)]


async def test_the_token_is_that_of_the_secret_that_the_policy_refers_to(
    bus: Bus, stage: Stage, server: Server, write_policy: Callable[[str], Path], tmp_path: Path
) -> None:
    token = ", authToken: {secretReference: {namespace: monitoring, name: prom}}"
    policy = write_policy(POLICY.format(url=server.url, token=token, age=LONG))
    with pytest.raises(SettingsError, match="secrets_dir"):
        making.check(ServiceSettings(), DeschedulerSettings(policy=str(policy)))
    assert "prometheusAuthToken" in await cycle(bus, stage, policy, secrets_dir=str(tmp_path))
    assert server.asked == []
    secret = tmp_path / "monitoring" / "prom"
    secret.mkdir(parents=True)
    (secret / prometheus.TOKEN_KEY).write_text("s3cret\n")
    server.answer = lambda at: vector(at, tainted="0.1", free="0.1")
    assert await cycle(bus, stage, policy, secrets_dir=str(tmp_path)) == "last cycle evicted 0 pods"
    assert [one[2] for one in server.asked] == ["Bearer s3cret"]


def changed(at: float, **data: Any) -> dict[str, Any]:
    return {"status": "success", "data": {**vector(at, tainted="0.9", free="0.1")["data"], **data}}


BAD: dict[str, tuple[Answer, str]] = {
    "half of the nodes": (lambda at: vector(at, tainted="0.9"), "unable to find metric entry for free"),
    "old": (lambda at: vector(at - 900, tainted="0.9", free="0.1"), "is 900 s old"),
    "of tomorrow": (lambda at: vector(at + 900, tainted="0.9", free="0.1"), "is -900 s old"),
    "not a number": (lambda at: vector(at, tainted="1_0", free="0.1"), "is no number: '1_0'"),
    "NaN": (lambda at: vector(at, tainted="NaN", free="0.1"), "has value NaN outside of <0; 1> interval"),
    "too much": (lambda at: vector(at, tainted="1.5", free="0.1"), "outside of <0; 1> interval"),
    "a matrix": (lambda at: changed(at, resultType="matrix"), 'of type "vector", got "matrix" instead'),
    "no list": (lambda at: changed(at, result={}), "Expected `array`"),
    "no value": (lambda at: changed(at, result=[{"metric": {"instance": "free"}}]), "missing required field `value`"),
    "an error": (lambda _: (400, {"status": "error", "errorType": "bad_data", "error": "parse"}), "bad_data: parse"),
    "a code": (lambda _: 503, "code 503 from"),
    "a redirection": (lambda _: (302, b""), "code 302 from"),
    "no JSON": (lambda _: b"<html>", "malformed"),
    "no text": (lambda _: b'{"status": "\xff"}', "utf-8"),
    "nested": (lambda _: b'{"x":' + b"[" * 100_000, "recursion"),
    "no answer": (lambda _: None, "no answer within 0.2 s"),
    "too long": (lambda _: b" " * 5_000, "has more than 4000 bytes"),
}


@pytest.mark.parametrize("what", BAD)
async def test_an_answer_that_says_nothing_of_all_nodes_moves_nothing_and_the_others_run(
    what: str,
    bus: Bus,
    stage: Stage,
    server: Server,
    write_policy: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if what == "too long":
        monkeypatch.setattr(prometheus, "LARGEST_ANSWER", 4_000)
    server.answer, reason = BAD[what]
    pods = await bound(stage, "web-1") + await bound(stage, "web-2", node="free")
    policy = write_policy(POLICY.format(url=server.url, token="", age=0))
    told = await cycle(bus, stage, policy, prometheus_timeout_s=0.2 if what == "no answer" else 5.0)
    assert told.startswith("last cycle evicted 2 pods; LowNodeUtilization: error getting node usage: ")
    assert reason.lower() in told.lower()
    assert len(await deleted(stage, pods)) == 2


async def test_a_server_that_is_not_there_is_told(bus: Bus, stage: Stage, write_policy: Callable[[str], Path]) -> None:
    with serving() as gone:
        url = gone.url
    told = await cycle(bus, stage, write_policy(POLICY.format(url=url, token="", age=LONG)))
    assert "LowNodeUtilization: error getting node usage: unable to capture prometheus metrics: ConnectError" in told
