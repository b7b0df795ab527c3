"""Streams as files, and streams out of files: on real servers, since the format is theirs."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from podyard.bus import (
    Ack,
    Bus,
    BusError,
    BusSettings,
    Delivery,
    EmbeddedServer,
    Outgoing,
    archive,
    backup,
    connect,
    embedded_server,
    ensure_streams,
    restore,
)
from podyard.bus._api import StreamInfo, StreamState
from podyard.proto import headers, streams
from tests.contract.bus.readers import Reader, spec, watching

CLUSTER = streams.CLUSTER
PAIRS = 40
"""Pairs of objects that are always written together: a copy in which two differ is of no one moment."""


def subject(number: int, side: str) -> str:
    return f"cluster.pods.default.{side}{number}"


async def write_pairs(bus: Bus, numbers: "itertools.count[int]") -> None:
    """Write each pair again and again, as one batch, on its last version."""
    versions = dict.fromkeys(range(PAIRS), 0)
    for turn in numbers:
        pair = turn % PAIRS
        before = versions[pair]
        left, right = (
            Outgoing(subject(pair, side), str(turn).encode(), expect=max(0, before + place))
            for place, side in ((-1, "left"), (0, "right"))
        )
        versions[pair] = (await bus.publish_batch([left, right])).sequence


@asynccontextmanager
async def another(directory: Path) -> AsyncIterator[tuple[EmbeddedServer, Bus]]:
    """A server with nothing on it."""
    async with (
        embedded_server(directory) as server,
        connect(BusSettings(servers=(server.url,), name="restorer")) as bus,
    ):
        yield server, bus


async def content(bus: Bus) -> dict[str, Delivery]:
    """CLUSTER as a new reader finds it."""
    reader = Reader()
    async with watching(bus, reader, watch=bus.watch(spec(), reader)):
        await reader.until(lambda: reader.synced_at)
    return {one.subject: one for one in reader.deliveries}


def files(directory: Path) -> list[Path]:
    return [*directory.glob("CLUSTER*")]


def silent(done: int, total: int) -> None:
    del done, total


async def test_a_copy_beside_writers_is_of_one_moment_and_goes_on_elsewhere(
    bus: Bus, bus_server: object, tmp_path: Path
):
    numbers = itertools.count()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_pairs, bus, numbers)
        with anyio.fail_after(20):
            while await bus.last_sequence(CLUSTER.name) < 4 * PAIRS:  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(0.01)
        kept = [await backup.back_up(bus, CLUSTER, made(tmp_path / str(turn)), silent) for turn in range(5)]
        tasks.cancel_scope.cancel()
    assert len({one.last for one in kept}) == len(kept), "nobody wrote"
    for turn, one in enumerate(kept):
        assert one.messages == 2 * PAIRS
        async with another(tmp_path / f"server-{turn}") as (_, elsewhere):
            info = await restore.restore(elsewhere, CLUSTER, one, tmp_path / str(turn) / one.file, 1, silent)
            assert (info.state.last_seq, info.state.messages) == (one.last + restore.SKIPPED, 2 * PAIRS)
            found = await content(elsewhere)
            for pair in range(PAIRS):
                left, right = found[subject(pair, "left")], found[subject(pair, "right")]
                assert (left.payload, left.sequence + 1) == (right.payload, right.sequence)


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def test_versions_headers_and_times_are_those_of_then_and_survive_a_kill(
    bus: Bus, nats_server: EmbeddedServer, tmp_path: Path
):
    first: Ack = await bus.publish(Outgoing("cluster.pods.default.a", b"1", expect=0, trace="00-1-2-01"))
    await bus.publish(Outgoing("cluster.pods.default.b", b"1", expect=0))
    second = await bus.publish(Outgoing("cluster.pods.default.a", b"2", expect=first.sequence))
    await bus.publish(Outgoing("cluster.pods.default.b", b"", expect=2, deleted=True, ttl_s=600))
    before = await content(bus)
    kept = await backup.back_up(bus, CLUSTER, made(tmp_path / "kept"), silent)
    async with another(tmp_path / "server") as (server, elsewhere):
        await restore.restore(elsewhere, CLUSTER, kept, tmp_path / "kept" / kept.file, 1, silent)
        await server.kill()
        await server.start()
        await elsewhere.connected()
        after = await content(elsewhere)
        assert told(after) == told(before)
        assert after["cluster.pods.default.b"].deleted
        assert after["cluster.pods.default.a"].headers[headers.EXPECTED_LAST_SUBJECT_SEQUENCE] == str(first.sequence)
        await ensure_streams(elsewhere)
        third = await elsewhere.publish(Outgoing("cluster.pods.default.a", b"3", expect=second.sequence))
        assert third.sequence == kept.last + restore.SKIPPED + 1


def told(found: dict[str, Delivery]) -> dict[str, tuple[object, ...]]:
    return {
        name: (one.sequence, one.payload, one.head, round(one.stored_at, 3), one.deleted) for name, one in found.items()
    }


async def test_a_stream_that_is_there_is_not_restored_over(bus: Bus, nats_server: EmbeddedServer, tmp_path: Path):
    await bus.publish(Outgoing("cluster.pods.default.a", b"1", expect=0))
    kept = await backup.back_up(bus, CLUSTER, tmp_path, silent)
    with pytest.raises(BusError, match=r"RESTORE\.CLUSTER"):
        await restore.restore(bus, CLUSTER, kept, tmp_path / kept.file, 1, silent)
    assert [*await content(bus)] == ["cluster.pods.default.a"]


async def test_what_is_written_as_the_stream_is_looked_at_is_in_the_copy(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each look finds one more write, the twentieth none."""
    look, looks = bus.api.stream_info, itertools.count()

    async def beside_a_writer(stream: str, timeout_s: float | None = None) -> StreamInfo:
        if next(looks) < 20:
            await bus.publish(Outgoing("cluster.pods.default.a", b"1"))
        return await look(stream, timeout_s)

    monkeypatch.setattr(bus.api, "stream_info", beside_a_writer)
    kept = await backup.back_up(bus, CLUSTER, tmp_path, silent)
    assert next(looks) > 20
    with backup.unpacked(tmp_path / kept.file) as source:
        assert [one.sequence for one in archive.entries(source)] == [20] == [kept.last]


