"""`/healthz`, `/readyz`, `/metrics` and pages, served from a thread, so that a stalled event loop still
answers.

The answers read `Health` and the metrics registry only; what reaches into the service are pages.
"""

import asyncio
import threading
from collections.abc import Iterable
from http import HTTPStatus
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, Self, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import prometheus_client

from podyard.runtime.health import Health
from podyard.runtime.pages import TEXT, Pages
from podyard.runtime.settings import HttpSettings

CONNECTION_TIMEOUT_S = 5
"""A client that says nothing for so long is let go; probes take milliseconds."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        # http.server would look up the host's full name here, which takes seconds without a name server
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    timeout = CONNECTION_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Probes come every second: they are not logged."""


class HttpEndpoint:
    """The HTTP server of one process; a context manager."""

    def __init__(
        self,
        settings: HttpSettings,
        health: Health,
        registry: prometheus_client.CollectorRegistry,
        pages: Pages,
    ) -> None:
        self._settings = settings
        self._app = application(health, registry, pages)
        self._server: _Server | None = None

    @property
    def address(self) -> str:
        """`host:port` it listens on; empty when it is off."""
        return "" if self._server is None else f"{self._server.server_name}:{self._server.server_port}"

    def __enter__(self) -> Self:
        """:raises OSError: if the port is taken"""
        if self._settings.port >= 0:
            self._server = _Server((self._settings.host, self._settings.port), _Handler)
            self._server.set_app(self._app)
            threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def application(health: Health, registry: prometheus_client.CollectorRegistry, pages: Pages) -> WSGIApplication:
    """The WSGI application behind `HttpEndpoint`."""
    metrics = cast("WSGIApplication", prometheus_client.make_wsgi_app(registry))  # pyright: ignore[reportUnknownMemberType] - untyped

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if path == "/metrics":
            return metrics(environ, start_response)
        if path == "/healthz":
            status, kind, body = _liveness(health)
        elif path == "/readyz":
            status, kind, body = _readiness(health)
        elif (answer := asyncio.run(pages.answer(path, secure=False))) is not None:
            status, kind, body = f"{answer.status} {HTTPStatus(answer.status).phrase}", answer.kind, answer.body
        else:
            there = " ".join(("/healthz", "/readyz", "/metrics", *pages.paths(secure=False)))
            status, kind, body = "404 Not Found", TEXT, f"there are {there}\n".encode()
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    return app


def _liveness(health: Health) -> tuple[str, str, bytes]:
    if health.alive:
        return "200 OK", TEXT, b"ok\n"
    text = f"the event loop has not run for {health.stalled_s():.1f} s\n"
    return "503 Service Unavailable", TEXT, text.encode()


def _readiness(health: Health) -> tuple[str, str, bytes]:
    lines = [
        f"[{'+' if check.ok else '-'}] {name}{': ' + check.reason if check.reason else ''}"
        for name, check in sorted(health.checks.items())
    ]
    ready = health.ready and health.alive
    if not health.alive:
        lines.append(f"[-] event loop: has not run for {health.stalled_s():.1f} s")
    lines.append("ready" if ready else "not ready")
    return ("200 OK" if ready else "503 Service Unavailable"), TEXT, ("\n".join(lines) + "\n").encode()
