"""Requests that read: one object, a list, a watch, in the form that the client takes.

Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/get.go, watch.go, negotiation/negotiate.go.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import anyio
from anyio import lowlevel

from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core import errors, listing, media, selecting, tabling, versions
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.event_store import EventStore
from podyard.kube_api.core.forms import Bodies, Form, MetadataOnly, Whole, document_of
from podyard.kube_api.core.items import Item
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.media import Page
from podyard.kube_api.core.paths import Asked, flag
from podyard.kube_api.core.selecting import Selection
from podyard.kube_api.core.served import Served
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Reader, Store
from podyard.kube_api.core.turns import Turns
from podyard.kube_api.core.watching import Watcher, Watchers
from podyard.objects import secrets
from podyard.objects.documents import Document
from podyard.objects.kinds import Kind

BOOKMARK_S: Final = 60.0
"""Between two bookmarks of a watch. Source: apiserver/pkg/storage/cacher/cacher.go,
defaultBookmarkFrequency."""
CONVERTED_BYTES: Final = 4 * 1024 * 1024
"""Of objects' bytes that are kept, of one version that is not stored."""
LAST_BOOKMARK_S: Final = 2.0
"""Before a watch ends, there is one more: whoever goes on from it misses nothing, and is told nothing twice.
Source: apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime."""
REACH_S: Final = 3.0
"""How long a version is awaited that is not there yet. Source: cacher/watch_cache.go, blockTimeout."""
AT_ONCE: Final = 100
"""Items of a list that are written before others have their turns: 10 ms of the largest pods."""

Query = Mapping[str, list[str]]
Reveal = Callable[[ObjectKey, str], Awaitable[Mapping[str, str]]]


class Stream(NamedTuple):
    """A watch's answer."""

    chunks: AsyncGenerator[bytes]
    media_type: str