async def test_an_archive_without_its_end_is_no_stream(
    bus: Bus, nats_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await bus.publish(Outgoing("cluster.pods.default.a", b"1", expect=0))
    kept = await backup.back_up(bus, CLUSTER, tmp_path, silent)
    monkeypatch.setattr(archive, "END", b"")
    async with another(tmp_path / "server") as (_, elsewhere):
        with pytest.raises(BusError, match=r"truncated|EOF"):
            await restore.restore(elsewhere, CLUSTER, kept, tmp_path / kept.file, 1, silent)


async def test_what_is_written_all_the_time_is_not_waited_for_for_ever(
    bus: Bus, nats_server: EmbeddedServer, tmp_path: Path
):
    await bus.publish(Outgoing("cluster.pods.default.a", b"1", expect=0))
    with pytest.raises(backup.NeverStillError, match="CLUSTER was written all the time"):
        await backup.back_up(bus, CLUSTER, tmp_path, silent, still_within_s=0.0)
    assert not files(tmp_path)


def test_what_was_replaced_or_deleted_while_it_was_read_is_left_out(tmp_path: Path):
    """Its marker may have expired before the copy is restored: the version before it would come back."""
    read = [("a", 3), ("b", 5), ("c", 8), ("a", 11), ("b", 12), ("d", 13), ("c", 14)]
    raw = tmp_path / "CLUSTER.part"
    raw.write_bytes(b"".join(archive.encoded(archive.Entry(name, at, 0, b"", b"")) for name, at in read))
    kept = backup._finished(CLUSTER, raw, 10, StreamState(last_seq=13))
    with backup.unpacked(tmp_path / kept.file) as source:
        assert [(one.subject, one.sequence) for one in archive.entries(source)] == [
            ("c", 8),
            ("a", 11),
            ("b", 12),
            ("d", 13),
        ]
    assert (kept.first, kept.last, kept.messages) == (8, 13, 4)


class Lagging:
    """A bus and a watch in one: the stream ends at 5, and the reader gets there with the third look."""

    def __init__(self) -> None:
        self.spec = spec()
        self.listings = 1
        self.position = 3
        self.is_complete = True
        self.looks = 0

    @property
    def api(self) -> "Lagging":
        return self

    async def stream_info(self, stream: str) -> StreamInfo:
        self.looks += 1
        self.position += self.looks == 2
        self.position += self.looks == 3
        self.listings += self.looks == 4
        return StreamInfo({}, "now", StreamState(last_seq=5, messages=1))


async def test_a_reader_that_lags_or_lists_anew_is_not_at_the_end():
    all_three: Any = Lagging()
    await backup._still(all_three, all_three, all_three)
    assert all_three.looks == 5
