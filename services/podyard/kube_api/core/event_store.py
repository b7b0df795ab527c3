"""What the API answers events from: those that were sent, and those that are told from what is stored
(`event_telling`), each for as long as events are kept. Pure.

Events lie in several streams, and some in none, so their versions are numbers of this instance: they begin
with the microsecond when it began, and grow by one with each step. A version of another instance, or of this
one before it was started again, lies outside of what this one gave out, and is answered 410.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from uuid import UUID

from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core import errors
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.history import History
from podyard.kube_api.core.items import Item, Step, path_of
from podyard.kube_api.core.shelves import Scope, Shelf
from podyard.kube_api.core.store import Reader
from podyard.objects.documents import Document, mapping
from podyard.objects.kinds import StoredObject
from podyard.objects.meta import ObjectMeta
from podyard.proto.operations import K8sEvent
from podyard.telling import event_listing, events
from podyard.telling.pod_conditions import NOTHING, Evidence

EVENTS: Final = "events"
"""The resource, in both groups."""
HISTORY_BYTES: Final = 16 * 1024 * 1024
"""Of steps that are remembered."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all events: some 30,000. Above it those go first that would end first."""
EVENT_BYTES: Final = 1536
"""What an event takes besides its message and what a client wrote."""

_NO_LABELS: Final = StoredObject()


class EventMoment:
    """One version of an event; its document is made when it is asked for."""

    __slots__ = ("event", "evidence", "fault", "key", "stored", "subject", "viewed")

    def __init__(self, event: K8sEvent, key: ObjectKey, subject: str = "", sequence: int = 0) -> None:
        """
        :param key: as `key_of` says
        :param subject: on which it lies; empty: it is told from what is stored
        :param sequence: of the stream of events
        """
        self.event = event
        self.subject = subject
        self.key = key
        self.stored = Stored(sequence, bytes(event.written[0]) if event.written else b"", deleted=False)
        self.viewed: Any = _viewed(event_listing.written_of(event)) if event.written else _NO_LABELS
        self.fault = ""
        self.evidence: Evidence = NOTHING

    @property
    def cost(self) -> int:
        """About the bytes that it takes."""
        return EVENT_BYTES + len(self.event.message) + 2 * len(self.stored.payload)

    def document(self, shown: Mapping[str, str]) -> Document:
        """A core/v1 Event."""
        found = event_listing.document(self.event)
        found["metadata"].setdefault("uid", _uid(self.key))
        return found


def _viewed(written: Document) -> StoredObject:
    metadata = mapping(written, "metadata")
    labels = {str(key): str(value) for key, value in mapping(metadata, "labels").items()}
    return StoredObject(metadata=ObjectMeta(labels=labels, uid=str(metadata.get("uid") or "")))


def _uid(key: ObjectKey) -> str:
    """Of an event that was given none: the same wherever it is told."""
    return str(UUID(bytes=blake2b(path_of(key).encode(), digest_size=16).digest(), version=4))


def key_of(event: K8sEvent) -> ObjectKey:
    """Where the API shows an event."""
    return ObjectKey(EVENTS, event_listing.namespace_of(event), event_listing.name_of(event))


def _nothing() -> None:
    """Nobody waits."""


class _Deleted(NamedTuple):
    """Somebody deleted an event: what is told of from before then is not told again."""

    at: float
    subject: str
    sequence: int


