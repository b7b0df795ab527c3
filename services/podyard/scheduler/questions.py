"""Requests of people, answered by the core: it is told of each, and its effects answer.

One is in hand at a time, and after it scheduling gets as long as the answer took: people who ask without end
take half of a scheduler at most.
"""

from collections.abc import Callable, Iterable
from typing import Final

import anyio

from podyard.bus import Busy, RemoteError, Request, Subscription
from podyard.cluster.keys import NamespacedName
from podyard.cluster.pods import PodView
from podyard.objects import amounts, decoding
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError
from podyard.proto import codec, subjects
from podyard.proto.scheduler_api import WouldGoRequest
from podyard.runtime.micro import Endpoints
from podyard.scheduler.core.effects import Declined, Reply
from podyard.scheduler.core.messages import Would
from podyard.shell.causes import Cause
from podyard.shell.informer import Informer
from podyard.shell.tickets import Tickets

GROUP: Final = "scheduler"
"""Of schedulers, one of which is asked."""
REACHED_S: Final = 5.0
"""How long a position is awaited that the view has not read."""
ENDS: Final = "the scheduler begins anew"


class Questions:
    """Of one term.

    :param tell: tells the core
    :param set_aside: why what has one of these ids is refused; empty: it is not
    :param informer: feeds the core's view
    """

    def __init__(
        self, tell: Callable[[Would], None], set_aside: Callable[[Iterable[str]], str], informer: Informer
    ) -> None:
        self._tell = tell
        self._set_aside = set_aside
        self._informer = informer
        self._tickets = Tickets[Reply | Declined]()
        self._free_at = 0.0
        """When the next one may be answered, on the loop's clock."""

    async def serve(self, endpoints: Endpoints) -> Subscription:
        """Take requests from now on."""
        return await endpoints.serve(
            "would", subjects.SCHEDULER_WOULD, self._on_request, queue_group=GROUP, max_inflight=1
        )

    async def _on_request(self, request: Request) -> bytes:
        asked = codec.decode(WouldGoRequest, request.payload)
        pod = _pod_of(asked)
        ids = (f"would {pod.namespace}/{pod.name}" if isinstance(pod, PodView) else f"would {'/'.join(pod)}",)
        refusal = self._set_aside(ids)
        if refusal:
            raise RemoteError(refusal)
        await self._reached(asked.position)
        await anyio.sleep(max(0.0, self._free_at - anyio.current_time()))
        began = anyio.current_time()
        found = await self._tickets.ask(Cause(request, ids), lambda ticket: self._tell(Would(ticket, pod, asked.limit)))
        ended = anyio.current_time()
        self._free_at = ended + (ended - began)
        if found is None:
            raise Busy(request.subject, ENDS)
        if isinstance(found, Declined):
            raise RemoteError(found.reason)
        return codec.encode(found.reply)

    async def _reached(self, position: int) -> None:
        with anyio.move_on_after(REACHED_S):
            await self._informer.reached(position)
            return
        raise RemoteError(
            f"the scheduler has read up to position {self._informer.view.position}, and {position} is not reached"
            f" within {REACHED_S:g} s"
        )

    def answer(self, effect: Reply | Declined) -> None:
        """What the core says to a request."""
        self._tickets.reply(effect.ticket, effect)

    def cause(self, ticket: int) -> Cause | None:
        """The request with this ticket, if it waits for its answer."""
        return self._tickets.cause(ticket)

    def end(self) -> None:
        """The term is over: whoever waits, and whoever still comes, is to ask again."""
        self._tickets.end()


def _pod_of(asked: WouldGoRequest) -> NamespacedName | PodView:
    """Whom it is about.

    :raises MessageError: if it is about nobody, about two pods, or about something that is no pod
    """
    if asked.pod == codec.NULL:
        if not asked.namespace or not asked.name:
            raise codec.MessageError("WouldGoRequest", "it names no pod: `namespace` and `name`, or `pod`")
        return asked.namespace, asked.name
    if asked.namespace or asked.name:
        raise codec.MessageError("WouldGoRequest", "it has a `pod` and names another one: one of them")
    try:
        pod = decoding.decode_as(Pod, asked.pod)
        amounts.check(pod)
    except ObjectError as error:
        raise codec.MessageError("WouldGoRequest", f"pod: {error}") from error
    key = pod.metadata.namespace, pod.metadata.name
    if not all(key) or not pod.metadata.uid:
        raise codec.MessageError("WouldGoRequest", "its `pod` has no namespace, name or uid: ask the api for a dry run")
    return PodView(pod, key, pod.metadata.uid, 0)
