"""Requests of schedulers and people, answered by the leader alone."""

from collections.abc import Callable
from typing import Final

import anyio
import msgspec

from podyard.bus import Busy, Request
from podyard.proto import codec
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    QueueReply,
    SessionHeartbeat,
    WouldRequest,
)
from podyard.queue import bare_events
from podyard.queue.core import listing, what_if
from podyard.queue.core.leader import Leader

MAX_POPS: Final = 1024
"""Pops that wait at once: one or two a scheduler."""


class QueueEndpoints:
    """One leader's answers.

    :param position: how far the queue has read the cluster
    :param settled: called after anything was done: it carries the core's effects out
    :param linger_s: how long a pop that had to wait goes on waiting for more pods
    :param outranked: told of an epoch above the leader's own: there was, or is, another leader
    :param now: seconds since 1970, UTC
    """

    def __init__(
        self,
        leader: Leader,
        *,
        position: Callable[[], int],
        settled: Callable[[], None],
        popped: Callable[[int], None],
        instance: str,
        linger_s: float,
        outranked: Callable[[int], None],
        now: Callable[[], float],
    ) -> None:
        self._leader = leader
        self._position = position
        self._settled = settled
        self._popped = popped
        self._instance = instance
        self._linger_s = linger_s
        self._outranked = outranked
        self._now = now
        self._ready = anyio.Event()
        self._waiting = 0
        self._over = False

    def wake(self) -> None:
        """There may be pods to hand out."""
        if self._waiting and self._leader.queue.has_ready():
            self._ready.set()

    def end(self) -> None:
        """The term is over: whoever waits, and whoever still comes, is to ask the next leader."""
        self._over = True
        self._ready.set()

    def _check(self, request: Request, epoch: int = 0) -> None:
        """
        :param epoch: the highest that who asks knows of
        """
        if epoch > self._leader.epoch and not self._over:
            self.end()
            self._outranked(epoch)
        if self._over:
            raise Busy(request.subject, "the queue changes its leader")

    async def pop(self, request: Request) -> bytes:
        """Pods to schedule; waits for some as long as the request says."""
        message = codec.decode(PopRequest, request.payload)
        deadline = anyio.current_time() + message.wait_s
        while True:
            self._check(request, message.epoch)
            reply = self._leader.pop(message, self._now(), self._position())
            if reply is not None:
                self._popped(len(reply.pods))
                return codec.encode(reply)
            if not await self._until_ready(deadline):
                self._check(request)
                return codec.encode(self._leader.pop_nothing(message, self._position()))

    async def _until_ready(self, deadline: float) -> bool:
        """Wait for pods; whether there may be some."""
        if self._ready.is_set():
            self._ready = anyio.Event()
        self._waiting += 1
        try:
            with anyio.move_on_after(deadline - anyio.current_time()) as limit:
                await self._ready.wait()
        finally:
            self._waiting -= 1
        if limit.cancelled_caught:
            return False
        if not self._over:
            await anyio.sleep(self._linger_s)
        return True

    async def done(self, request: Request) -> bytes:
        """Results of attempts."""
        message = codec.decode(DoneRequest, request.payload)
        return self._answer(request, message.epoch, lambda now: self._leader.done(message, now))

    async def heartbeat(self, request: Request) -> bytes:
        """A scheduler lives."""
        message = codec.decode(SessionHeartbeat, request.payload)
        return self._answer(request, message.epoch, lambda now: self._leader.heartbeat(message, now))

    async def activate(self, request: Request) -> bytes:
        """Move pods to activeQ."""
        message = codec.decode(ActivateRequest, request.payload)
        return self._answer(request, 0, lambda now: self._leader.activate(message, now))

    async def preempting(self, request: Request) -> bytes:
        """A preemption starts or ends."""
        message = codec.decode(PreemptingRequest, request.payload)
        return self._answer(request, message.epoch, lambda now: self._leader.preempting(message, now))

    def _answer(self, request: Request, epoch: int, act: Callable[[float], QueueReply]) -> bytes:
        self._check(request, epoch)
        reply = act(self._now())
        self._settled()
        return codec.encode(reply)

    async def list(self, request: Request) -> bytes:
        """What is where."""
        self._check(request)
        message = codec.decode(QueueListRequest, request.payload or b"{}")
        answer = listing.reply(self._leader, message, position=self._position(), instance=self._instance)
        return codec.encode(answer)

    async def would(self, request: Request) -> bytes:
        """What an event would do to one pod."""
        self._check(request)
        message = codec.decode(WouldRequest, request.payload)
        incoming = bare_events.events_of(message.event, "")
        found = what_if.judge(self._leader.queue, (message.namespace, message.name), incoming, self._now())
        return codec.encode(msgspec.structs.replace(found, epoch=self._leader.epoch, position=self._position()))