class EventStore:
    """All events as of now. Whoever feeds it says what the time is by `expire`."""

    def __init__(self, began_at: float, kept_s: float, *, most_bytes: int = MOST_BYTES) -> None:
        """
        :param began_at: of this instance, seconds since 1970, UTC
        :param kept_s: how long an event is kept
        :param most_bytes: of all of them
        """
        self.reader: Reader | None = None
        """Who is told."""
        self.catch_up: Callable[[], None] = _nothing
        """Called before anything is read: whoever tells may wait until somebody looks."""
        self.history = _OwnHistory(HISTORY_BYTES)
        self._position = int(began_at * 1e6)
        self.history.forget(self._position)
        self.history.newest = self._position
        self._kept_s = kept_s
        self._most_bytes = most_bytes
        self._since = 0.0
        """What ended before then is not told any more."""
        self._shelf = Shelf()
        self._deleted: dict[str, _Deleted] = {}
        self._ends: dict[str, float] = {}
        """By path of what is shown, or was deleted: when it ends."""
        self._order: list[tuple[float, str]] = []
        """A heap with one entry a path: not after its end."""
        self.bytes = 0

    # Reading: a Source

    @property
    def position(self) -> int:
        """The version of what there is now."""
        self.catch_up()
        return self._position

    def __len__(self) -> int:
        return len(self._shelf.items)

    def item(self, key: ObjectKey) -> Item | None:
        """The event as it is now."""
        self.catch_up()
        return self._shelf.items.get(path_of(key))

    def moment(self, key: ObjectKey) -> EventMoment | None:
        """The same as it lies here."""
        self.catch_up()
        return self._moment(path_of(key))

    def last_of(self, key: ObjectKey) -> tuple[str, int]:
        """Subject and sequence of what lies in the stream in the place of an event, deleted ones included;
        empty and 0: nothing does."""
        path = path_of(key)
        moment, gone = self._shelf.items.get(path), self._deleted.get(path)
        if moment is not None:
            found = _of(moment)
            return found.subject, found.stored.sequence
        return ("", 0) if gone is None else (gone.subject, gone.sequence)

    def items(self, scope: Scope, *, start: str = "") -> Iterator[Item]:
        """As of the store."""
        self.catch_up()
        return self._shelf.between(scope.namespace, start)

    def items_at(self, scope: Scope, version: int, *, start: str = "") -> list[Item]:
        """As of the store."""
        return self._shelf.as_before(self.history.before(scope.resource, version), scope.namespace, start)

    def ahead(self, version: int) -> ApiError:
        """A version above the last one is another instance's."""
        return errors.expired(f"too old resource version: {version} ({self._position})")

    # Being told

    def is_over(self, at: float) -> bool:
        """Whether what was told at a time (seconds since 1970) has ended by now."""
        return at + self._kept_s <= self._since

    def sent(self, subject: str, event: K8sEvent, sequence: int, stored_at: float) -> None:
        """An event lies in its stream."""
        key, ends_at = key_of(event), stored_at + self._kept_s
        if ends_at <= self._since:
            return
        path = path_of(key)
        if event.deleted:
            self._deleted[path] = _Deleted(event.at, subject, sequence)
            self._ending(path, ends_at)
            self._put(path, None)
            return
        self._deleted.pop(path, None)
        self._ending(path, ends_at)
        self._put(path, EventMoment(event, key, subject, sequence))

    def told(self, event: K8sEvent, *, counts: bool = False) -> None:
        """An event is told from what is stored.

        :param counts: it happened once more if it is known from before; else it is the same
        """
        key, ends_at = key_of(event), event.at + self._kept_s
        path = path_of(key)
        gone, known = self._deleted.get(path), self._moment(path)
        if self.is_over(event.at) or (gone is not None and event.at <= gone.at):
            return
        if known is not None and event.at <= known.event.at:
            return
        if counts and known is not None:
            event = events.again(known.event, event)
        lies = self.last_of(key)
        self._deleted.pop(path, None)
        self._ending(path, ends_at)
        self._put(path, EventMoment(event, key, *lies))

    def withdraw(self, key: ObjectKey) -> None:
        """An event that was told is told no more."""
        moment = self._moment(path_of(key))
        if moment is not None and not moment.subject:
            self._put(path_of(key), None)

    def expire(self, now: float) -> None:
        """What is too old ends."""
        self._since = now
        while self._order and self._order[0][0] <= now:
            self._end_oldest()

    # ---- parts ---------------------------------------------------------------------------------------------

    def _moment(self, path: str) -> EventMoment | None:
        item = self._shelf.items.get(path)
        return None if item is None else _of(item)

    def _ending(self, path: str, ends_at: float) -> None:
        if path not in self._ends:
            heapq.heappush(self._order, (ends_at, path))
        self._ends[path] = ends_at

    def _end_oldest(self) -> None:
        """The one that was to end first ends, or has its new end noted."""
        noted, path = heapq.heappop(self._order)
        ends_at = self._ends[path]
        if ends_at > noted:
            heapq.heappush(self._order, (ends_at, path))
            return
        del self._ends[path]
        self._deleted.pop(path, None)
        self._put(path, None)

    def _put(self, path: str, moment: EventMoment | None) -> None:
        before = self._shelf.items.get(path)
        if before is None and moment is None:
            return
        self._position += 1
        after = None if moment is None else Item(path, moment, self._position)
        if before is not None:
            self.bytes -= _of(before).cost
        if after is None:
            self._shelf.remove(path)
        else:
            self._shelf.put(after)
            self.bytes += _of(after).cost
        step = Step(EVENTS, path, before, after, self._position, self._position)
        self.history.newest = self._position
        self.history.add((step,))
        if self.reader is not None:
            self.reader.offer((step,))
        while self.bytes > self._most_bytes and self._order:
            self._end_oldest()


class _OwnHistory(History):
    """Of versions that this instance gave out, and of no others."""

    newest = 0

    def reaches(self, resource: str, version: int) -> bool:
        """Whether all that happened since a version is known."""
        return version <= self.newest and super().reaches(resource, version)


def _of(item: Item) -> EventMoment:
    moment = item.moment
    assert isinstance(moment, EventMoment), "events alone lie here"
    return moment
