"""What `podyard get` is asked for, and printing it once or for as long as it changes."""

import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cli import objects_client, pod_evidence, selection, stored_objects
from podyard.cli.errors import CliError, InputError
from podyard.cli.render import plain, tables
from podyard.cli.targets import kind_named, slashed
from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.objects import secrets
from podyard.objects.kinds import Kind
from podyard.objects.selectors import Selector
from podyard.proto import streams, subjects
from podyard.proto.message import ObjectRef
from podyard.runtime import clock
from podyard.telling import listing
from podyard.telling.objects import Objects

ALL: Final = (
    *("pods", "replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "statefulsets"),
    *("cronjobs", "jobs"),
)
"""What `get all` lists: what `kubectl get all` does, of the kinds that matter here."""
MOST_NAMED: Final = 32
"""Objects that are read one by one, up to four readings each; of more by name the whole kinds are."""


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

    @property
    def resources(self) -> list[str]:
        return [kind.resource for kind in self.kinds]

    @property
    def room(self) -> bool:
        """Whether to show how full nodes are."""
        return self.output in ("table", "wide") and subjects.NODES in self.resources


def parse(kind: str, names: Sequence[str], namespace: str | None, selector: str, output: str) -> Query:
    """What was typed, checked.

    :raises InputError: for an unknown kind, or words that contradict each other
    """
    words = (kind, *names)
    chosen = selection.parse(selector)
    if any("/" in word for word in words):
        pairs = [slashed(word) for word in words]
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


def select(query: Query, objects: Objects) -> list[ObjectKey]:
    """The objects meant, kind by kind, by namespace and name."""
    return [key for kind in query.kinds for key in objects.keys(kind.resource) if _wanted(query, objects, kind, key)]


def is_meant(query: Query, objects: Objects, key: ObjectKey) -> bool:
    """Whether an object is there and among those that `select` finds."""
    kind = next((kind for kind in query.kinds if kind.resource == key.resource), None)
    return kind is not None and objects.has(key) and _wanted(query, objects, kind, key)


def _wanted(query: Query, objects: Objects, kind: Kind, key: ObjectKey) -> bool:
    if not _in_scope(query, kind, key):
        return False
    if query.names and (key.resource, key.name) not in query.names:
        return False
    return query.selector.matches(objects.labels(key))


def _in_scope(query: Query, kind: Kind, key: ObjectKey) -> bool:
    """Whether an object is in the namespace that was asked for, or in none because its kind has none."""
    if query.namespace is None or not (kind.namespaced or kind.custom):
        return True
    return key.namespace == query.namespace or (kind.custom and not key.namespace)


def missing(query: Query, found: Sequence[ObjectKey]) -> list[str]:
    """Objects asked for by name that are not there."""
    there = {(key.resource, key.name) for key in found}
    return [f"{resource}/{name}" for resource, name in query.names if (resource, name) not in there]


async def once(bus: Bus, query: Query) -> int:
    """Print what there is now.

    :raises CliError: something that was named is not there
    """
    objects = await _read(bus, query)
    found = select(query, objects)
    if query.output in ("json", "yaml"):
        await _reveal(bus, objects, found)
        if fault := await pod_evidence.read(bus, objects, found, whole=0 < len(found) <= MOST_NAMED):
            sys.stderr.write(f"warning: whether pods are scheduled is not shown of all: {fault}\n")
    for line in lines(query, objects, found, clock.now()):
        print(line)
    _warn(objects, found)
    lost = missing(query, found)
    if lost:
        where = f" in namespace {query.namespace}" if query.namespace else ""
        raise CliError(f"not found{where}: {', '.join(lost)}", "`podyard get KIND -A` lists those there are")
    if not found and query.output in ("table", "wide"):
        scoped = query.namespace is not None and any(kind.namespaced for kind in query.kinds)
        where = f" in namespace {query.namespace}" if scoped else ""
        sys.stderr.write(f"No {', '.join(kind.resource for kind in query.kinds)} found{where}.\n")
    return 0


async def _reveal(bus: Bus, objects: Objects, keys: Sequence[ObjectKey]) -> None:
    """Have the api show what Secrets hold, as a whole object is asked for. What it does not show is told,
    beside the output."""
    wanted = [key for key in keys if key.resource == secrets.RESOURCE]
    if not wanted:
        return
    refs = [ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name) for key in wanted]
    try:
        shown = await objects_client.reveal(bus, refs)
    except (BusError, CliError) as error:
        sys.stderr.write(f"warning: values of secrets are not shown: {error}\n")
        return
    for key, one in zip(wanted, shown, strict=True):
        objects.revealed[key] = one.data
        if one.fault:
            sys.stderr.write(f"warning: values of secret/{key.name} are not shown: {one.fault}\n")


async def _read(bus: Bus, query: Query) -> Objects:
    """Of a few objects by name what lies on their own subjects, else all of their kinds."""
    if 0 < len(query.names) <= MOST_NAMED and not query.room:
        return await stored_objects.read_named(bus, named(query))
    return await stored_objects.read(bus, query.resources, room=query.room)


