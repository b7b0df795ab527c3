"""Requests to `svc.objects.apply|delete` in pieces that fit, and their results in order."""

import getpass
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from podyard.bus.connection import Bus
from podyard.cli.errors import CliError
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, ObjectResult, ObjectsReply
from podyard.proto.streams import MAX_BATCH, MAX_PAYLOAD_BYTES

T = TypeVar("T")

REQUEST_BYTES: Final = MAX_PAYLOAD_BYTES * 3 // 4
"""Room for the objects of one request; the rest is for its other fields."""

REQUEST_S: Final = 30.0
"""Seconds for one request: 256 objects are admitted and written in well under a second."""

GOOD: Final = frozenset({"created", "configured", "unchanged", "deleted", "evicted"})


def person() -> str:
    """Who is at the keyboard, for the record."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:{os.getuid()}"


def pieces(documents: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Cut `documents` into requests; yields the index of each one's first document, and its documents."""
    start, size = 0, 0
    for index, document in enumerate(documents):
        if index > start and (index - start >= MAX_BATCH or size + len(document) > REQUEST_BYTES):
            yield start, documents[start:index]
            start, size = index, 0
        size += len(document)
    if start < len(documents):
        yield start, documents[start:]


async def apply(
    bus: Bus,
    documents: Sequence[dict[str, Any]],
    *,
    why: str = "",
    dry_run: bool = False,
    create_only: bool = False,
    who: str = "",
    timeout_s: float = REQUEST_S,
) -> list[ObjectResult]:
    """Create or replace objects, up to the first request of which one is refused; results in order, those after it missing.

    :param timeout_s: for each request
    :raises CliError: the api could not read the request
    :raises BusError: nobody answers
    """
    encoded = [msgspec.json.encode(document) for document in documents]
    results: list[ObjectResult] = []
    for _, piece in pieces(encoded):
        request = ApplyRequest(
            objects=tuple(msgspec.Raw(document) for document in piece),
            who=who or person(),
            why=why,
            dry_run=dry_run,
            create_only=create_only,
        )
        results += await _ask(bus, subjects.OBJECTS_APPLY, request, timeout_s)
        if any(result.outcome not in GOOD for result in results):
            break
    return results


async def delete(
    bus: Bus,
    targets: Sequence[ObjectRef],
    *,
    grace_period_s: int | None = None,
    why: str = "",
    who: str = "",
    timeout_s: float = REQUEST_S,
) -> list[ObjectResult]:
    """Delete objects; results in order.

    :param timeout_s: for each request
    :raises CliError: the api could not read the request
    :raises BusError: nobody answers
    """
    results: list[ObjectResult] = []
    for start in range(0, len(targets), MAX_BATCH):
        piece = tuple(targets[start : start + MAX_BATCH])
        request = DeleteRequest(objects=piece, grace_period_s=grace_period_s, who=who or person(), why=why)
        results += await _ask(bus, subjects.OBJECTS_DELETE, request, timeout_s)
    return results


async def _ask(bus: Bus, subject: str, request: msgspec.Struct, timeout_s: float) -> tuple[ObjectResult, ...]:
    reply = await bus.request(subject, codec.encode(request), timeout_s=timeout_s)
    answer = codec.decode(ObjectsReply, reply.payload)
    if answer.refused:
        raise CliError(f"the api refused the request: {answer.refused}")
    return answer.results
