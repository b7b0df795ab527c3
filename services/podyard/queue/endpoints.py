"""Requests of schedulers and people, answered by the leader alone."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import anyio
import msgspec

from podyard.bus import Busy, Delivery, RemoteError, Request
from podyard.proto import codec
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopReply,
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
from podyard.shell.causes import Cause
from podyard.shell.guard import Guard

M = TypeVar("M")

MOST_TERMS: Final = 2**32
"""Terms of leaders between two of which one may not know the other: epochs grow by one a term, so a number above is nobody's. Who
believed it would use up the numbers that there are."""

MAX_POPS: Final = 1024
"""Pops that wait at once: one or two a scheduler."""
CHANGES_LEADER: Final = "the queue changes its leader"


class QueueEndpoints:
    """One leader's answers.

    :param position: how far the queue has read the cluster
    :param settled: called after anything was done: it carries the core's effects out
    :param linger_s: how long a pop that had to wait goes on waiting for more pods
    :param outranked: told of an epoch above the leader's own: there was, or is, another leader
    :param now: seconds since 1970, UTC
    :param guard: around each call of the leader that changes something
    :param set_aside: why what has one of these ids (a pop, a session, attempts, pods) is refused; empty: it is not
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
        guard: Guard[Any],
        set_aside: Callable[[Iterable[str]], str],
    ) -> None:
        self._leader = leader
        self._position = position
        self._settled = settled
        self._popped = popped
        self._instance = instance
        self._linger_s = linger_s
        self._outranked = outranked
        self._now = now
        self._guard = guard
        self._set_aside = set_aside
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

    def _check(self, request: Request | Delivery, epoch: int = 0) -> None:
        """
        :param epoch: the highest that who asks knows of
        :raises RemoteError: that is no epoch of a queue
        """
        if epoch > self._leader.epoch + MOST_TERMS:
            raise RemoteError(
                f"epoch {epoch} was never a leader's: this one's is {self._leader.epoch}; start a new session"
            )
        if epoch > self._leader.epoch and not self._over:
            self.end()
            self._outranked(epoch)
        if self._over:
            raise Busy(request.subject, CHANGES_LEADER)

    async def pop(self, request: Request) -> bytes:
        """Pods to schedule; waits for some as long as the request says."""
        message = codec.decode(PopRequest, request.payload)
        asked = Cause(request, (message.pop_id,))
        if refused := self._set_aside(asked.ids):
            return codec.encode(PopReply(epoch=self._leader.epoch, refused=refused))
        deadline = anyio.current_time() + message.wait_s
        while True:
            self._check(request, message.epoch)
            reply = self._guard.call(asked, self._leader.pop, message, self._now(), self._position())
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
        ids = tuple(result.attempt for result in message.results)
        return self._answer(Cause(request, ids), message.epoch, self._leader.done, message)

    async def heartbeat(self, request: Request) -> bytes:
        """A scheduler lives."""
        message = codec.decode(SessionHeartbeat, request.payload)
        return self._answer(Cause(request, (message.session,)), message.epoch, self._leader.heartbeat, message)

    async def activate(self, request: Request) -> bytes:
        """Move pods to activeQ."""
        message = codec.decode(ActivateRequest, request.payload)
        ids = tuple(pod.uid for pod in message.pods)
        return self._answer(Cause(request, ids), 0, self._leader.activate, message)

    async def preempting(self, request: Request) -> bytes:
        """A preemption starts or ends."""
        message = codec.decode(PreemptingRequest, request.payload)
        return self._answer(
            Cause(request, (message.attempt,) if message.attempt else ()),
            message.epoch,
            self._leader.preempting,
            message,
        )

    def _answer(self, asked: Cause, epoch: int, act: Callable[[M, float], QueueReply], message: M) -> bytes:
        self._check(asked.message, epoch)
        if refused := self._set_aside(asked.ids):
            return codec.encode(QueueReply(epoch=self._leader.epoch, refused=refused))
        reply = self._guard.call(asked, act, message, self._now())
        if reply is None:
            raise Busy(asked.message.subject, CHANGES_LEADER)
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
