"""Requests in hand: a core is told of each under a ticket, and names it in its reply, at once or much
later.
"""

import itertools
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import anyio

from podyard.shell.causes import Cause

R = TypeVar("R")


class _InHand(Generic[R]):
    """A request, until it is answered."""

    __slots__ = ("cause", "reply", "some")

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.reply: R | None = None
        self.some: anyio.Event | None = None
        """Set with the reply; made only for one that is not there at once."""


class Waits(NamedTuple):
    """There is no reply yet."""

    ticket: int


class Tickets(Generic[R]):
    """Of one term. Owned by one event loop."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._in_hand: dict[int, _InHand[R]] = {}
        self._over = False

    async def ask(self, cause: Cause, tell: Callable[[int], None]) -> R | None:
        """The core's reply; None: the term has ended, and there is none.

        :param cause: the request, and what is asked for by it
        :param tell: tells the core of the request under this ticket
        """
        found = self.begin(cause, tell)
        return await self.wait(found) if isinstance(found, Waits) else found

    def begin(self, cause: Cause, tell: Callable[[int], None]) -> R | Waits | None:
        """As `ask`, for what comes at once; of what does not, `wait` is to be asked."""
        ticket, one = next(self._numbers), _InHand[R](cause)
        self._in_hand[ticket] = one
        try:
            tell(ticket)
        except BaseException:
            del self._in_hand[ticket]
            raise
        if one.reply is None and not self._over:
            return Waits(ticket)
        del self._in_hand[ticket]
        return one.reply

    async def wait(self, waits: Waits) -> R | None:
        """The core's reply; None: the term has ended."""
        one = self._in_hand[waits.ticket]
        try:
            if one.reply is None and not self._over:
                one.some = anyio.Event()
                await one.some.wait()
            return one.reply
        finally:
            del self._in_hand[waits.ticket]

    def reply(self, ticket: int, reply: R) -> None:
        """What the core says to a request; nothing happens if nobody waits for it any more."""
        one = self._in_hand.get(ticket)
        if one is not None:
            one.reply = reply
            if one.some is not None:
                one.some.set()

    def cause(self, ticket: int) -> Cause | None:
        """The request in hand with this ticket."""
        one = self._in_hand.get(ticket)
        return None if one is None else one.cause

    def end(self) -> None:
        """The term has ended: whoever waits, and whoever still asks, gets no reply."""
        self._over = True
        for one in self._in_hand.values():
            if one.some is not None:
                one.some.set()