def named(query: Query) -> list[ObjectKey]:
    """Where the objects lie that were asked for by name; a custom one in its namespace or in none."""
    kinds = {kind.resource: kind for kind in query.kinds}
    found: list[ObjectKey] = []
    for resource, name in query.names:
        kind = kinds[resource]
        if query.namespace and (kind.namespaced or kind.custom):
            found.append(ObjectKey(resource, query.namespace, name))
        if kind.custom or not kind.namespaced:
            found.append(ObjectKey(resource, "", name))
    return found


def _warn(objects: Objects, keys: Sequence[ObjectKey]) -> None:
    """Say what cannot be read, beside the output, which may be read by programs."""
    for note in listing.notes(objects, keys):
        sys.stderr.write(f"warning: {note}\n")


def lines(query: Query, objects: Objects, found: Sequence[ObjectKey], now: float) -> Iterator[str]:
    """The whole output, line by line."""
    if query.output in ("json", "yaml"):
        single = len(query.names) == 1
        if found or not single:
            yield plain.dump(listing.document(objects, found, single=single), query.output).rstrip("\n")
    elif query.output == "name":
        for key in found:
            yield listing.name(key)
    else:
        yield from _tables(query, objects, found, now)


def _tables(query: Query, objects: Objects, found: Sequence[ObjectKey], now: float) -> Iterator[str]:
    begun = False
    for kind in query.kinds:
        keys = [key for key in found if key.resource == kind.resource]
        if not keys:
            continue
        if begun:
            yield ""
        begun = True
        heads = listing.headers(kind, wide=query.wide, namespaces=query.namespaces)
        rows = [_row(query, objects, kind, key, now) for key in keys]
        yield from tables.plain_lines(heads, rows)


def _row(query: Query, objects: Objects, kind: Kind, key: ObjectKey, now: float) -> tuple[str, ...]:
    return listing.row(
        objects,
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
    objects = stored_objects.nothing()
    printer = _Printer(query, objects)
    listed = stored_objects.of_names(named(query)) if query.names else ()
    if not listed or query.room:
        listed = stored_objects.of_resources(query.resources, room=query.room)
    async with stored_objects.following(bus, objects, listed, printer.changed):
        printer.begin()
        await anyio.sleep_forever()
    return 0


class _Printer:
    """Prints rows in columns that keep the width of the first listing, wider only when they must."""

    def __init__(self, query: Query, objects: Objects) -> None:
        self._query = query
        self._objects = objects
        self._widths: dict[str, list[int]] = {}
        self._begun = False
        self._shown: dict[ObjectKey, tuple[str, ...]] = {}

    def begin(self) -> None:
        """Print the listing."""
        self._begun = True
        self._print(select(self._query, self._objects))

    def changed(self, changes: Sequence[Change]) -> None:
        """Print what changed."""
        if not self._begun:
            return
        touched = dict.fromkeys(ObjectKey(*change.key) for change in changes)
        current = {key for key in touched if is_meant(self._query, self._objects, key)}
        self._print([key for key in touched if key in current])
        for key in touched:
            if key in self._shown and key not in current:
                self._gone(key)

    def _gone(self, key: ObjectKey) -> None:
        self._shown.pop(key)
        if self._query.output in ("table", "wide") or self._query.output == "name":
            print(f"{listing.name(key)} deleted", flush=True)
        else:
            metadata = {"namespace": key.namespace, "name": key.name}
            print(plain.line({"deleted": True, "resource": key.resource, "metadata": metadata}), flush=True)

    def _print(self, keys: Sequence[ObjectKey]) -> None:
        self._show(keys)
        _warn(self._objects, keys)

    def _show(self, keys: Sequence[ObjectKey]) -> None:
        if self._query.output in ("json", "yaml"):
            for key in keys:
                self._shown[key] = ()
                form = (
                    plain.line(self._objects.document(key))
                    if self._query.output == "json"
                    else "---\n" + plain.dump(self._objects.document(key), "yaml").rstrip("\n")
                )
                print(form, flush=True)
            return
        for kind in self._query.kinds:
            self._rows(kind, [key for key in keys if key.resource == kind.resource])

    def _rows(self, kind: Kind, keys: Sequence[ObjectKey]) -> None:
        if not keys:
            return
        if self._query.output == "name":
            for key in keys:
                if key not in self._shown:
                    self._shown[key] = ()
                    print(listing.name(key), flush=True)
            return
        now = clock.now()
        rows = [(key, _row(self._query, self._objects, kind, key, now)) for key in keys]
        fresh = [(key, row) for key, row in rows if self._shown.get(key) != row]
        self._shown.update(fresh)
        for line in self._aligned(kind, [row for _, row in fresh]):
            print(line, flush=True)

    def _aligned(self, kind: Kind, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
        heads = listing.headers(kind, wide=self._query.wide, namespaces=self._query.namespaces)
        widths = self._widths.get(kind.resource)
        lines = list(rows) if widths else [heads, *rows]
        widths = widths or [0] * len(heads)
        for line in lines:
            widths = [max(width, len(cell)) for width, cell in zip(widths, line, strict=True)]
        self._widths[kind.resource] = widths
        for line in lines:
            yield "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
