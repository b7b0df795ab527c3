"""Requests of schedulers and people, answered by the leader alone: the core is told of each, and its effects
answer.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

from podyard.bus import Busy, Later, Prompt, RemoteError, Request, Subscription
from podyard.proto import codec, subjects
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    SessionHeartbeat,
    WouldRequest,
)
from podyard.queue import bare_events
from podyard.queue.core import messages
from podyard.queue.core.effects import Declined, Reply
from podyard.queue.core.messages import Asked, Would
from podyard.runtime.micro import Endpoints
from podyard.shell.causes import Cause
from podyard.shell.tickets import Tickets, Waits

MAX_POPS: Final = 1024
"""Pops that wait at once: one or two a scheduler."""
MAX_OTHERS: Final = 256
"""Requests of each other verb that are in hand at once; none waits."""
CHANGES_LEADER: Final = "the queue changes its leader"


class QueueEndpoints:
    """Of one term.

    :param tell: tells the core
    :param set_aside: why what has one of these ids is refused; empty: it is not
    """

    def __init__(self, tell: Callable[[Asked], None], set_aside: Callable[[Iterable[str]], str]) -> None:
        self._tell = tell
        self._set_aside = set_aside
        self._tickets = Tickets[Reply | Declined]()

    async def serve(self, endpoints: Endpoints, opened: list[Subscription]) -> None:
        """Take requests from now on; `opened` is given what is to be closed."""
        for verb, read in READERS.items():
            most = MAX_POPS if verb == "pop" else MAX_OTHERS
            handler = self._handler(read)
            opened.append(await endpoints.serve(verb, subjects.queue_verb(verb), handler, max_inflight=most))

    def _handler(self, read: "Reader") -> Prompt:
        """All but pops that find nothing are answered at once."""

        def begin(request: Request) -> bytes | Later:
            asked = read(request.payload)
            ids = ids_of(asked)
            refusal = self._set_aside(ids)
            found = self._tickets.begin(Cause(request, ids), lambda ticket: self._tell(Asked(ticket, asked, refusal)))
            return partial(self._wait, request, found) if isinstance(found, Waits) else _answer(request, found)

        return Prompt(begin)

    async def _wait(self, request: Request, waits: Waits) -> bytes:
        return _answer(request, await self._tickets.wait(waits))

    def answer(self, effect: Reply | Declined) -> None:
        """What the core says to a request."""
        self._tickets.reply(effect.ticket, effect)

    def cause(self, ticket: int) -> Cause | None:
        """The request with this ticket, if it waits for its answer."""
        return self._tickets.cause(ticket)

    def end(self) -> None:
        """The term is over: whoever waits, and whoever still comes, is to ask the next leader."""
        self._tickets.end()


def _answer(request: Request, found: Reply | Declined | None) -> bytes:
    if found is None:
        raise Busy(request.subject, CHANGES_LEADER)
    if isinstance(found, Declined):
        raise RemoteError(found.reason)
    return codec.encode(found.reply)


def ids_of(asked: messages.Request) -> tuple[str, ...]:
    """Of what is asked for: a core that raises on it is not asked for it again for a while."""
    match asked:
        case PopRequest():
            return (asked.pop_id,)
        case DoneRequest():
            return tuple(result.attempt for result in asked.results)
        case SessionHeartbeat():
            return (asked.session,)
        case ActivateRequest():
            return tuple(pod.uid for pod in asked.pods)
        case PreemptingRequest():
            return (asked.attempt,) if asked.attempt else ()
        case QueueListRequest():
            return ("list",)
        case Would():
            return (f"would {asked.namespace}/{asked.name}",)


Reader: TypeAlias = Callable[[bytes], messages.Request]
"""What is asked for by a payload; raises MessageError if that cannot be read."""


def _reader(kind: type[Any], default: bytes = b"") -> Reader:
    def read(payload: bytes) -> messages.Request:
        return codec.decode(kind, payload or default)

    return read


def _read_would(payload: bytes) -> Would:
    request = codec.decode(WouldRequest, payload)
    return Would(request.namespace, request.name, bare_events.events_of(request.event, ""))


READERS: Final[dict[str, Reader]] = {
    "pop": _reader(PopRequest),
    "done": _reader(DoneRequest),
    "heartbeat": _reader(SessionHeartbeat),
    "activate": _reader(ActivateRequest),
    "preempting": _reader(PreemptingRequest),
    "list": _reader(QueueListRequest, b"{}"),
    "would": _read_would,
}
"""How the requests of each verb are read."""
