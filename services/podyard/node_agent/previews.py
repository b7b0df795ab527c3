"""Requests of people about one node, answered by the agent that plays it: the core is told of each, and its
effects answer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from podyard.bus import Busy, RemoteError, Request, Subscription
from podyard.node_agent.core.effects import Declined, NotPlayed, Reply
from podyard.node_agent.core.messages import Asked
from podyard.proto import codec, subjects
from podyard.proto.agents_api import PreviewRequest
from podyard.runtime.micro import Endpoints
from podyard.shell.causes import Cause
from podyard.shell.tickets import Tickets

CHANGES: Final = "the node agent changes its leader"


class Previews:
    """Of one term.

    :param tell: tells the core
    :param set_aside: why what has one of these ids is refused; empty: it is not
    """

    def __init__(self, tell: Callable[[Asked], None], set_aside: Callable[[Iterable[str]], str]) -> None:
        self._tell = tell
        self._set_aside = set_aside
        self._tickets = Tickets[Reply | Declined | NotPlayed]()

    async def serve(self, endpoints: Endpoints, nodes: Sequence[str], opened: list[Subscription]) -> None:
        """Take requests from now on; `opened` is given what is to be closed.

        :param nodes: the agent's nodes; empty: any, and what is asked of others' is left to them
        """
        wanted = [(f"preview-{at}", subjects.preview(node)) for at, node in enumerate(nodes)]
        for name, subject in wanted or [("preview", subjects.ALL_PREVIEWS)]:
            opened.append(await endpoints.serve(name, subject, self._on_request))

    async def _on_request(self, request: Request) -> bytes | None:
        asked = codec.decode(PreviewRequest, request.payload)
        if subjects.preview(asked.node) != request.subject:
            raise codec.MessageError("PreviewRequest", f"it is about node {asked.node}, but came on {request.subject}")
        ids = (f"preview {asked.node}",)
        refusal = self._set_aside(ids)
        if refusal:
            raise RemoteError(refusal)
        found = await self._tickets.ask(Cause(request, ids), lambda ticket: self._tell(Asked(ticket, asked)))
        match found:
            case None:
                raise Busy(request.subject, CHANGES)
            case NotPlayed():
                return None
            case Declined(reason=reason):
                raise RemoteError(reason)
            case Reply(reply=reply):
                return codec.encode(reply)

    def answer(self, effect: Reply | Declined | NotPlayed) -> None:
        """What the core says to a request."""
        self._tickets.reply(effect.ticket, effect)

    def cause(self, ticket: int) -> Cause | None:
        """The request with this ticket, if it waits for its answer."""
        return self._tickets.cause(ticket)

    def end(self) -> None:
        """The term is over: whoever waits, and whoever still comes, is to ask the next leader."""
        self._tickets.end()
