"""`podyard get events`: what was sent and what is told from stored facts, once or for as long as something
happens."""

import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import NotFound
from podyard.cli.errors import CliError, InputError
from podyard.cli.render import events as rendered
from podyard.cli.render import plain
from podyard.cli.targets import slashed
from podyard.proto import streams
from podyard.proto.operations import K8sEvent
from podyard.runtime import clock
from podyard.shell import stream_reading
from podyard.telling import event_facts, event_listing
from podyard.telling.event_facts import EventFacts
from podyard.telling.event_listing import Cells

NAMES: Final = ("events", "event", "ev")
"""What people call the kind."""
OLDEST_S: Final = float(streams.K8SEVENTS.max_age_s)
"""Seconds for which an event is told: as long as sent ones are usually kept."""
READ_S: Final = 15.0
AGAIN_S: Final = 2.0
"""Between two looks for a stream that is missing."""
GATHER_S: Final = 0.25
"""While following: what happens within so short a time is told together."""


class Query(NamedTuple):
    """Which events, and how to show them."""

    namespace: str | None
    """None: every one."""
    about: tuple[str, str] | None
    """Resource and name of the object that they are about; None: any."""
    output: str


def parse(names: Sequence[str], namespace: str | None, about: str, selector: str, output: str) -> Query:
    """What was typed, checked.

    :raises InputError: for what events do not have
    """
    if names:
        raise InputError("events are found by their object", "podyard get events --for KIND/NAME")
    if selector:
        raise InputError("events have no labels", "podyard get events --for KIND/NAME")
    if not about:
        return Query(namespace, None, output)
    kind, name = slashed(about)
    return Query(namespace, (kind.resource, name), output)


async def once(bus: Bus, query: Query) -> int:
    """Print what there is now, the last that happened at the end.

    :raises NotFound: if the CLUSTER stream is not there
    :raises CliError: if it takes too long
    """
    await bus.last_sequence(streams.CLUSTER.name)
    facts = EventFacts(clock.now() - OLDEST_S)
    with anyio.move_on_after(READ_S) as reading:
        async with _reading(bus, query, facts):
            pass
    if reading.cancelled_caught:
        raise CliError(f"the events could not be read within {READ_S:g} s", "is NATS overloaded?")
    found = [event for event in facts.events() if _is_meant(query, event)]
    for line in _lines(query, found, clock.now()):
        print(line)
    if facts.unreadable:
        sys.stderr.write(f"warning: {facts.unreadable} messages that tell of events cannot be read\n")
    if not found and query.output in ("table", "wide"):
        where = f" in namespace {query.namespace}" if query.namespace is not None else ""
        sys.stderr.write(f"No events found{where}.\n")
    return 0


async def follow(bus: Bus, query: Query) -> int:
    """Print what there is, then each event that happens, or happens again, until cancelled.

    :raises NotFound: if the CLUSTER stream is not there
    """
    await bus.last_sequence(streams.CLUSTER.name)
    facts = EventFacts(clock.now() - OLDEST_S)
    changed = anyio.Event()
    printer = _Printer(query)

    def notice() -> None:
        changed.set()

    async with _reading(bus, query, facts, notice):
        while True:
            now = clock.now()
            facts.forget(now - OLDEST_S)
            printer.show([event for event in facts.events() if _is_meant(query, event)], now)
            await changed.wait()
            await anyio.sleep(GATHER_S)
            changed = anyio.Event()


@asynccontextmanager
async def _reading(
    bus: Bus, query: Query, facts: EventFacts, notice: Callable[[], None] = lambda: None
) -> AsyncGenerator[None]:
    """`facts` are kept up to date for as long as the block runs, which begins when all is listed."""

    def deliver(delivery: Delivery) -> None:
        payload = delivery.payload
        if facts.take(delivery.subject, payload, delivery.sequence, delivery.stored_at):
            notice()

    reads, missing = _reads(query), set[str]()

    def miss(stream: str) -> None:
        if stream not in missing:
            missing.add(stream)
            sys.stderr.write(f"warning: there is no stream {stream}: what it would hold is not shown\n")

    listed = [anyio.Event() for _ in reads]
    async with anyio.create_task_group() as tasks:
        for (stream, subjects), done in zip(reads, listed, strict=True):
            tasks.start_soon(partial(_read, bus, stream, subjects, deliver, miss, listed=done))
        for done in listed:
            await done.wait()
        yield
        tasks.cancel_scope.cancel()


