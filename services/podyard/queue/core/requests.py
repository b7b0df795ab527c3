"""Answers what schedulers and people ask of the queue: at once, or a pop when there are pods."""

from typing import Final

import msgspec

from podyard.cluster.view import ClusterView
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopReply,
    PopRequest,
    PreemptingRequest,
    QueueListReply,
    QueueListRequest,
    QueueReply,
    SessionHeartbeat,
    WouldReply,
)
from podyard.queue.core import listing, outside, what_if
from podyard.queue.core.effects import Declined, Reply, StepDown
from podyard.queue.core.leader import Leader
from podyard.queue.core.messages import Asked, Request, Would
from podyard.queue.core.waiting_pops import WaitingPop, WaitingPops

MOST_TERMS: Final = 2**32
"""Terms of leaders between two of which one may not know the other: epochs grow by one a term, so a number
above is nobody's. Who believed it would use up the numbers that there are.
"""


class Requests:
    """One leader's answers.

    :param view: says how far the queue has read the cluster
    :param instance: of this process, for people
    :param linger_s: how long a pop that had to wait goes on waiting for more pods
    """

    def __init__(self, leader: Leader, view: ClusterView, instance: str, linger_s: float) -> None:
        self._leader = leader
        self._view = view
        self._instance = instance
        self._pops = WaitingPops(linger_s)
        self.in_hand: int | None = None
        """Ticket of the pop that has waited and is being answered; None: there is none."""

    @property
    def wake_at(self) -> float:
        """When `hand_out` is to be called, seconds since 1970, UTC; infinity: not yet."""
        return self._pops.wake_at

    def answer(self, asked: Asked, now: float) -> Reply | Declined | StepDown | None:
        """What is said to a request; None: it is a pop, and waits."""
        ticket, request, set_aside = asked
        outranked = self._outranked(ticket, request)
        if outranked is not None:
            return outranked
        if set_aside:
            return self._refused(ticket, request, set_aside)
        reply = self._reply(request, now)
        if reply is not None:
            return Reply(ticket, reply)
        if isinstance(request, PopRequest):
            self._pops.add(ticket, request, now)
        return None

    def _reply(self, request: Request, now: float) -> PopReply | QueueReply | QueueListReply | WouldReply | None:
        """What there is to say now; None: to a pop, nothing yet."""
        match request:
            case PopRequest():
                return self._leader.pop(request, now, self._view.position)
            case DoneRequest():
                return self._leader.done(request, now)
            case SessionHeartbeat():
                if request.over:
                    self._pops.end(request.session, now)
                return self._leader.heartbeat(request, now)
            case ActivateRequest():
                return self._leader.activate(request, now)
            case PreemptingRequest():
                return self._leader.preempting(request, now)
            case QueueListRequest():
                return self._list(request)
            case Would():
                return self._would(request, now)

    def _outranked(self, ticket: int, request: Request) -> Declined | StepDown | None:
        """What comes of the epoch that who asks knows; None: nothing, it is not above the leader's own."""
        own = self._leader.epoch
        known = _known_epoch(request)
        if known <= own:
            return None
        if known > own + MOST_TERMS:
            return Declined(ticket, f"epoch {known} was never a leader's: this one's is {own}; start a new session")
        return StepDown(known)

    def _refused(self, ticket: int, request: Request, why: str) -> Reply | Declined:
        if isinstance(request, PopRequest):
            return Reply(ticket, PopReply(epoch=self._leader.epoch, refused=why))
        if isinstance(request, QueueListRequest | Would):
            return Declined(ticket, why)
        return Reply(ticket, QueueReply(epoch=self._leader.epoch, refused=why))

    def pods_came(self, now: float) -> None:
        """There may be pods for pops that wait."""
        if self._pops and self._leader.queue.has_ready():
            self._pops.pods_came(now)

    def hand_out(self, now: float) -> list[Reply]:
        """Answers to pops that have waited, for whom it is time."""
        if now < self._pops.wake_at:
            return []
        replies: list[Reply] = []
        nothing: list[WaitingPop] = []
        for one in self._pops.take_due(now):
            self.in_hand = one.ticket
            reply = self._leader.pop(one.request, now, self._view.position)
            if reply is None and one.deadline <= now:
                reply = self._leader.pop_nothing(one.request, self._view.position)
            if reply is None:
                nothing.append(one)
            else:
                replies.append(Reply(one.ticket, reply))
        self.in_hand = None
        self._pops.put_back(nothing)
        return replies

    def _list(self, request: QueueListRequest) -> QueueListReply:
        reply = listing.reply(self._leader, request, position=self._view.position, instance=self._instance)
        beyond = outside.found(self._view, self._leader.profiles, request)
        return msgspec.structs.replace(reply, outside=beyond.pods, outside_total=beyond.total)

    def _would(self, would: Would, now: float) -> WouldReply:
        found = what_if.verdicts(self._leader.queue, (would.namespace, would.name), would.events, now)
        return msgspec.structs.replace(found, epoch=self._leader.epoch, position=self._view.position)


def _known_epoch(request: Request) -> int:
    """The highest epoch of which who asks knows; 0: it does not say."""
    if isinstance(request, PopRequest | DoneRequest | SessionHeartbeat | PreemptingRequest):
        return request.epoch
    return 0
