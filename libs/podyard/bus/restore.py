"""Streams out of files, given to a server that has none of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from podyard.bus import archive
from podyard.bus._api import StreamInfo
from podyard.bus.backup import COPY_BYTES, KeptStream, Progress, unpacked
from podyard.bus.bootstrap import config_of
from podyard.bus.connection import Bus
from podyard.bus.errors import ApiError, BusError, NotFound, TemporaryError, from_api
from podyard.proto import codec, streams

SKIPPED: Final = 1_000_000
"""Sequences that a restored stream does not give: those of about as many writes after the backup was taken.
Who remembers a version of then finds another one in its place, and no write of his passes for one of now. A
killed server looks at each of them when it starts again: 0.1 s; of a thousand times as many, minutes
(nats-server 2.15.1)."""

CHUNK_BLOCKS: Final = 8
"""Of 64 KiB, in one message to the server."""

ANSWER_WITHIN_S: Final = 30.0
"""For the servers to begin, and to have written a chunk."""
PEERS_WITHIN_S: Final = 15.0
"""For servers that have just started to find each other."""


class _Begun(msgspec.Struct, frozen=True):
    """Answer to the request to restore: where chunks go."""

    deliver_subject: str


class _Chunk(msgspec.Struct, frozen=True):
    """Answer to a chunk; empty while all is well."""

    error: ApiError | None = None


async def held(bus: Bus) -> dict[str, int]:
    """The streams that are there, with the last sequence of each."""
    found: dict[str, int] = {}
    for spec in streams.ALL_STREAMS:
        try:
            found[spec.name] = await bus.last_sequence(spec.name)
        except NotFound:
            continue
    return found


async def remove(bus: Bus, stream: str) -> None:
    """Delete a stream.

    :raises BusError: it was not done, or nobody knows
    """
    await bus.api.call(f"STREAM.DELETE.{stream}", None, dict[str, Any])


async def restore(
    bus: Bus, spec: streams.StreamSpec, kept: KeptStream, source: Path, replicas: int, told: Progress
) -> StreamInfo:
    """Make a stream that is not there out of its file; the sequences of its messages are those of then.

    :return: what it is now
    :raises BusError: it is not whole, and why
    :raises ArchiveError: the file is not what it was
    """
    config = {**config_of(spec), "num_replicas": replicas}
    last = kept.last + SKIPPED
    state = {"messages": kept.messages, "first_seq": kept.first, "last_seq": last}
    asked = {"config": config, "state": state}
    begun = await _begin(bus, spec.name, asked)
    sent = 0
    for chunk in _chunks(archive.framed(_parts(kept, last, source))):
        _raise_failure((await bus.request(begun.deliver_subject, chunk, timeout_s=ANSWER_WITHIN_S)).payload, spec.name)
        sent += len(chunk)
        told(sent, max(sent, kept.unpacked))
    answer = (await bus.request(begun.deliver_subject, b"", timeout_s=ANSWER_WITHIN_S)).payload
    _raise_failure(answer, spec.name)
    info = codec.decode(StreamInfo, answer)
    if info.state.last_seq != last:
        raise BusError(f"the stream {spec.name} was restored up to {info.state.last_seq}, not to {last}")
    return info


async def _begin(bus: Bus, stream: str, asked: dict[str, Any]) -> _Begun:
    """Asked again while servers that have just started are no peers of each other yet."""
    until = anyio.current_time() + PEERS_WITHIN_S
    while True:
        try:
            return await bus.api.call(f"STREAM.RESTORE.{stream}", asked, _Begun, ANSWER_WITHIN_S)
        except TemporaryError as error:
            if anyio.current_time() + error.delay_s > until:
                raise
            await anyio.sleep(error.delay_s)


def _parts(kept: KeptStream, last: int, source: Path) -> Iterator[bytes]:
    yield archive.beginning(kept.first, last, kept.messages)
    with unpacked(source) as packed:
        while part := packed.read(COPY_BYTES):
            yield part
    yield archive.END


def _chunks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    for block in blocks:
        waiting.append(block)
        if len(waiting) == CHUNK_BLOCKS:
            yield b"".join(waiting)
            waiting.clear()
    if waiting:
        yield b"".join(waiting)


def _raise_failure(answer: bytes, stream: str) -> None:
    if answer:
        failure = codec.decode(_Chunk, answer).error
        if failure is not None:
            raise from_api(failure, f"STREAM.RESTORE.{stream}")
