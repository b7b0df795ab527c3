"""What a process serves over HTTP and HTTPS, over real sockets: answers, bounds, and files that change."""

import contextlib
import errno
import gc
import gzip
import logging
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import prometheus_client
import pytest
import structlog
from prometheus_client.core import CounterMetricFamily

from podyard.bus import key_files
from podyard.runtime import certificates, connections, http, web
from podyard.runtime.health import Health
from podyard.runtime.http import CannotListenError, HttpEndpoint
from podyard.runtime.pages import Pages
from podyard.runtime.settings import HttpSettings, SecureSettings, ServiceSettings, SettingsError
from tests.support.certificates import DAY, Authority
from tests.support.serving import HOST, refused, serving, visitor

LIMIT_S = 10.0


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def health(registry: prometheus_client.CollectorRegistry) -> Health:
    found = Health(stall_limit_s=3600.0, registry=registry)
    found.set_ready("running", True)
    return found


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def until(what: str, holds: Callable[[], Any]) -> Any:
    """Ask until it holds."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.005)
    raise AssertionError(f"not within {LIMIT_S:g} s: {what}")


# --- answers


def test_health_as_the_api_machinery_says_it(health: Health) -> None:
    health.set_ready("nats", False, "no contact")
    with serving(health=health) as endpoint, visitor(endpoint) as client:
        for path in ("/livez", "/healthz"):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (200, "ok")
            assert client.get(f"{path}?verbose").text == f"[+]ping ok\n[+]loop ok\n{path[1:]} check passed\n"
        answer = client.get("/readyz")
        assert answer.status_code == 500
        assert answer.text.split("\n") == [
            "[+]loop ok",
            "[-]nats failed: no contact; see docs/checks.md#nats, or run: podyard checks nats",
            "[+]running ok",
            "readyz check failed",
            "",
        ]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.get("/readyz?exclude=nats").text == "ok"
        told = client.get("/readyz?verbose=1&exclude=nats&exclude=other").text
        assert "[+]nats excluded: ok" in told
        assert 'warn: some health checks cannot be excluded: no matches for "other"' in told
        assert client.get("/readyz/nats").status_code == 500
        assert client.get("/readyz/running").text == "ok"
        assert client.get("/livez/ping").text == "ok"
        assert client.get("/livez/nats").status_code == 404


def test_metrics_in_the_format_that_is_asked_for(registry: prometheus_client.CollectorRegistry) -> None:
    seen = prometheus_client.Histogram("seen_seconds", "Seen", registry=registry)
    seen.observe(0.1, exemplar={"trace_id": "abc"})
    with serving(registry=registry) as endpoint, visitor(endpoint) as client:
        plain = client.get("/metrics")
        assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "seen_seconds_count 1.0" in plain.text
        assert plain.headers["content-encoding"] == "gzip"
        wanted = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "identity"}
        open_metrics = client.get("/metrics", headers=wanted)
        assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert 'trace_id="abc"' in open_metrics.text
        assert open_metrics.text.endswith("# EOF\n")
        assert "content-encoding" not in open_metrics.headers
        only = client.get("/metrics?name[]=podyard_ready").text
        assert "podyard_ready" in only
        assert "seen_seconds" not in only


def test_other_paths_and_methods() -> None:
    pages = Pages()
    pages.add("/configz", dict)
    pages.add("/debug/queue", dict)
    with serving(pages=pages) as endpoint, visitor(endpoint) as client:
        answer = client.get("/")
        assert (answer.status_code, answer.text) == (404, "there are /livez /healthz /readyz /metrics /configz\n")
        for path in ("/debug/queue", "/metrics/", "/readyz/../metrics", "//metrics", "/%0a"):
            # as it is written: httpx would mend some of them
            assert client.get("/", extensions={"target": path.encode()}).status_code == 404, path
        for path in ("/metrics", "/readyz", "/configz", "/other"):
            answer = client.post(path, content=b"x")
            assert (answer.status_code, answer.headers["allow"]) in [(405, "GET, HEAD"), (405, "HEAD, GET")], path
        head = client.head("/metrics")
        assert (head.status_code, head.content) == (200, b"")


def test_health_is_answered_over_http_1_0_as_probes_ask() -> None:
    with serving() as endpoint, socket.create_connection((HOST, _port(endpoint.address))) as client:
        client.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\nok")


def test_an_answer_does_not_wait_for_acknowledgements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Head and body are written apart: Nagle's algorithm would hold the body back for 40 ms."""
    undelayed: list[int] = []
    made = connections.Connection.connection_made

    def seen(self: connections.Connection, transport: Any) -> None:
        made(self, transport)
        undelayed.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(connections.Connection, "connection_made", seen)
    with serving(secure={}) as endpoint:
        for authority in (None, ""):
            with visitor(endpoint, authority=authority) as client:
                client.get("/livez")
    assert [bool(found) for found in undelayed] == [True, True]