class Reading:
    """Answers requests that read. Owned by the service's event loop."""

    def __init__(
        self,
        store: Store,
        events: EventStore,
        reveal: Reveal,
        reached: Callable[[int], Awaitable[None]],
        *,
        now: Callable[[], float],
        watch_s: float,
    ) -> None:
        """
        :param reveal: shows the values of a Secret to somebody
        :param reached: awaits that the store has come to a position
        :param now: seconds since 1970, UTC
        :param watch_s: after which a watch ends that names no time, at the earliest
        """
        self._store = store
        self._events = events
        self._reveal = reveal
        self._reached = reached
        self._now = now
        self._watch_s = watch_s
        self._bodies = Bodies()
        self._converted: dict[str, Bodies] = {}
        """Of kinds that are shown in several versions, by apiVersion."""
        self._watchers = Watchers(store)
        self._event_watchers = Watchers(events)
        self._turns = Turns()

    @property
    def reader(self) -> Reader:
        """Who has to be told what changes in the store."""
        return self._watchers

    @property
    def event_reader(self) -> Reader:
        """Who has to be told what changes among the events."""
        return self._event_watchers

    @property
    def watches(self) -> int:
        """How many are open."""
        return len(self._watchers) + len(self._event_watchers)

    @property
    def watches_events(self) -> bool:
        """Whether somebody watches events."""
        return bool(len(self._event_watchers))

    async def get(self, served: Served, asked: Asked, accept: str, who: str, *, shows_values: bool) -> Page:
        """One object.

        :raises ApiError: it is not there
        """
        item = self._item(served, asked)
        revealed = await self._values(served, [item], who) if shows_values else None
        form, kind = self._form(served, accept, "", revealed)
        return Page(kind, form.one(item, self._now()))

    async def document(self, served: Served, asked: Asked, who: str, *, shows_values: bool) -> Document:
        """One object as a document.

        :raises ApiError: it is not there
        """
        item = self._item(served, asked)
        revealed = await self._values(served, [item], who) if shows_values else None
        found = document_of(item, (revealed or {}).get(item.key, {}))
        return {"apiVersion": served.api_version, "kind": served.kind, **found}

    async def page(
        self, served: Served, asked: Asked, query: Query, accept: str, who: str, *, shows_values: bool
    ) -> Page:
        """A list, or a page of one.

        :raises ApiError: the parameters are wrong, or what they ask for is not known any more
        """
        options, selection = _options(query), self._selection(served, query)
        await self._come_to(served, listing.needed_position(options))
        page = listing.list_of(self._source(served), _scope(served, asked), options, selection)
        revealed = await self._values(served, page.items, who) if shows_values else None
        form, kind = self._form(served, accept, _first(query, "includeObject"), revealed)
        pieces: list[bytes] = []
        for at in range(0, len(page.items), AT_ONCE):
            pieces += form.pieces(page.items[at : at + AT_ONCE], self._now())
            await lowlevel.checkpoint()
        return Page(kind, form.several(page, pieces))

    def selected(self, served: Served, asked: Asked, query: Query) -> list[ObjectKey]:
        """Which objects a collection's request means.

        :raises ApiError: the selectors are wrong
        """
        selection = self._selection(served, query)
        return [item.key for item in self._source(served).items(_scope(served, asked)) if selection.selects(item)]

    async def watch(
        self, served: Served, asked: Asked, query: Query, accept: str, who: str, *, shows_values: bool
    ) -> Stream:
        """A watch, until its time is over, or its client has gone or does not read.

        :raises ApiError: the parameters are wrong
        """
        options, selection = _options(query), self._selection(served, query)
        lasts_s = _timeout(query) or self._watch_s * (1 + random.random())
        if options.send_initial or options.version not in ("", "0"):
            await self._come_to(served, listing.needed_position(options, of_list=False))
        revealed: dict[ObjectKey, Mapping[str, str]] | None = None
        if shows_values and _is_secret(served):
            revealed = {}
        form, kind = self._form(served, accept, _first(query, "includeObject"), revealed)
        bell = _Bell()
        watcher = self._watchers_of(served).open(_scope(served, asked), form, options, selection, wake=bell.ring)
        return Stream(self._lines(served, watcher, bell, lasts_s, revealed, who), kind)

    # ---- one watch -----------------------------------------------------------------------------------------

    async def _lines(
        self,
        served: Served,
        watcher: Watcher,
        bell: "_Bell",
        lasts_s: float,
        revealed: dict[ObjectKey, Mapping[str, str]] | None,
        who: str,
    ) -> AsyncGenerator[bytes]:
        ends = anyio.current_time() + lasts_s
        marks = _next_bookmark(anyio.current_time(), ends)
        try:
            while True:
                while watcher.waiting:
                    if revealed is not None:
                        revealed.clear()
                        for key in watcher.due():
                            revealed[key] = await self._reveal(key, who)
                    lines = watcher.take(self._now())
                    if lines:
                        yield b"".join(lines)
                    if watcher.waiting:  # there is much: others have their turns
                        await lowlevel.checkpoint()
                now = anyio.current_time()
                if watcher.done or now >= ends:
                    return
                if now >= marks:
                    watcher.mark(self._source(served).position)
                    marks = _next_bookmark(now, ends)
                    continue
                await bell.wait(min(ends, marks))
                if watcher.waiting:
                    await anyio.sleep_until(min(ends, self._turns.take(anyio.current_time())))
        finally:
            self._watchers_of(served).close(watcher)

    # ---- parts ---------------------------------------------------------------------------------------------

    def _item(self, served: Served, asked: Asked) -> Item:
        item = self._source(served).item(key_of(served, asked))
        if item is None:
            raise errors.not_found(served.resource, served.group, asked.name)
        return item

    def _selection(self, served: Served, query: Query) -> Selection:
        return selecting.parse(
            _first(query, "labelSelector"),
            _first(query, "fieldSelector"),
            kind=_stored(served),
            api_version=served.api_version,
        )

    def _source(self, served: Served) -> Store | EventStore:
        return self._events if served.is_events else self._store

    def _watchers_of(self, served: Served) -> Watchers:
        return self._event_watchers if served.is_events else self._watchers

    async def _come_to(self, served: Served, position: int) -> None:
        """A version that is on its way here is awaited; whoever asks for one that is not is told so. That of
        an event is none of the stream."""
        if not served.is_events and position > self._store.position:
            with anyio.move_on_after(REACH_S):
                await self._reached(position)

    async def _values(
        self, served: Served, items: Sequence[Item], who: str
    ) -> dict[ObjectKey, Mapping[str, str]] | None:
        """Values of Secrets that are about to be shown; None: they are of another kind."""
        if not _is_secret(served):
            return None
        found: dict[ObjectKey, Mapping[str, str]] = {}
        for item in items:
            found[item.key] = await self._reveal(item.key, who)
        return found

    def _form(
        self, served: Served, accept: str, include: str, revealed: Mapping[ObjectKey, Mapping[str, str]] | None
    ) -> tuple[Form, str]:
        """How the client takes objects, and the media type of that.

        :raises ApiError: 406, it takes nothing that is served
        """
        wanted, told = media.form(accept)
        if not wanted:
            return self._whole(served, revealed), told
        if wanted == media.TABLE:
            return self._table(served, include), told
        return MetadataOnly(self._bodies_of(served)), told

    def _bodies_of(self, served: Served) -> Bodies:
        if not versions.converts(served):
            return self._bodies
        found = self._converted.get(served.api_version)
        if found is None:
            convert = partial(versions.shown, served=served)
            found = self._converted[served.api_version] = Bodies(CONVERTED_BYTES, convert)
        return found

    def _whole(self, served: Served, revealed: Mapping[ObjectKey, Mapping[str, str]] | None) -> Form:
        return Whole(
            self._bodies_of(served),
            api_version=served.api_version,
            kind=served.kind,
            list_kind=served.list_kind,
            typed=not served.custom,
            revealed=revealed,
        )

    def _table(self, served: Served, include: str) -> Form:
        custom = tabling.custom_columns(served.columns) if served.custom else None
        return tabling.Table(
            self._bodies_of(served),
            kind=_stored(served),
            api_version=served.api_version,
            include=include,
            custom=custom,
        )


