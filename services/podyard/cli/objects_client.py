"""Requests to `svc.objects.apply|delete|evict` in pieces that fit, repeated while nobody answers
(`shell.door_requests`), and their results in order. Only what makes something new each time (a generated
name, "create only") is asked once.
"""

import getpass
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError, Unclear
from podyard.bus.requests import Reply
from podyard.cli.errors import CliError
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import (
    ApplyRequest,
    DeleteRequest,
    EvictRequest,
    ObjectResult,
    ObjectsReply,
    RevealedSecret,
    RevealReply,
    RevealRequest,
    Validation,
)
from podyard.proto.streams import MAX_BATCH, MAX_PAYLOAD_BYTES
from podyard.shell import door_requests

T = TypeVar("T")

REQUEST_BYTES: Final = MAX_PAYLOAD_BYTES * 3 // 4
"""Room for the objects of one request; the rest is for its other fields."""

REQUEST_S: Final = 30.0
"""Seconds for one request with its repeats: what a person waits at most."""

_NAMED_BY_OTHERS: Final = frozenset(("Namespace", "PriorityClass"))
"""Kinds without which admission refuses objects that name them.

docs/rules.md, a-rehearsal-brings-what-others-name"""

MOST_LEANT_ON: Final = 64
"""So many are sent with each request of a dry run."""

GOOD: Final = frozenset({"created", "configured", "unchanged", "deleted", "evicted"})


def person() -> str:
    """Who is at the keyboard, for the record."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:{os.getuid()}"


def pieces(documents: Sequence[bytes], most: int = MAX_BATCH) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Cut `documents` into requests of at most `most`; yields the index of each one's first document, and its
    documents."""
    start, size = 0, 0
    for index, document in enumerate(documents):
        if index > start and (index - start >= most or size + len(document) > REQUEST_BYTES):
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
    partial: bool = False,
    admitted: bool = False,
    validation: Validation = "warn",
    who: str = "",
    timeout_s: float = REQUEST_S,
) -> list[ObjectResult]:
    """Create or replace objects, up to the first request of which one is refused; results in order, those
    after it missing. A dry run asks of all: it changes nothing, and people are told all their faults.

    :param partial: the good ones are done although others are refused
    :param admitted: a dry run shows pods as they would be stored
    :param validation: what becomes of fields that a kind does not have
    :param timeout_s: for each request, its repeats included
    :raises CliError: the api could not read the request; or nobody answered one that must not be repeated
    :raises BusError: nobody answers
    """
    encoded = [msgspec.json.encode(document) for document in documents]
    results: list[ObjectResult] = []
    for start, piece in pieces(encoded, MAX_BATCH - MOST_LEANT_ON if dry_run else MAX_BATCH):
        before = _leant_on(documents[:start], encoded) if dry_run else []
        request = ApplyRequest(
            objects=tuple(msgspec.Raw(document) for document in (*before, *piece)),
            who=who or person(),
            why=why,
            dry_run=dry_run,
            create_only=create_only,
            partial=partial,
            admitted=admitted,
            validation=validation,
        )
        once = "" if dry_run else _why_once(documents[start : start + len(piece)], create_only=create_only)
        answer = await _ask(bus, subjects.OBJECTS_APPLY, request, timeout_s, once=once)
        results += answer.results[len(before) :]
        if not dry_run and any(result.outcome not in GOOD for result in results):
            break
    return results