# --- who is let go


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SILENT_S", 0.2)
    monkeypatch.setattr(connections, "USUAL", connections.Bounds(silent_s=0.2, answer_s=0.4))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("sent", [b"", b"GET /readyz HTTP/1.1\r\nX: "], ids=["nothing", "slowly"])
def test_who_says_nothing_or_never_ends_is_let_go(
    registry: prometheus_client.CollectorRegistry, *, secure: bool, sent: bytes
) -> None:
    """A byte now and then earns no more time: it is counted from the start."""
    with serving(secure={}, registry=registry) as endpoint:
        address = endpoint.secure_address if secure else endpoint.address
        started = time.monotonic()
        with socket.create_connection((HOST, _port(address)), timeout=LIMIT_S) as client:
            client.sendall(sent)
            client.settimeout(0.02)
            while True:
                try:
                    if client.recv(1) == b"":
                        break
                except TimeoutError:
                    if sent and not secure:
                        client.sendall(b"x")
                except ConnectionResetError:
                    break
                assert time.monotonic() - started < LIMIT_S
        if not (secure and sent):  # what is no TLS is refused at once, and not for its silence
            assert until("it is counted", lambda: refused(registry)) == {"silent": 1}


@pytest.mark.usefixtures("impatient")
def test_a_tls_client_that_says_nothing_after_the_handshake_is_let_go(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with serving(secure={}, registry=registry) as endpoint:
        with (
            socket.create_connection((HOST, _port(endpoint.secure_address)), timeout=LIMIT_S) as raw,
            context.wrap_socket(raw) as client,
        ):
            assert client.recv(1) == b""
        assert until("it is counted", lambda: refused(registry)) == {"silent": 1}


@pytest.mark.usefixtures("impatient")
def test_who_asks_and_does_not_read_is_let_go(registry: prometheus_client.CollectorRegistry) -> None:
    pages = Pages()
    prometheus_client.Info("much", "Much", registry=registry).info({"text": "x" * 20_000_000})
    with serving(registry=registry, pages=pages) as endpoint:
        with socket.create_connection((HOST, _port(endpoint.address)), timeout=LIMIT_S) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert until("it is let go", lambda: refused(registry)) == {"slow": 1}
        with visitor(endpoint) as other:
            assert other.get("/readyz").text == "ok"


@pytest.mark.usefixtures("impatient")
def test_a_kept_connection_that_is_idle_is_closed_and_not_counted(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    with serving(registry=registry) as endpoint:
        with socket.create_connection((HOST, _port(endpoint.address)), timeout=LIMIT_S) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.makefile("rb").read().endswith(b"ok")
        assert refused(registry) == {}


@pytest.mark.parametrize("authority", [None, ""], ids=["plain", "secure"])
def test_a_connection_that_has_ended_waits_for_no_garbage_collector(
    monkeypatch: pytest.MonkeyPatch, authority: str | None
) -> None:
    """With it end its buffers, which are as large as the largest answer."""
    seen: list[weakref.ref[connections.Connection]] = []

    class Seen(connections.Connection):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            seen.append(weakref.ref(self))

    monkeypatch.setattr(connections, "Connection", Seen)
    gc.disable()
    try:
        with serving(secure={}) as endpoint:
            for _ in range(2):
                with visitor(endpoint, authority=authority) as client:
                    assert client.get("/livez").text == client.get("/readyz").text == "ok"
            with visitor(endpoint):
                until("both are forgotten", lambda: len(seen) == 2 and not any(one() for one in seen))
    finally:
        gc.enable()


def test_a_head_that_is_too_long_is_refused(registry: prometheus_client.CollectorRegistry) -> None:
    with serving(registry=registry) as endpoint:
        with socket.create_connection((HOST, _port(endpoint.address)), timeout=LIMIT_S) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (connections.LARGEST_HEAD + 1))
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")
        assert refused(registry) == {"malformed": 1}


def test_who_comes_when_all_places_are_taken_gets_that_of_the_longest_idle(
    registry: prometheus_client.CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "USUAL", connections.Bounds(most=3))
    with serving(registry=registry) as endpoint:
        address = (HOST, _port(endpoint.address))
        idle = [socket.create_connection(address, timeout=LIMIT_S) for _ in range(3)]
        with visitor(endpoint) as client:
            assert client.get("/livez").text == "ok"
        assert idle[0].recv(1) == b"", "it was there first"
        idle[2].sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert idle[2].recv(100).startswith(b"HTTP/1.1 200 ")
        assert refused(registry) == {"crowded": 1}
        for one in idle:
            one.close()


def test_who_cannot_be_let_in_for_want_of_descriptors_is_let_in_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept, failures = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")] * 3

    def scarce(self: socket.socket) -> tuple[socket.socket, Any]:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(connections, "PAUSE_S", 0.01)
    monkeypatch.setattr(socket.socket, "accept", scarce)
    with serving() as endpoint, visitor(endpoint) as client:
        assert client.get("/livez").text == "ok"
    told = [record.getMessage() for record in caplog.records if record.name == "podyard.runtime"]
    assert told == ["clients cannot be let in: Too many open files"], "once"


# --- what hangs


class Hanging:
    """A collector that waits for what a test says."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = threading.Event()

    def collect(self) -> Iterator[CounterMetricFamily]:
        self.asked += 1
        self.go_on.wait(LIMIT_S)
        yield CounterMetricFamily("late", "Late", 1)

    def describe(self) -> list[CounterMetricFamily]:
        return []


def test_a_scrape_that_never_ends_holds_up_nobody(
    registry: prometheus_client.CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SCRAPE_S", 0.1)
    hanging = Hanging()
    registry.register(hanging)
    with serving(registry=registry) as endpoint, visitor(endpoint) as client:
        for _ in range(3):
            answer = client.get("/metrics")
            assert (answer.status_code, "not there within 0.1 s" in answer.text) == (503, True)
            assert client.get("/readyz").text == "ok"
        assert hanging.asked == 1, "the others wait for their turn, and do not pile up"
        hanging.go_on.set()
        assert "late_total 1.0" in until("it goes on", lambda: _body(client.get("/metrics")))


def _body(answer: httpx.Response) -> str:
    return answer.text if answer.is_success else ""


def test_a_collector_that_raises_costs_one_answer(registry: prometheus_client.CollectorRegistry) -> None:
    class Broken(Hanging):
        def collect(self) -> Iterator[CounterMetricFamily]:
            raise ValueError("a secret")

    registry.register(Broken())
    with serving(registry=registry) as endpoint, visitor(endpoint) as client:
        answer = client.get("/metrics")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert client.get("/readyz").text == "ok"


# --- what is refused at the start


def _built(**given: Any) -> HttpEndpoint:
    registry = prometheus_client.CollectorRegistry()
    health = Health(stall_limit_s=1.0, registry=registry)
    return HttpEndpoint(ServiceSettings(**given), health, registry, Pages(), structlog.get_logger())


def test_plain_http_beyond_the_loopback_has_to_be_asked_for() -> None:
    with pytest.raises(SettingsError, match=r"http.host 0.0.0.0: plain HTTP is served on the loopback only"):
        _built(http=HttpSettings(host="0.0.0.0"))
    for allowed in ({"host": "0.0.0.0", "insecure": True}, {"host": "::1"}, {"host": "localhost"}):
        _built(http=HttpSettings(**allowed))
    _built(http=HttpSettings(host="0.0.0.0", port=-1))


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        _built(
            http=HttpSettings(host="0.0.0.0"),
            secure=SecureSettings(port=1, token_auth_file=str(tmp_path / "a"), client_ca_file=str(tmp_path / "b")),
        )
    assert len(raised.value.problems) == 3


def test_a_taken_port_is_told_and_the_other_one_is_given_back() -> None:
    with serving(secure={}) as first:
        taken = _port(first.secure_address)
        second = _built(secure=SecureSettings(port=taken, bind_address=HOST))
        with pytest.raises(CannotListenError, match=f"{HOST}:{taken} cannot be listened on: .*set secure.port"):
            second.__enter__()
        with socket.create_server((HOST, _port(second.address))):
            pass


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_all_addresses_are_those_of_both_protocols() -> None:
    with serving(secure={"bind_address": "::"}) as endpoint:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, _port(endpoint.secure_address)), timeout=LIMIT_S):
                pass


# --- whatever is sent


ODD = {
    "noise": bytes(range(256)) * 8,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a proxy's form": b"GET http://elsewhere/metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "options of all": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "a web socket": b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "two lengths": b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a wrong chunk": b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "a broken header": b"GET /livez HTTP/1.1\r\nHost: x\r\nX\0: y\r\n\r\n",
    "a broken escape": b"GET /%ff%zz%00?%ff&exclude=%ff HTTP/1.1\r\nHost: x\r\n\r\n",
    "a line too long": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
    "many at once": b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 500,
    "a body that does not end": b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n"
    + b"x" * 200_000,
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", ODD.values(), ids=ODD)
def test_whatever_is_sent_costs_its_own_connection(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Over plain HTTP, into the TLS handshake, and through it; nothing of it is worth a line in the log."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with serving(secure={}) as endpoint:
        for address, wrap in (
            (endpoint.address, None),
            (endpoint.secure_address, None),
            (endpoint.secure_address, context),
        ):
            with socket.create_connection((HOST, _port(address)), timeout=LIMIT_S) as raw:
                client = raw if wrap is None else wrap.wrap_socket(raw)
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    client.sendall(sent)
                    while client.recv(65536):
                        pass
                client.close()
        for authority in (None, ""):
            with visitor(endpoint, authority=authority) as other:
                assert other.get("/livez").text == "ok"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_body_that_goes_wrong_after_the_answer_ends_the_connection(
    registry: prometheus_client.CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(registry=registry) as endpoint:
        with socket.create_connection((HOST, _port(endpoint.address)), timeout=LIMIT_S) as client:
            client.sendall(b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 405 ")
            client.sendall(b"zz\r\n")
            with contextlib.suppress(ConnectionResetError):
                while client.recv(1000):
                    pass
        assert until("it is counted", lambda: refused(registry)) == {"malformed": 1}
    assert caplog.records == []


# --- files that change


def _replace(path: Path, content: bytes) -> None:
    """As Kubernetes does: whole, by a new file."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o600)
    new.rename(path)


def test_certificates_authorities_and_tokens_are_read_again_without_a_stop(
    tmp_path: Path, authority: Authority, health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LOOK_EVERY_S", 0.02)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    old, new = Authority(tmp_path / "one"), Authority(tmp_path / "two")
    jane, joe = old.issue("jane", ["system:masters"]), new.issue("joe", ["system:masters"])
    server, later = authority.issue("server", hosts=[HOST]), authority.issue("later", hosts=[HOST])
    clients, tokens = tmp_path / "clients.crt", tmp_path / "tokens.csv"
    _replace(clients, old.file.read_bytes())
    _replace(tokens, b"hush,ann,1,system:masters\n")
    given = {
        "tls_cert_file": str(server.certificate),
        "tls_private_key_file": str(server.key),
        "client_ca_file": str(clients),
        "token_auth_file": str(tokens),
    }
    trusted = str(authority.file)
    with serving(secure=given, health=health) as endpoint:

        def sees(**shown: Any) -> bool:
            with visitor(endpoint, authority=trusted, **shown) as client:
                try:
                    return client.get("/metrics").is_success
                except httpx.TransportError:  # TLS refuses it
                    return False

        def serial() -> int:
            context = ssl.create_default_context(cafile=trusted)
            with (
                socket.create_connection((HOST, _port(endpoint.secure_address))) as raw,
                context.wrap_socket(raw, server_hostname=HOST) as client,
            ):
                shown = client.getpeercert()
                assert shown is not None
                return int(str(shown["serialNumber"]), 16)

        with (
            visitor(endpoint, authority=trusted, token="hush") as kept,
            visitor(endpoint, authority=trusted, shown=jane) as let_in,
        ):
            assert kept.get("/metrics").is_success
            assert let_in.get("/metrics").is_success
            before = serial()
            assert (sees(shown=jane), sees(shown=joe)) == (True, False)
            _replace(clients, new.file.read_bytes())
            until("the other authority counts", lambda: sees(shown=joe))
            assert not sees(shown=jane)
            with pytest.raises(httpx.TransportError):  # nor over the connection that was let in
                let_in.get("/metrics")
            _replace(tokens, b"psst,ann,1,system:masters\n")
            until("the other token counts", lambda: sees(token="psst"))
            assert kept.get("/metrics").status_code == 401, "over the same client, too"
            # the certificate first: for a moment it has another's key
            _replace(server.certificate, later.certificate.read_bytes())
            until("it is told", lambda: not health.checks[http.CERTIFICATES_CHECK].ok)
            assert "it is the key of another certificate" in health.checks[http.CERTIFICATES_CHECK].reason
            assert serial() == before, "what was good serves on"
            assert kept.get("/readyz").status_code == 500
            _replace(server.key, later.key.read_bytes())
            until("the new pair is served", lambda: serial() != before)
            until("all is well", lambda: health.checks[http.CERTIFICATES_CHECK].ok)


def test_a_token_file_that_others_may_read_afterwards_is_told(
    tmp_path: Path, health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LOOK_EVERY_S", 0.02)
    tokens = tmp_path / "tokens.csv"
    _replace(tokens, b"hush,ann,1,system:masters\n")
    with serving(secure={"token_auth_file": str(tokens)}, health=health) as endpoint:
        _replace(tokens, b"psst,ann,1,system:masters\n")
        os.utime(tokens, (1, 1))
        tokens.chmod(0o604)
        os.utime(tokens, (2, 2))
        until("it is told", lambda: not health.checks[http.CERTIFICATES_CHECK].ok)
        assert "its mode is 0604: others may read it" in health.checks[http.CERTIFICATES_CHECK].reason
        with visitor(endpoint, authority="", token="hush") as client:
            assert client.get("/livez").text == "ok"


def test_what_changed_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading lets everybody go who is there."""
    monkeypatch.setattr(http, "LOOK_EVERY_S", 0.005)
    asked = {"load": 0, "seen": 0}

    def counted(module: ModuleType, name: str) -> Callable[..., Any]:
        wanted = getattr(module, name)

        def ask(*given: Any) -> Any:
            asked[name] += 1
            return wanted(*given)

        return ask

    monkeypatch.setattr(certificates, "load", counted(certificates, "load"))
    monkeypatch.setattr(key_files, "seen", counted(key_files, "seen"))
    tokens = tmp_path / "tokens.csv"
    _replace(tokens, b"hush,ann,1,system:masters\n")
    with serving(secure={"token_auth_file": str(tokens)}):
        _replace(tokens, b"psst,ann,1,system:masters\n")
        until("it is read", lambda: asked["load"] == 2)
        looks = asked["seen"]
        until("it is looked at again", lambda: asked["seen"] > looks + 5)
        assert asked["load"] == 2


def test_a_self_signed_certificate_is_made_anew_before_it_ends(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LOOK_EVERY_S", 0.02)
    with serving(secure={}, health=health) as endpoint:

        def shown() -> bytes:
            return ssl.get_server_certificate((HOST, _port(endpoint.secure_address))).encode()

        before = shown()
        assert shown() == before
        now = http.clock.now()
        monkeypatch.setattr(http.clock, "now", lambda: now + 340 * DAY.total_seconds())
        until("another one is shown", lambda: shown() != before)


def test_gzip_is_what_it_says(registry: prometheus_client.CollectorRegistry) -> None:
    with (
        serving(registry=registry) as endpoint,
        socket.create_connection((HOST, _port(endpoint.address)), timeout=LIMIT_S) as client,
    ):
        client.sendall(b"GET /metrics HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")
        _, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"podyard_http_refused_total" in gzip.decompress(body)
