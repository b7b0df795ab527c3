"""WATCH: what a watch begins with, and what each watcher is told. Pure: whoever sends calls `take`.

A watch from a version gets every step after it, or is told that nobody knows them any more: 410. What an
object's watchers are told of it is written once. A watcher that does not take what it is told is let go.

Source: kubernetes v1.36.2, staging/src/k8s.io/apiserver/pkg/storage/cacher (cacher.go Watch, cache_watcher.go
convertToWatchEvent), apimachinery/pkg/apis/meta/internalversion (defaults.go, validation/validation.go).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core import listing
from podyard.kube_api.core.errors import ApiError, Cause, expired
from podyard.kube_api.core.forms import ADDED, DELETED, MODIFIED, Form
from podyard.kube_api.core.history import Gap
from podyard.kube_api.core.items import Item, Step
from podyard.kube_api.core.listing import NOT_OLDER, ListOptions
from podyard.kube_api.core.selecting import ALL, Selection
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Source

QUEUE_BYTES: Final = 8 * 1024 * 1024
"""Of what one watcher was told and has not taken."""

TAKE_BYTES: Final = 256 * 1024
"""Of lines that are taken at once, the last of them not counted."""

_WORD_BYTES: Final = 64
"""What a line takes in a queue besides its bytes: other watchers have the same."""


class _Told(NamedTuple):
    """An event that is written when it is sent."""

    type_: str
    item: Item


class _Mark(NamedTuple):
    """A bookmark."""

    version: int
    initial_end: bool = False


_Entry: TypeAlias = bytes | _Told | _Mark


class Watcher:
    """One watch: a queue of what it is told, which its sender takes."""

    def __init__(
        self,
        scope: Scope,
        form: Form,
        selection: Selection,
        *,
        after: int,
        backlog: Iterator[_Told | _Mark],
        bookmarks: bool,
        wake: Callable[[], None],
        most_bytes: int = QUEUE_BYTES,
    ) -> None:
        """
        :param after: it is told of the steps after this position
        :param backlog: what it begins with
        :param bookmarks: whether it is told how far it has come
        :param wake: called when there is something to take again, or it was let go
        :param most_bytes: what it may leave lying
        """
        self.scope = scope
        self.form = form
        self.after = after
        self.over = False
        """Nothing more will come: what lies there is the last."""
        self.too_slow = False
        """It was let go, as it did not take what it was told."""
        self.bookmarks = bookmarks
        self._selection = selection
        self._all = selection.everything
        self._prefix = f"{scope.namespace}/" if scope.namespace else ""
        self._backlog: Iterator[_Told | _Mark] | None = backlog
        self._queue: deque[_Entry] = deque()
        self._due: list[_Entry] = []
        self._held = 0
        self._most_bytes = most_bytes
        self._wake = wake
        self._first = True
        self._late = form.late
        self._written = {type_: f"{form.key} {type_}" for type_ in (ADDED, MODIFIED, DELETED)}

    # Taking

    @property
    def waiting(self) -> bool:
        """Whether there may be something to take."""
        return self._backlog is not None or bool(self._queue) or bool(self._due)

    @property
    def done(self) -> bool:
        """Whether it is over, and all was taken."""
        return self.over and not self.waiting

    def due(self) -> list[ObjectKey]:
        """Of which objects `take` tells next, as far as they are written only then: whoever reveals values of
        Secrets asks for theirs before it takes."""
        if not self._due:
            self._due = self._next()
        return [one.item.key for one in self._due if isinstance(one, _Told)]

    def take(self, now: float) -> list[bytes]:
        """Lines to send, in order: about `TAKE_BYTES` of them. `now`: seconds since 1970."""
        due, self._due = self._due or self._next(), []
        lines: list[bytes] = []
        for entry in due:
            if isinstance(entry, bytes):
                lines.append(entry)
                continue
            first = self._first and not lines
            if isinstance(entry, _Told):
                lines.append(self.form.event(entry.type_, entry.item, now, first=first))
            else:
                lines.append(self.form.bookmark(entry.version, initial_end=entry.initial_end, first=first))
        self._first = self._first and not lines
        return lines

    def _next(self) -> list[_Entry]:
        found: list[_Entry] = []
        left = TAKE_BYTES
        while left > 0 and self._backlog is not None:
            begun = next(self._backlog, None)
            if begun is None:
                self._backlog = None
                break
            left -= _cost(begun)
            found.append(begun)
        queue = self._queue
        if self._held <= left:
            found += queue
            queue.clear()
            self._held = 0
        while left > 0 and queue:
            entry = queue.popleft()
            cost = _cost(entry)
            self._held -= cost
            left -= cost
            found.append(entry)
        return found

    # Being told

    def offer(self, step: Step, plain: str, written: dict[str, bytes]) -> None:
        """A step was made.

        :param plain: what it is to whom all objects are meant
        :param written: lines of this step that were written for others, by form and type
        """
        if self.over or step.at <= self.after or not step.path.startswith(self._prefix):
            return
        type_ = plain if self._all else _type_for(step, self._selection)
        if type_ is None:
            return
        if self._late:
            item = _item_of(step, type_)
            self._put(_Told(type_, item), item.bytes)
            return
        key = self._written[type_]
        line = written.get(key)
        if line is None:
            line = written[key] = self.form.event(type_, _item_of(step, type_), 0.0, first=False)
        self._put(line, _WORD_BYTES + len(line))

    def mark(self, position: int) -> None:
        """It has been told of all that happened up to `position`."""
        if self.bookmarks and not self.over and position >= self.after:
            self._put(_Mark(position), _WORD_BYTES)

    def expire(self, message: str) -> None:
        """What happened next is not known: it must begin anew."""
        self.fail(expired(message))

    def fail(self, error: ApiError) -> None:
        """It ends with a refusal."""
        if not self.over:
            self.over = True
            line = error_line(error)
            self._put(line, _WORD_BYTES + len(line))

    def _put(self, entry: _Entry, cost: int) -> None:
        idle = not self._queue
        self._queue.append(entry)
        self._held += cost
        if self._held > self._most_bytes and len(self._queue) > 1:
            self.over = self.too_slow = True
            self._queue.clear()
            self._backlog, self._held = None, 0
            self._wake()
        elif idle:
            self._wake()


def _cost(entry: _Entry) -> int:
    if isinstance(entry, bytes):
        return _WORD_BYTES + len(entry)
    return entry.item.bytes if isinstance(entry, _Told) else _WORD_BYTES


def error_line(error: ApiError) -> bytes:
    """A watch that fails after it has begun: the refusal as an event."""
    return b'{"type":"ERROR","object":%b}\n' % msgspec.json.encode(error.status())


class Watchers:
    """All watches of one store: give it to the store as its reader."""

    def __init__(self, store: Source) -> None:
        self._store = store
        self._by_resource: dict[str, dict[Watcher, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_resource.values()))

    def open(
        self,
        scope: Scope,
        form: Form,
        options: ListOptions,
        selection: Selection = ALL,
        *,
        wake: Callable[[], None],
        most_bytes: int = QUEUE_BYTES,
    ) -> Watcher:
        """Begin a watch. A version that is too old, or not there yet, is told as an event.

        :raises ApiError: if the parameters are wrong
        """
        settled = settle(options)
        position, asked = self._store.position, listing.parse_version(settled.version, of_list=False)
        backlog: Iterator[_Told | _Mark] = iter(())
        fault: ApiError | None = None
        after = position
        if settled.send_initial:
            if asked > position:
                fault = self._store.ahead(asked)
            else:
                mark = _Mark(position, initial_end=True) if settled.bookmarks else None
                items = self._store.items(scope)
                meant = list(items if selection.everything else filter(selection.selects, items))
                backlog = _initial(meant, mark)
        elif asked and self._store.history.reaches(scope.resource, asked):
            after = max(asked, position)
            backlog = _told(self._store.history.since(scope.resource, asked), scope, selection)
        elif asked:
            floor = self._store.history.floor(scope.resource)
            fault = expired(f"too old resource version: {asked} ({floor})")
        watcher = Watcher(
            scope,
            form,
            selection,
            after=after,
            backlog=backlog,
            bookmarks=settled.bookmarks,
            wake=wake,
            most_bytes=most_bytes,
        )
        if fault is not None:
            watcher.fail(fault)
        else:
            self._by_resource.setdefault(scope.resource, {})[watcher] = None
        return watcher

    def close(self, watcher: Watcher) -> None:
        """A watch has ended."""
        found = self._by_resource.get(watcher.scope.resource, {})
        found.pop(watcher, None)
        if not found:
            self._by_resource.pop(watcher.scope.resource, None)

    def mark(self) -> None:
        """Tell all who want bookmarks how far they have come: once a minute, and before they end."""
        position = self._store.position
        for watchers in self._by_resource.values():
            for watcher in watchers:
                watcher.mark(position)

    # Reader of the store

    def offer(self, steps: Sequence[Step]) -> None:
        """Steps were made."""
        for step in steps:
            watchers = self._by_resource.get(step.resource)
            if watchers:
                plain, written = _plain_type(step), dict[str, bytes]()
                for watcher in watchers:
                    watcher.offer(step, plain, written)

    def missed(self, gap: Gap) -> None:
        """Of what happened in a gap the outcome alone is known: whoever has come to a version in it cannot be
        told what came after."""
        for watchers in self._by_resource.values():
            for watcher in watchers:
                if gap.holds(watcher.after):
                    watcher.expire(f"too old resource version: {watcher.after} ({gap.to})")

    def forgotten(self, position: int) -> None:
        """Nobody can be told what happened."""
        for watchers in self._by_resource.values():
            for watcher in watchers:
                watcher.expire(f"too old resource version: {watcher.after} ({position})")


def settle(options: ListOptions) -> ListOptions:
    """A watch's parameters with their defaults: one from no version, or from 0, begins with what there is.

    :raises ApiError: if they contradict each other
    """
    if options.send_initial is None and not options.match and options.version in ("", "0"):
        options = options._replace(send_initial=True, match=NOT_OLDER)
    causes: list[Cause] = []
    field, match = "resourceVersionMatch", options.match
    if options.send_initial is not None and match != NOT_OLDER:
        told = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        causes.append(listing.forbidden_field(field, told))
    if match:
        if options.send_initial is None:
            told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(listing.forbidden_field(field, told))
        if match != NOT_OLDER:
            causes.append(listing.unknown_match(match, (NOT_OLDER,)))
        if options.more:
            told = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(listing.forbidden_field(field, told))
    listing.refuse(causes)
    return options


def _initial(items: Sequence[Item], mark: _Mark | None) -> Iterator[_Told | _Mark]:
    for item in items:
        yield _Told(ADDED, item)
    if mark is not None:
        yield mark


def _told(steps: Sequence[Step], scope: Scope, selection: Selection) -> Iterator[_Told | _Mark]:
    prefix = f"{scope.namespace}/" if scope.namespace else ""
    for step in steps:
        if step.path.startswith(prefix) and (type_ := _type_for(step, selection)) is not None:
            yield _Told(type_, _item_of(step, type_))


def _plain_type(step: Step) -> str:
    """What a step is to whom all objects are meant."""
    return ADDED if step.before is None else DELETED if step.after is None else MODIFIED


def _type_for(step: Step, selection: Selection) -> str | None:
    """What a step is to whom some objects are meant: one that begins to be meant came, one that ceases
    went."""
    if selection.everything:
        return _plain_type(step)
    was = step.before is not None and selection.selects(step.before)
    is_ = step.after is not None and selection.selects(step.after)
    if not was and not is_:
        return None
    return MODIFIED if was and is_ else ADDED if is_ else DELETED


def _item_of(step: Step, type_: str) -> Item:
    return step.gone if type_ == DELETED else step.last
