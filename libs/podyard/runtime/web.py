"""What is answered over HTTP, and to whom: health, metrics and pages.

Health is for everybody. On the secure port all else is for who says who he is and may read the path: this is
settled before anybody looks whether there is such a path, so that a refusal tells nothing.
"""

import asyncio
import contextlib
import functools
import gzip
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import prometheus_client
from prometheus_client import exposition
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from podyard.runtime import clock, identities, probes
from podyard.runtime.health import Health
from podyard.runtime.identities import Access, Identity, Tokens
from podyard.runtime.pages import TEXT, Answer, Pages

T = TypeVar("T")
log: Final = logging.getLogger("podyard.runtime")

SCRAPE_S: Final = 10.0
"""How long /metrics may take: Prometheus waits as long by default."""
COMPRESSION: Final = 1
"""A megabyte in some milliseconds, to a tenth of it."""
HEALTH: Final = ("/livez", "/healthz", "/readyz")
METRICS: Final = "/metrics"
HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}
"""As the API server sends them."""

# why somebody was refused, as counted; connections.py has those that never asked
NO_IDENTITY: Final = "no_identity"
WRONG_TOKEN: Final = "wrong_token"
WRONG_CERTIFICATE: Final = "wrong_certificate"
NOT_ALLOWED: Final = "not_allowed"


class Refusals:
    """Counts who was refused or let go."""

    def __init__(self, registry: prometheus_client.CollectorRegistry, reasons: Sequence[str]) -> None:
        self._counter = prometheus_client.Counter(
            "podyard_http_refused",
            "Requests and connections over HTTP that were refused",
            ["reason"],
            registry=registry,
        )
        for reason in reasons:
            self._counter.labels(reason)

    def count(self, reason: str) -> None:
        """One more."""
        self._counter.labels(reason).inc()


class Door(NamedTuple):
    """By what those are judged who come over TLS."""

    access: Access
    tokens: Callable[[], Tokens]


class Guard:
    """In front of everything: who asks, and may he?"""

    def __init__(self, inner: ASGIApp, door: Door | None, count: Callable[[str], None]) -> None:
        self._inner = inner
        self._door = door
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever it raises costs that request."""
        request = Request(scope)
        try:
            refused = self._refusal(request)
            await (refused or self._inner)(scope, receive, send)
        except Exception:
            log.exception("a request could not be answered")
            await _text(HTTPStatus.INTERNAL_SERVER_ERROR, "it could not be answered; the service's log says more")(
                scope, receive, send
            )

    def _refusal(self, request: Request) -> Response | None:
        path = request.scope["path"]
        if not request.state.secure or _is_health(path):
            return None
        assert self._door is not None, "nobody comes over TLS without one"
        identity, why = who(request, self._door.tokens())
        if identity is None:
            self._count(why)
            return _text(
                HTTPStatus.UNAUTHORIZED,
                "say who you are: by a client certificate, or by a bearer token",
                {"WWW-Authenticate": 'Bearer realm="podyard"'},
            )
        if not self._door.access.may_read(identity, path):
            self._count(NOT_ALLOWED)
            return _text(HTTPStatus.FORBIDDEN, f"{identity.user} may not read this path")
        return None


def who(request: Request, tokens: Tokens) -> tuple[Identity | None, str]:
    """Who asks, or why nobody knows. A certificate counts before a token, as in the API machinery."""
    certificate: dict[str, Any] | None = request.state.certificate
    found = identities.of_certificate(certificate, clock.now()) if certificate is not None else None
    if found is not None:
        return found, ""
    token = identities.bearer_token(request.headers.get("authorization", ""))
    if not token:
        return None, NO_IDENTITY if certificate is None else WRONG_CERTIFICATE
    return tokens.identity(token), WRONG_TOKEN


def _is_health(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in HEALTH)


def application(
    health: Health,
    registry: prometheus_client.CollectorRegistry,
    pages: Pages,
    *,
    door: Door | None,
    count: Callable[[str], None],
) -> ASGIApp:
    """Everything that a process serves, plain and secure."""
    scrapes = _Scrapes(registry)
    checks: dict[str, Callable[[], list[probes.Found]]] = {
        "/livez": health.life,
        "/healthz": health.life,
        "/readyz": health.readiness,
    }
    routes = [
        *(Route(path, functools.partial(_of_all, path, ask)) for path, ask in checks.items()),
        *(Route(f"{path}/{{check:path}}", functools.partial(_of_one, ask)) for path, ask in checks.items()),
        Route(METRICS, scrapes.answer),
        Route("/{path:path}", _page_of(pages)),
    ]
    return Guard(Router(routes, redirect_slashes=False), door, count)


async def _of_all(path: str, ask: Callable[[], list[probes.Found]], request: Request) -> Response:
    query = request.query_params
    answer = probes.of_all(path[1:], ask(), verbose="verbose" in query, exclude=query.getlist("exclude"))
    return _response(answer)


async def _of_one(ask: Callable[[], list[probes.Found]], request: Request) -> Response:
    answer = probes.of_one(ask(), request.path_params["check"])
    return _text(HTTPStatus.NOT_FOUND, "there is no such check") if answer is None else _response(answer)


def _page_of(pages: Pages) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        secure: bool = request.state.secure
        answer = await pages.answer(request.scope["path"], secure=secure)
        if answer is not None:
            return _response(answer)
        return _text(HTTPStatus.NOT_FOUND, f"there are {' '.join((*HEALTH, METRICS, *pages.paths(secure=secure)))}")

    return page


class _Scrapes:
    """/metrics: one at a time, and in a thread of its own, as nobody knows what a collector waits for."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._registry = registry
        self._turn = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """What is asked for, in the format that is asked for."""
        try:
            async with asyncio.timeout(SCRAPE_S):
                return await self._in_turn(request)
        except TimeoutError:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, f"the metrics were not there within {SCRAPE_S:g} s; ask again")

    async def _in_turn(self, request: Request) -> Response:
        encode, kind = exposition.choose_encoder(request.headers.get("accept", ""))
        registry: Any = self._registry
        if names := request.query_params.getlist("name[]"):
            registry = self._registry.restricted_registry(names)
        zipped = exposition.gzip_accepted(request.headers.get("accept-encoding", ""))
        await self._turn.acquire()
        made = apart(lambda: _zipped(encode(registry)) if zipped else encode(registry), "metrics")
        made.add_done_callback(self._ended)
        body = await asyncio.shield(made)
        headers = {**HEADERS, "Vary": "Accept, Accept-Encoding"} | ({"Content-Encoding": "gzip"} if zipped else {})
        return Response(body, headers={**headers, "Content-Type": kind})

    def _ended(self, made: "asyncio.Future[bytes]") -> None:
        """Not before is it the next one's turn: a collector that hangs holds one thread, not one a scrape."""
        self._turn.release()
        made.exception()  # who asked may have gone


def _zipped(body: bytes) -> bytes:
    return gzip.compress(body, COMPRESSION)


def apart(work: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """What `work` returns or raises, from a thread that holds up nobody's end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not future.done():
            settled()

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            came: Callable[[], None] = functools.partial(future.set_exception, error)
        else:
            came = functools.partial(future.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, came)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, {**HEADERS, "Content-Type": answer.kind})


def _text(status: HTTPStatus, sentence: str, headers: dict[str, str] | None = None) -> Response:
    more = headers or {}
    return Response(f"{sentence}\n", status, {**HEADERS, "Content-Type": TEXT, **more})
