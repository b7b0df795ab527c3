"""The endpoints: a request in, its results out, with a span, metrics and a word on what could not be read."""

from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import Any, TypeAlias

import msgspec
import structlog

from podyard.api import applying, deleting, evicting, results, revealing
from podyard.api.instruments import Instruments
from podyard.api.requesters import Requesters
from podyard.api.vault import Vault
from podyard.bus.connection import Bus
from podyard.bus.requests import Request
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.objects_api import (
    ApplyRequest,
    DeleteRequest,
    EvictRequest,
    ObjectResult,
    ObjectsReply,
    RevealReply,
    RevealRequest,
)
from podyard.shell.charging import Charging
from podyard.telemetry.conventions import pod_attributes
from podyard.telemetry.tracing import AttributeValue, Spans

Results: TypeAlias = tuple[ObjectResult, ...]
Work: TypeAlias = Callable[[Any, Author], Awaitable[Results]]

NAMED = 16
"""Objects of a request that its span names."""
BAD_OUTCOMES = frozenset({"refused", "blocked"})


class Door:
    """`svc.objects.apply|delete|evict|reveal` of one instance, and `svc.objects.apply|delete.<node>`."""

    def __init__(
        self,
        bus: Bus,
        view: DocumentView,
        spans: Spans,
        instruments: Instruments,
        *,
        service: str,
        now: Callable[[], float],
        requesters: Requesters,
        vault: Vault,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """
        :param log: where faults of our own are told
        :param requesters: who asks, if that is not the request's word
        :param service: who is named as the author if a request names nobody, and whose dead letters
            unreadable requests are
        :param now: seconds since 1970, UTC
        :param vault: seals Secrets
        """
        self._bus = bus
        self._view = view
        self._spans = spans
        self._instruments = instruments
        self._service = service
        self._now = now
        self._requesters = requesters
        self._log = log
        self._vault = vault
        self._charging = Charging(bus, view)
        self._admitter = applying.Admitter(clock=now, random=SystemRandom(), vault=vault)

    async def apply(self, request: Request) -> bytes:
        """Create or replace objects."""

        async def work(asked: ApplyRequest, author: Author) -> Results:
            return await applying.apply(self._bus, self._view, self._admitter, asked, author, self._charging)

        return await self._answer("apply", request, ApplyRequest, work)

    async def apply_node(self, request: Request) -> bytes:
        """Create or replace the object of the node that the subject names, and nothing else: who may publish
        there is its agent."""
        node = subjects.parse_node_request(request.subject)

        async def work(asked: ApplyRequest, author: Author) -> Results:
            foreign = applying.other_than_node(asked, node)
            if foreign:
                return foreign
            return await applying.apply(self._bus, self._view, self._admitter, asked, author, self._charging)

        return await self._answer("apply", request, ApplyRequest, work)

    async def delete(self, request: Request) -> bytes:
        """Delete objects."""

        async def work(asked: DeleteRequest, author: Author) -> Results:
            return await deleting.delete(self._bus, self._view, asked, author, self._now())

        return await self._answer("delete", request, DeleteRequest, work)

    async def delete_node(self, request: Request) -> bytes:
        """Remove deleted pods that have ended on the node that the subject names, and nothing else: who may
        publish there is its agent."""
        node = subjects.parse_node_request(request.subject)

        async def work(asked: DeleteRequest, author: Author) -> Results:
            foreign = await deleting.other_than_ended(self._bus, asked, node)
            if foreign:
                return foreign
            return await deleting.delete(self._bus, self._view, asked, author, self._now())

        return await self._answer("delete", request, DeleteRequest, work)

    async def evict(self, request: Request) -> bytes:
        """Evict pods through their budgets."""

        async def work(asked: EvictRequest, author: Author) -> Results:
            return await evicting.evict(self._bus, self._spans, asked, author, self._now, self._log)

        return await self._answer("evict", request, EvictRequest, work)

    async def reveal(self, request: Request) -> bytes:
        """Show values of Secrets. No span, metric or log has them; the log says who saw which."""
        try:
            asked = codec.decode(RevealRequest, request.payload)
        except MessageError as error:
            self._instruments.unreadable("reveal")
            self._bus.dead_letter_soon(self._service, request, error.reason)
            return codec.encode(RevealReply(refused=str(error)))
        who = self._requesters.who(request, asked.who) or self._service
        found = await revealing.reveal(self._bus, self._vault, asked)
        shown = [f"{one.namespace}/{one.name}" for one in found if not one.fault]
        self._log.info("secrets were shown", who=who, secrets=shown)
        return codec.encode(RevealReply(secrets=found))

    async def _answer(self, verb: str, request: Request, asked_type: type[msgspec.Struct], work: Work) -> bytes:
        started = self._now()
        try:
            asked: Any = codec.decode(asked_type, request.payload)
        except MessageError as error:
            self._instruments.unreadable(verb)
            self._bus.dead_letter_soon(self._service, _withheld(request), error.reason)
            return codec.encode(ObjectsReply(refused=str(error)))
        trace = self._spans.child(request.trace)
        if not self._spans.wanted(trace) and self._spans.may_keep(started):
            trace = self._spans.kept(trace)  # what people do is worth a trace
        author = Author(who=self._requesters.who(request, asked.who) or self._service, why=asked.why, trace=trace)
        reply = results.fitting(await work(asked, author))
        ended = self._now()
        self._instruments.answered(verb, reply, ended - started)
        self._emit(verb, request, trace, reply, author, started, ended)
        return codec.encode(reply)

    def _emit(
        self, verb: str, request: Request, trace: str, reply: ObjectsReply, author: Author, started: float, ended: float
    ) -> None:
        bad = [one for one in reply.results if one.outcome in BAD_OUTCOMES]
        if not self._spans.wanted(trace, keep=bool(bad)):
            return
        self._spans.emit(
            verb,
            trace=trace,
            parent=request.trace,
            start=started,
            end=ended,
            kind="producer",
            attributes={
                "messaging.system": "nats",
                "messaging.operation.name": verb,
                "messaging.destination.name": request.subject,
                "messaging.batch.message_count": len(reply.results),
                "podyard.who": author.who,
                "podyard.why": author.why,
                "podyard.refused": len(bad),
                **_about(reply),
            },
            error=bad[0].message if bad else "",
            keep=bool(bad),
        )


def _about(reply: ObjectsReply) -> dict[str, AttributeValue]:
    """The objects of a request; of a single pod in the words by which people look for it."""
    results = reply.results
    if len(results) == 1 and results[0].resource == subjects.PODS:
        return dict(pod_attributes(results[0].namespace, results[0].name, uid=results[0].uid or None))
    return {"podyard.objects": [f"{one.resource} {_name(one)}" for one in results[:NAMED]]}


def _name(one: ObjectResult) -> str:
    return f"{one.namespace}/{one.name}" if one.namespace else one.name


def _withheld(request: Request) -> Request:
    """What is kept of a request that cannot be read: not what it holds, which may be a Secret."""
    return request._replace(payload=b"(withheld: %d bytes, it may hold a Secret)" % len(request.payload))
