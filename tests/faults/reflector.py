"""What an informer does, as client-go's reflector: it lists, or watches from what there is; goes on from the
last version that it was told when a watch ends or its server is gone; begins anew when it is told that this
is too old. It notes all that it was told, and fails at once if that cannot be.

Source: kubernetes v1.36.2, staging/src/k8s.io/client-go/tools/cache/reflector.go.
"""

import itertools
import random
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
import msgspec

from podyard.bench.kube import Answer, Client

RETRY_S: Final = 0.1
"""client-go waits for 0.8 s first; here servers come back within seconds."""
PAGE: Final = 500
WATCH_S: Final = (3, 5)
"""client-go's watches last for 5 to 10 minutes; with these there are ends, and bookmarks before them."""
LOST: Final = (OSError, ssl.SSLError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError)
"""The server, or the connection to it, is gone."""


class Metadata(msgspec.Struct):
    """Of an object, a list or a bookmark, what a reflector goes by."""

    resource_version: str = msgspec.field(name="resourceVersion")
    name: str = ""
    namespace: str = ""
    more: str = msgspec.field(name="continue", default="")
    annotations: dict[str, str] = {}


class Listed(msgspec.Struct):
    """An object, as it was told."""

    metadata: Metadata


class Event(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class Page(msgspec.Struct):
    """A list, or a page of one."""

    metadata: Metadata
    items: list[msgspec.Raw]


class Told(msgspec.Struct, frozen=True):
    """An event of a watch."""

    version: int
    type: str
    key: str
    """`namespace/name`."""


class Odd(msgspec.Struct, frozen=True):
    """An event that does not fit what was told before; an informer takes it all the same."""

    version: int
    key: str
    what: str


class Span(msgspec.Struct):
    """From a list, or the end of what a watch began with, to the next one: what was told in between."""

    begin: int
    end: int
    events: list[Told] = []
    bookmarks: list[tuple[int, int]] = []
    """Versions, each with the number of events before it."""


class Refused(Exception):
    """A status that is no success."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"status {code}")


class Reflector:
    """One informer's view. `run` is its task."""

    def __init__(
        self, name: str, clients: Sequence[Client], path: str, selector: str = "", *, streaming: bool = False
    ) -> None:
        """
        :param clients: of instances that answer alike: each connection is to the next one
        :param streaming: watch from what there is (sendInitialEvents) in place of a list
        """
        self.name = name
        self.known: dict[str, tuple[int, bytes]] = {}
        """By key the version and the object."""
        self.spans: list[Span] = []
        self.odd: list[Odd] = []
        self.expired = 0
        """How often it was told that its version is too old."""
        self.resumed = 0
        """How often it went on from a version, on another connection."""
        self._clients = itertools.cycle(clients)
        self._path = path
        self._selector = f"labelSelector={selector}&" if selector else ""
        self._streaming = streaming
        self._version = 0
        self._unavailable = False
        """The version that it knows is too old, or of the future, for lists too."""
        self._again = False
        """It was cut off: the version it stopped at may be one of several told with one message."""

    @property
    def version(self) -> int:
        """The last one that it was told."""
        return self._version

    async def run(self) -> None:
        """Follow for ever; cancel to end it."""
        while True:
            try:
                await (self._stream() if self._streaming else self.list())
                await self._follow()
            except Refused as refused:
                self._refused(refused)
                await anyio.sleep(RETRY_S)
            except LOST:
                await anyio.sleep(RETRY_S)

    def _refused(self, refused: Refused) -> None:
        assert refused.code in (410, 504, 503), f"{self.name} was answered {refused.code}"
        self.expired += refused.code == 410
        self._unavailable = refused.code in (410, 504)

    # ---- beginning

    async def list(self) -> None:
        """All there is, page by page."""
        client, more, found = next(self._clients), "", dict[str, tuple[int, bytes]]()
        at = "" if self._unavailable else str(self._version)
        while True:
            begin = f"continue={more}" if more else f"resourceVersion={at}"
            query = f"?{self._selector}limit={PAGE}&{begin}"
            async with client.asked(self._path + query) as answer:
                body = b"".join([part async for part in answer.parts()])
            if answer.status != 200:
                raise Refused(answer.status)
            page = msgspec.json.decode(body, type=Page)
            for item in page.items:
                key, version = _named(item)
                found[key] = version, bytes(item)
            more = page.metadata.more
            if not more:
                self._begin(found, int(page.metadata.resource_version))
                return

    async def _stream(self) -> None:
        found = dict[str, tuple[int, bytes]]()
        at = "" if self._unavailable or not self._version else str(self._version)
        query = f"resourceVersion={at}&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
        async with self._watched(query) as answer:
            events = _events(answer)
            await self._until_all_told(events, found)
            with suppress(*LOST):  # it goes on from there
                await self._read(events)
            self._again = True

    async def _until_all_told(self, events: AsyncIterator[Event], found: dict[str, tuple[int, bytes]]) -> None:
        async for event in events:
            if event.type == "ERROR":
                raise Refused(_code(event))
            key, version = _named(event.object)
            if event.type == "ADDED":
                found[key] = version, bytes(event.object)
                continue
            assert event.type == "BOOKMARK", f"{self.name}: {event.type} of {key} before all were told"
            marked = msgspec.json.decode(event.object, type=Listed).metadata.annotations
            assert marked == {"k8s.io/initial-events-end": "true"}, marked
            self._begin(found, version)
            return
        raise anyio.EndOfStream

    def _begin(self, found: dict[str, tuple[int, bytes]], version: int) -> None:
        assert version >= self._version or self._unavailable, f"{self.name} went back to {version}"
        self.known, self._version = found, version
        self.spans.append(Span(version, version))
        self._unavailable = self._again = False

    # ---- following

    async def _follow(self) -> None:
        """Watch, again and again, until all has to be listed."""
        while True:
            try:
                async with self._watched(f"resourceVersion={self._version}") as answer:
                    self.resumed += self._again
                    await self._read(_events(answer))
            except LOST:
                await anyio.sleep(RETRY_S)
            self._again = True

    def _watched(self, query: str) -> Any:
        lasts = f"timeoutSeconds={random.randint(*WATCH_S)}"
        return next(self._clients).asked(
            f"{self._path}?{self._selector}watch=true&allowWatchBookmarks=true&{lasts}&{query}"
        )

    async def _read(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if event.type == "ERROR":
                raise Refused(_code(event))
            self._note(event)

    def _note(self, event: Event) -> None:
        """What an event of a watch says, which goes on where it was."""
        key, version = _named(event.object)
        span = self.spans[-1]
        assert version >= self._version, f"{self.name}: {event.type} of {key} @{version} after @{self._version}"
        span.end = self._version = version
        if event.type == "BOOKMARK":
            span.bookmarks.append((version, len(span.events)))
            return
        told = Told(version, event.type, key)
        known = self.known.get(key)
        if self._again and told in span.events[-1:]:
            return  # told again, as it was one of several told with one message
        if event.type == "DELETED":
            expected = "DELETED" if known is not None else "nothing"
            self.known.pop(key, None)
        else:
            expected = "ADDED" if known is None else "MODIFIED"
            self.known[key] = version, bytes(event.object)
        if event.type != expected:
            self.odd.append(Odd(version, key, f"{event.type}, {expected} was to be expected"))
        assert known is None or version > known[0], f"{self.name}: {key} @{version} after @{known[0]}"
        span.events.append(told)


async def _events(answer: Answer) -> AsyncIterator[Event]:
    """
    :raises Refused: the watch is not answered with one
    """
    if answer.status != 200:
        raise Refused(answer.status)
    left = b""
    async for part in answer.parts():
        *lines, left = (left + part).split(b"\n")
        for line in lines:
            yield msgspec.json.decode(line, type=Event)


def _named(item: msgspec.Raw) -> tuple[str, int]:
    found = msgspec.json.decode(item, type=Listed).metadata
    return f"{found.namespace}/{found.name}", int(found.resource_version)


def _code(event: Event) -> int:
    return msgspec.json.decode(event.object)["code"]
