"""Streams as files, taken while others write (docs/rules.md, copy-ends-where-the-stream-ends).

The server's own snapshots would not do: a binding, or the fence, that is written again while one is taken
would be missing. So a copy is read as everybody reads (`watch`), until there is a moment at which the stream
ends where the reader is; what had been replaced by then is left out. That copy is the stream as it was at
that moment.

The sequences are kept: they are positions, resourceVersions, and what writers compare. LEASES is left out:
who led does so no more.
"""

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, Self, cast

import anyio
import msgspec

from podyard.bus import archive
from podyard.bus._api import SECOND_NS, StreamState
from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.watch import EVERYTHING, Watch, WatchSpec
from podyard.proto import streams

BACKED_UP: Final = tuple(spec for spec in streams.ALL_STREAMS if spec is not streams.LEASES)
"""In their order: CLUSTER first, so that no record is older than what it is about."""

MANIFEST: Final = "backup.json"
FORMAT: Final = 1
STILL_WITHIN_S: Final = 120.0
"""For a moment without a write. At 4,000 writes a second, one in 3,000 looks finds one."""

LOOK_EVERY_S: Final = 0.005
COPY_BYTES: Final = 1024 * 1024

Progress = Callable[[int, int], None]
"""Told how many of how many: messages of a backup, bytes of a restore."""


class KeptStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stream in a backup. `first` and `last` are sequences: of its first message, and the last given.
    `size` is the file's, `unpacked` what is in it, both in bytes."""

    name: str
    file: str
    messages: int
    first: int
    last: int
    size: int
    unpacked: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backup holds; written last, so that a directory without it is none. `at` is seconds since 1970,
    UTC."""

    format: int
    at: float
    streams: tuple[KeptStream, ...]


class NeverStillError(Exception):
    """The stream `name` was written without a pause."""

    def __init__(self, name: str, within_s: float) -> None:
        self.name = name
        super().__init__(f"the stream {name} was written all the time: in {within_s:g} s it never ended where we were")


async def back_up(
    bus: Bus, spec: streams.StreamSpec, directory: Path, told: Progress, *, still_within_s: float = STILL_WITHIN_S
) -> KeptStream:
    """Copy a stream into files of the directory.

    :raises NeverStillError: there was no moment without a write
    :raises NotFound: if there is no such stream
    :raises OSError: the disk is full, or refuses
    """
    await bus.last_sequence(spec.name)
    raw = directory / f"{spec.name}.part"
    with _Copy(raw, told) as copy:
        state = await _read(bus, spec, copy, still_within_s)
        copy.end()
        return await anyio.to_thread.run_sync(_finished, spec, raw, copy.target, state)


async def _read(bus: Bus, spec: streams.StreamSpec, copy: "_Copy", still_within_s: float) -> StreamState:
    """Read until there is a moment without a write; the stream as it was then."""
    watch = bus.watch(WatchSpec(stream=spec.name, list_subjects=EVERYTHING, follow_subjects=EVERYTHING), copy)
    copy.reads(watch)
    state: StreamState | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        with anyio.move_on_after(still_within_s):
            state = await _still(bus, watch, copy)
        tasks.cancel_scope.cancel()
    if state is None:
        raise NeverStillError(spec.name, still_within_s)
    return state


async def _still(bus: Bus, watch: Watch, copy: "_Copy") -> StreamState:
    """The stream at a moment at which it ended where the reader was: what lived then, it had read."""
    while True:
        listings, position = watch.listings, watch.position
        state = (await bus.api.stream_info(watch.spec.stream)).state
        if copy.is_complete and watch.listings == listings and state.last_seq <= position:
            return state
        await anyio.sleep(LOOK_EVERY_S)


class _Copy:
    """A `WatchSink` that writes what it reads into a file."""

    def __init__(self, path: Path, told: Progress) -> None:
        self._path = path
        self._told = told
        self._file = path.open("wb")
        self._last = self._count = 0
        self._watch: Watch | None = None
        self.target = 0
        """Behind this sequence a message may replace one that was read before."""
        self.is_complete = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._path.unlink(missing_ok=True)

    def reads(self, watch: Watch) -> None:
        """The watch that tells it."""
        self._watch = watch

    def end(self) -> None:
        """Write no more."""
        self._file.close()

    def listing(self, target: int, reason: str) -> None:
        """Begin anew: what was read is not whole."""
        self._file.seek(0)
        self._file.truncate()
        self._last = self._count = 0
        self.target, self.is_complete = target, False

    def deliver(self, delivery: Delivery) -> None:
        """Write it, once."""
        if delivery.sequence <= self._last or self._file.closed:
            return
        self._last = delivery.sequence
        self._count += 1
        stored_ns = round(delivery.stored_at * SECOND_NS)
        entry = archive.Entry(delivery.subject, delivery.sequence, stored_ns, delivery.head, delivery.payload)
        self._file.write(archive.encoded(entry))
        held = self._watch.held if self._watch is not None else 0
        self._told(self._count, max(self._count, held))

    def synced(self, position: int) -> None:
        """All is listed; what is followed is written, too."""
        self.is_complete = True

    def advanced(self, position: int) -> None:
        """Nothing for us."""

    def contact(self, fresh: bool) -> None:
        """The connection comes back by itself."""


def _finished(spec: streams.StreamSpec, raw: Path, target: int, state: StreamState) -> KeptStream:
    """What lived at the end, out of all that was read, in a file of its own."""
    last = state.last_seq
    newest: dict[str, int] = {}
    if spec.max_msgs_per_subject == 1:
        with raw.open("rb") as source:
            newest = {one.subject: one.sequence for one in archive.entries(source) if target < one.sequence <= last}
    first = count = unpacked = 0
    path = raw.with_suffix(".gz")
    with raw.open("rb") as source, path.open("xb") as sink:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=sink, mtime=0) as packed:
            for one in archive.entries(source):
                if one.sequence <= last and newest.get(one.subject, one.sequence) == one.sequence:
                    unpacked += packed.write(archive.encoded(one))
                    first = first or one.sequence
                    count += 1
        sink.flush()
        os.fsync(sink.fileno())
    return KeptStream(
        name=spec.name,
        file=path.name,
        messages=count,
        first=first or last + 1,
        last=last,
        size=path.stat().st_size,
        unpacked=unpacked,
        sha256=digest(path),
    )


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def unpacked(path: Path) -> BinaryIO:
    """A stream's file as it is read."""
    return cast("BinaryIO", gzip.open(path, "rb"))