def _next_bookmark(now: float, ends: float) -> float:
    last = ends - LAST_BOOKMARK_S
    return min(now + BOOKMARK_S, last) if last > now else now + BOOKMARK_S


class _Bell:
    """Wakes the one who waits for it."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, until: float) -> None:
        """Until it is rung, or that time on the clock of `anyio.current_time`."""
        with anyio.CancelScope(deadline=until):
            await self._event.wait()
        self._event = anyio.Event()


def key_of(served: Served, asked: Asked) -> ObjectKey:
    """Where the object of a URL lies."""
    return ObjectKey(_stored(served).resource, asked.namespace, asked.name)


def _stored(served: Served) -> Kind:
    assert served.stored is not None, "objects of this resource are stored"
    return served.stored


def _scope(served: Served, asked: Asked) -> Scope:
    return Scope(_stored(served).resource, asked.namespace)


def _is_secret(served: Served) -> bool:
    return served.stored is not None and served.stored.resource == secrets.RESOURCE


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _options(query: Query) -> ListOptions:
    """
    :raises ApiError: 400, a parameter is no number
    """
    limit = _first(query, "limit")
    if limit and not (limit.lstrip("-").isdecimal() and len(limit) <= 19):
        raise _no_number(limit)
    return ListOptions(
        limit=int(limit or 0),
        more=_first(query, "continue"),
        version=_first(query, "resourceVersion"),
        match=_first(query, "resourceVersionMatch"),
        send_initial=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        bookmarks=flag(query, "allowWatchBookmarks"),
    )


def _no_number(text: str) -> ApiError:
    """Source: apimachinery v0.36.2, pkg/runtime/converter.go, Convert_Slice_string_To_int64."""
    return errors.bad_request(f'strconv.ParseInt: parsing "{text[:63]}": invalid syntax')


def _timeout(query: Query) -> float:
    """Seconds that a watch is to last; 0: it does not say."""
    text = _first(query, "timeoutSeconds")
    if text and not (text.isdecimal() and len(text) <= 9):
        raise _no_number(text)
    return float(text or 0)