def _reads(query: Query) -> list[tuple[str, tuple[str, ...]]]:
    """Streams with what is read of them. What one subject has is had without reading the whole stream."""
    wanted = event_facts.scope(query.namespace)
    return [
        (streams.CLUSTER.name, wanted.cluster),
        (streams.DECISIONS.name, wanted.decisions),
        *((streams.K8SEVENTS.name, (subject,)) for subject in wanted.sent),
    ]


async def _read(
    bus: Bus,
    stream: str,
    subjects: Sequence[str],
    deliver: Callable[[Delivery], None],
    miss: Callable[[str], None],
    *,
    listed: anyio.Event,
) -> None:
    """A stream of events that is missing holds none: what is told from facts is shown meanwhile."""
    while True:
        try:
            await stream_reading.read(bus, stream, subjects, deliver, listed=listed)
        except NotFound:
            miss(stream)
            listed.set()
        await anyio.sleep(AGAIN_S)


def _is_meant(query: Query, event: K8sEvent) -> bool:
    if query.namespace not in (None, event_listing.namespace_of(event)):
        return False
    return query.about in (None, (event.regarding.resource, event.regarding.name))


def _lines(query: Query, found: Sequence[K8sEvent], now: float) -> Iterator[str]:
    if query.output in ("json", "yaml"):
        items = [event_listing.document(event) for event in found]
        whole = {"apiVersion": "v1", "kind": "List", "items": items}
        yield plain.dump(whole, query.output).rstrip("\n")
    elif query.output == "name":
        yield from (f"event/{event_listing.name_of(event)}" for event in found)
    elif found:
        heads, rows = _table(query, found, now)
        columns, width = rendered.widths(heads, rows), _width(query)
        yield from rendered.head(heads, columns, width)
        yield from rendered.body(rows, columns, width)


def _table(query: Query, found: Sequence[K8sEvent], now: float) -> tuple[Cells, list[Cells]]:
    """Headers and rows."""
    wide, spaces = query.output == "wide", query.namespace is None
    rows = [event_listing.row(event, now, wide=wide, namespaces=spaces) for event in found]
    return event_listing.headers(wide=wide, namespaces=spaces), rows


def _width(query: Query) -> int | None:
    """Columns of the terminal; None: nothing is folded."""
    if query.output == "wide" or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


class _Printer:
    """Prints each event once, and again when it has happened again; in columns that keep their width, wider
    only when they must."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._shown: dict[str, int] = {}
        """Counts by name of the event, of those that are still told."""
        self._widths: list[int] | None = None

    def show(self, found: Sequence[K8sEvent], now: float) -> None:
        """Print what is new of these, which are all that there are."""
        names = [event_listing.name_of(event) for event in found]
        fresh = [event for name, event in zip(names, found, strict=True) if self._shown.get(name, 0) != event.count]
        self._shown = {name: event.count for name, event in zip(names, found, strict=True)}
        for line in self._lines(fresh, now):
            print(line, flush=True)

    def _lines(self, fresh: Sequence[K8sEvent], now: float) -> Iterator[str]:
        if self._query.output in ("json", "yaml"):
            for event in fresh:
                document = event_listing.document(event)
                yield plain.line(document) if self._query.output == "json" else f"---\n{plain.dump(document, 'yaml')}"
        elif self._query.output == "name":
            yield from _lines(self._query, fresh, now)
        elif fresh:
            heads, rows = _table(self._query, fresh, now)
            begins, width = self._widths is None, _width(self._query)
            self._widths = rendered.widths(heads, rows, self._widths or ())
            if begins:
                yield from rendered.head(heads, self._widths, width)
            yield from rendered.body(rows, self._widths, width)
