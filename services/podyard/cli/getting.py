"""What `podyard get` is asked for, and printing it once or for as long as it changes."""

import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import anyio

from podyard.bus.connection import Bus
from podyard.cli.errors import CliError, InputError
from podyard.cli.objects_snapshot import read
from podyard.cli.objects_view import ObjectsView
from podyard.cli.render import objects, plain, tables
from podyard.cli.selection import Selector
from podyard.cli.targets import kind_named, object_subjects
from podyard.cluster.changes import Change
from podyard.cluster.informer import Followed, Informer
from podyard.objects.kinds import Kind
from podyard.proto import streams
from podyard.proto.subjects import ObjectSubject
from podyard.runtime import clock

ALL: Final = ("pods", "services", "deployments", "replicasets", "statefulsets", "jobs")
"""What `get all` lists: what `kubectl get all` does, of the kinds that matter here."""


class Query(NamedTuple):
    """Which objects, and how to show them."""

    kinds: tuple[Kind, ...]
    names: tuple[tuple[str, str], ...]
    """(resource, name) of objects asked for by name; empty: all."""
    namespace: str | None
    """None: every one."""
    selector: Selector
    output: str

    @property
    def wide(self) -> bool:
        return self.output == "wide"

    @property
    def namespaces(self) -> bool:
        """Whether to show a column NAMESPACE."""
        return self.namespace is None


def parse(kind: str, names: Sequence[str], namespace: str | None, selector: str, output: str) -> Query:
    """What was typed, checked.

    :raises InputError: for an unknown kind, or words that contradict each other
    """
    words = (kind, *names)
    chosen = Selector.parse(selector)
    if any("/" in word for word in words):
        pairs = [_slashed(word) for word in words]
        kinds = tuple(dict.fromkeys(kind for kind, _ in pairs))
        named = tuple((kind.resource, name) for kind, name in pairs)
    else:
        plurals = ALL if kind == "all" else tuple(filter(None, kind.split(",")))
        kinds = tuple(dict.fromkeys(kind_named(word) for word in plurals))
        if names and len(kinds) != 1:
            raise InputError("names need one kind", "write KIND/NAME for objects of several kinds")
        named = tuple((kinds[0].resource, name) for name in names)
    if named and selector:
        raise InputError("both names and a selector were given", "use one of them")
    if named and namespace is None and any(kind.namespaced for kind in kinds):
        raise InputError("an object cannot be named across all namespaces", "use -n NAMESPACE")
    return Query(kinds, named, namespace, chosen, output)


def _slashed(word: str) -> tuple[Kind, str]:
    kind, slash, name = word.partition("/")
    if not slash or not name:
        raise InputError(f"{word}: expected KIND/NAME, as the other words are")
    return kind_named(kind), name


def select(query: Query, view: ObjectsView) -> list[ObjectSubject]:
    """The objects meant, kind by kind, by namespace and name."""
    return [
        key
        for kind in query.kinds
        for key in view.keys(kind.resource, query.namespace if kind.namespaced and not kind.custom else None)
        if _wanted(query, view, kind, key)
    ]


def _wanted(query: Query, view: ObjectsView, kind: Kind, key: ObjectSubject) -> bool:
    if kind.custom and query.namespace is not None and key.namespace not in ("", query.namespace):
        return False
    if query.names and (key.resource, key.name) not in query.names:
        return False
    return query.selector.matches(view.labels(key))


def missing(query: Query, found: Sequence[ObjectSubject]) -> list[str]:
    """Objects asked for by name that are not there."""
    there = {(key.resource, key.name) for key in found}
    return [f"{resource}/{name}" for resource, name in query.names if (resource, name) not in there]


async def once(bus: Bus, query: Query) -> int:
    """Print what there is now.

    :raises CliError: something that was named is not there
    """
    view = await read(bus, [kind.resource for kind in query.kinds])
    found = select(query, view)
    for line in lines(query, view, found, clock.now()):
        print(line)
    _warn(view, found)
    lost = missing(query, found)
    if lost:
        where = f" in namespace {query.namespace}" if query.namespace else ""
        raise CliError(f"not found{where}: {', '.join(lost)}", "`podyard get KIND -A` lists those there are")
    if not found and query.output in ("table", "wide"):
        scoped = query.namespace is not None and any(kind.namespaced for kind in query.kinds)
        where = f" in namespace {query.namespace}" if scoped else ""
        sys.stderr.write(f"No {', '.join(kind.resource for kind in query.kinds)} found{where}.\n")
    return 0


def _warn(view: ObjectsView, keys: Sequence[ObjectSubject]) -> None:
    """Say what cannot be read, beside the output, which may be read by programs."""
    for note in objects.notes(view, keys):
        sys.stderr.write(f"warning: {note}\n")