def _leant_on(documents: Sequence[dict[str, Any]], encoded: Sequence[bytes]) -> list[bytes]:
    """Of what would be written before a request of a dry run: what its objects may name. The last are nearest
    to them."""
    found = [raw for document, raw in zip(documents, encoded, strict=False) if document.get("kind") in _NAMED_BY_OTHERS]
    return found[-MOST_LEANT_ON:]


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

    :param timeout_s: for each request, its repeats included
    :raises CliError: the api could not read the request
    :raises BusError: nobody answers
    """
    results: list[ObjectResult] = []
    for start in range(0, len(targets), MAX_BATCH):
        piece = tuple(targets[start : start + MAX_BATCH])
        request = DeleteRequest(objects=piece, grace_period_s=grace_period_s, who=who or person(), why=why)
        answer = await _ask(bus, subjects.OBJECTS_DELETE, request, timeout_s)
        results += map(_gone, answer.results) if answer.repeated else answer.results
    return results


async def evict(
    bus: Bus,
    pods: Sequence[ObjectRef],
    *,
    grace_period_s: int | None = None,
    dry_run: bool = False,
    why: str = "",
    who: str = "",
    timeout_s: float = REQUEST_S,
) -> list[ObjectResult]:
    """Evict pods, each by a request of its own: others may wait for the same budgets; results in order. Once
    there is one, what is in the way of another is its result.

    :param timeout_s: for each pod, its repeats included
    :raises CliError: the api could not read the first request
    :raises BusError: nobody answers the first one
    """
    results: list[ObjectResult] = []
    for pod in pods:
        request = EvictRequest(
            pods=(pod,), grace_period_s=grace_period_s, who=who or person(), why=why, dry_run=dry_run
        )
        try:
            answer = await _ask(bus, subjects.OBJECTS_EVICT, request, timeout_s)
        except (BusError, CliError) as error:
            if not results:
                raise
            results.append(_unanswered(pod, error))
            continue
        results += (_gone(one, "evicted") for one in answer.results) if answer.repeated else answer.results
    return results


async def reveal(
    bus: Bus, wanted: Sequence[ObjectRef], *, who: str = "", timeout_s: float = door_requests.TRY_S
) -> list[RevealedSecret]:
    """Values of Secrets, in the order of `wanted`.

    :param timeout_s: for each request, its repeats included
    :raises CliError: the api could not read the request
    :raises BusError: nobody answers, or this person may not ask
    """
    found: list[RevealedSecret] = []
    for start in range(0, len(wanted), MAX_BATCH):
        request = RevealRequest(secrets=tuple(wanted[start : start + MAX_BATCH]), who=who or person())
        reply, _ = await _until_answered(bus, subjects.OBJECTS_REVEAL, codec.encode(request), timeout_s, "")
        answer = codec.decode(RevealReply, reply.payload)
        if answer.refused:
            raise CliError(f"the api refused the request: {answer.refused}")
        found += answer.secrets
    return found


def _unanswered(pod: ObjectRef, error: BusError | CliError) -> ObjectResult:
    """Of a pod of which the api says nothing."""
    return ObjectResult(
        outcome="refused",
        resource=pod.resource,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        message=str(error),
        unclear=isinstance(error, Unclear),
    )


def _gone(result: ObjectResult, outcome: Literal["deleted", "evicted"] = "deleted") -> ObjectResult:
    """Of a repeated request: an object that is not there may have gone by the try that was not answered. It
    is gone, as asked."""
    return msgspec.structs.replace(result, outcome=outcome) if result.outcome == "notFound" else result


def _why_once(documents: Sequence[dict[str, Any]], *, create_only: bool) -> str:
    """Why a request must not be repeated; empty if it may be."""
    if create_only:
        return "asked again it could not tell its own objects from those of others"
    for document in documents:
        metadata: dict[str, Any] = document.get("metadata") or {}
        if not metadata.get("name"):
            return f'asked again it could create "{metadata.get("generateName", "")}..." twice'
    return ""


class _Answer(NamedTuple):
    """`repeated`: a try before was not answered, and may have been carried out."""

    results: tuple[ObjectResult, ...]
    repeated: bool


async def _ask(bus: Bus, subject: str, request: msgspec.Struct, timeout_s: float, *, once: str = "") -> _Answer:
    """
    :param once: why it is not asked again when the answer does not come; empty: it is
    """
    reply, repeated = await _until_answered(bus, subject, codec.encode(request), timeout_s, once)
    answer = codec.decode(ObjectsReply, reply.payload)
    if answer.refused:
        raise CliError(f"the api refused the request: {answer.refused}")
    return _Answer(answer.results, repeated)


async def _until_answered(bus: Bus, subject: str, payload: bytes, timeout_s: float, once: str) -> tuple[Reply, bool]:
    try:
        return await door_requests.until_answered(bus, subject, payload, timeout_s, once)
    except door_requests.AskedOnce as error:
        raise CliError(str(error), "look with `podyard get` what is there") from error
