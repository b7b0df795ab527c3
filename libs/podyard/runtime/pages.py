"""What a service shows of itself beside health and metrics: pages that it makes when somebody asks.

They are served from another thread. A page is made on the service's own event loop, which owns what it shows;
what it is made of must not change afterwards. A service that is stalled shows none, and the asker is told so.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

log: Final = logging.getLogger("podyard.runtime")

LIMIT_S: Final = 5.0
"""How long a page may take, with the wait for the event loop: a person is waiting."""
DEBUG: Final = "/debug"
"""Pages below it are served on the secure port only, whoever adds them."""
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


class Page(NamedTuple):
    """One of them."""

    make: Callable[[], object]
    secure_only: bool


class Answer(NamedTuple):
    """What is sent for one."""

    status: int
    kind: str
    """Content-Type."""
    body: bytes


class Pages:
    """Of one process. The service's event loop adds and removes; any other asks."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, path: str, make: Callable[[], object], *, secure_only: bool = False) -> None:
        """Show at `path` what `make` returns; in place of what was there.

        :param make: called on the service's event loop whenever somebody asks, by as many as ask: cheap, or a
            coroutine function that waits. A str is sent as text, anything else as JSON
        :param secure_only: not over plain HTTP; anyhow so below `/debug`
        """
        if not path.startswith("/"):
            raise ValueError(f"a page's path begins with /, not as {path!r}")
        self._pages[path] = Page(make, secure_only or path == DEBUG or path.startswith(f"{DEBUG}/"))

    def remove(self, path: str) -> None:
        """Show nothing there any more, if anything was."""
        self._pages.pop(path, None)

    def paths(self, *, secure: bool) -> list[str]:
        """Where there is something, on the secure port or the other one."""
        return sorted(path for path, page in self._pages.items() if secure or not page.secure_only)

    def made_here(self) -> None:
        """Pages are made on the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    async def answer(self, path: str, *, secure: bool) -> Answer | None:
        """The page at `path`; None if there is none for who asks. Asked on an event loop of its own."""
        page = self._pages.get(path)
        if page is None or (page.secure_only and not secure):
            return None
        try:
            made = await asyncio.wait_for(self._made(page.make), LIMIT_S)
            body = self._encoder.encode(made) if not isinstance(made, str) else b""
        except TimeoutError:
            return _unavailable(f"the service did not answer within {LIMIT_S:g} s: it is stalled or busy; ask again")
        except _NotRunningError:
            return _unavailable("the service is starting or ending; ask again")
        except Exception as error:  # whatever a page raises: the others are served
            log.exception("the page %s could not be made", path)
            text = f"{path} could not be made: {type(error).__name__}; the service's log says more\n"
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, TEXT, text.encode())
        if isinstance(made, str):
            return Answer(HTTPStatus.OK, TEXT, made.encode())
        return Answer(HTTPStatus.OK, JSON, msgspec.json.format(body, indent=2) + b"\n")

    async def _made(self, make: Callable[[], object]) -> Any:
        if self._loop is None:
            raise _NotRunningError
        gone = threading.Event()
        making = _make(make, gone)
        try:
            future = asyncio.run_coroutine_threadsafe(making, self._loop)
        except RuntimeError:  # it is closed
            making.close()
            raise _NotRunningError from None
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if asking is not None and asking.cancelling():
                raise
            raise _NotRunningError from None  # the service's end cancels what it has begun
        finally:
            gone.set()


class _NotRunningError(Exception):
    """There is no event loop yet, or no more."""


async def _make(make: Callable[[], object], gone: threading.Event) -> object:
    """:param gone: whether nobody waits for it any more"""
    if gone.is_set():
        raise asyncio.CancelledError
    made = make()
    return await made if inspect.isawaitable(made) else made


def _unavailable(sentence: str) -> Answer:
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, f"{sentence}\n".encode())