def lines(query: Query, view: ObjectsView, found: Sequence[ObjectSubject], now: float) -> Iterator[str]:
    """The whole output, line by line."""
    if query.output in ("json", "yaml"):
        single = len(query.names) == 1
        if found or not single:
            yield objects.documents(view, found, query.output, single=single).rstrip("\n")
    elif query.output == "name":
        for key in found:
            yield objects.name(key)
    else:
        yield from _tables(query, view, found, now)


def _tables(query: Query, view: ObjectsView, found: Sequence[ObjectSubject], now: float) -> Iterator[str]:
    begun = False
    for kind in query.kinds:
        keys = [key for key in found if key.resource == kind.resource]
        if not keys:
            continue
        if begun:
            yield ""
        begun = True
        heads = objects.headers(kind, wide=query.wide, namespaces=query.namespaces)
        rows = [_row(query, view, kind, key, now) for key in keys]
        yield from tables.plain_lines(heads, rows)


def _row(query: Query, view: ObjectsView, kind: Kind, key: ObjectSubject, now: float) -> tuple[str, ...]:
    return objects.row(
        view,
        kind,
        key,
        now,
        wide=query.wide,
        namespaces=query.namespaces,
        prefixed=len(query.kinds) > 1,
    )


async def follow(bus: Bus, query: Query) -> int:
    """Print what there is, then each change as a row (or a document a line), until cancelled."""
    await bus.last_sequence(streams.CLUSTER.name)
    view = ObjectsView()
    printer = _Printer(query, view)
    listed = object_subjects([kind.resource for kind in query.kinds])
    informer = Informer(bus, view, Followed(listed, listed), service="cli", on_changes=printer.changed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        printer.begin()
    return 0


class _Printer:
    """Prints rows in columns that keep the width of the first listing, wider only when they must."""

    def __init__(self, query: Query, view: ObjectsView) -> None:
        self._query = query
        self._view = view
        self._widths: dict[str, list[int]] = {}
        self._begun = False
        self._shown: dict[ObjectSubject, tuple[str, ...]] = {}

    def begin(self) -> None:
        """Print the listing."""
        self._begun = True
        self._print(select(self._query, self._view))

    def changed(self, changes: list[Change]) -> None:
        """Print what changed."""
        if not self._begun:
            return
        touched = dict.fromkeys(ObjectSubject(*change.key) for change in changes)
        current = set(select(self._query, self._view))
        self._print([key for key in touched if key in current])
        for key in touched:
            if key in self._shown and key not in current:
                self._gone(key)

    def _gone(self, key: ObjectSubject) -> None:
        self._shown.pop(key)
        if self._query.output in ("table", "wide") or self._query.output == "name":
            print(f"{objects.name(key)} deleted", flush=True)
        else:
            metadata = {"namespace": key.namespace, "name": key.name}
            print(plain.line({"deleted": True, "resource": key.resource, "metadata": metadata}), flush=True)

    def _print(self, keys: Sequence[ObjectSubject]) -> None:
        self._show(keys)
        _warn(self._view, keys)

    def _show(self, keys: Sequence[ObjectSubject]) -> None:
        if self._query.output in ("json", "yaml"):
            for key in keys:
                self._shown[key] = ()
                form = (
                    plain.line(self._view.document(key))
                    if self._query.output == "json"
                    else "---\n" + plain.dump(self._view.document(key), "yaml").rstrip("\n")
                )
                print(form, flush=True)
            return
        for kind in self._query.kinds:
            self._rows(kind, [key for key in keys if key.resource == kind.resource])

    def _rows(self, kind: Kind, keys: Sequence[ObjectSubject]) -> None:
        if not keys:
            return
        if self._query.output == "name":
            for key in keys:
                if key not in self._shown:
                    self._shown[key] = ()
                    print(objects.name(key), flush=True)
            return
        now = clock.now()
        rows = [(key, _row(self._query, self._view, kind, key, now)) for key in keys]
        fresh = [(key, row) for key, row in rows if self._shown.get(key) != row]
        self._shown.update(fresh)
        for line in self._aligned(kind, [row for _, row in fresh]):
            print(line, flush=True)

    def _aligned(self, kind: Kind, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
        heads = objects.headers(kind, wide=self._query.wide, namespaces=self._query.namespaces)
        widths = self._widths.get(kind.resource)
        lines = list(rows) if widths else [heads, *rows]
        widths = widths or [0] * len(heads)
        for line in lines:
            widths = [max(width, len(cell)) for width, cell in zip(widths, line, strict=True)]
        self._widths[kind.resource] = widths
        for line in lines:
            yield "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
