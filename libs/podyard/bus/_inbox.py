"""Where answers arrive: one subscription for all of them, each found by a token in its subject."""

from collections.abc import Callable
from typing import NamedTuple

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from nats.nuid import NUID

from podyard.bus import _heads
from podyard.bus._link import BusState, Link
from podyard.bus.errors import NoResponders, RequestTimeout, Unclear


class Answer(NamedTuple):
    """What came back: payload and header block."""

    payload: bytes
    head: bytes = b""


Complete = Callable[[Answer | None], None]
"""Gets the answer, or None when the connection was lost before it came."""


class Inbox:
    """Answers of a link. Those awaited when the connection is lost are given up at once: they will not
    come."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._prefix = f"{link.settings.inbox}.{NUID().next().decode()}."
        self._waiting: dict[str, Complete] = {}
        self._count = 0

    async def open(self) -> None:
        """Start listening."""
        await self._link.subscribe(f"{self._prefix}*", self._on_message)
        self._link.on_state(self._on_state)
        self._link.on_leaving(lambda: bool(self._waiting))

    def expect(self, complete: Complete) -> str:
        """The reply subject for one message; `complete` is called once with its answer."""
        self._count += 1
        token = str(self._count)
        self._waiting[token] = complete
        return self._prefix + token

    def forget(self, reply: str) -> None:
        """Nobody waits for that answer any more."""
        self._waiting.pop(reply[len(self._prefix) :], None)

    async def request(
        self, subject: str, payload: bytes, head: bytes, timeout_s: float, again_s: float | None = None
    ) -> Answer:
        """Send and wait for the one answer.

        :param again_s: the message is sent again so often, and the first answer to any of them counts: for
            questions that change nothing, to one of several of which some may be silent
        :raises Unavailable: if there was no connection within `timeout_s`; nothing was sent
        :raises NoResponders: if nobody listens on `subject`
        :raises Unclear: if no answer came within `timeout_s`, or the connection was lost
        """
        await checkpoint_if_cancelled()
        await self._link.ready(timeout_s)
        slot = _Slot()
        reply = self.expect(slot.complete)
        try:
            self._link.publish(subject, payload, reply, head)
            with anyio.move_on_after(timeout_s):
                if again_s is None:
                    await slot.done.wait()
                else:
                    while not await slot.is_done_within(again_s):
                        self._link.publish(subject, payload, reply, head, begun=True)
        finally:
            self.forget(reply)
        if not slot.done.is_set():
            raise RequestTimeout(subject, timeout_s)
        if slot.answer is None:
            raise Unclear(subject, "the connection was lost before the answer")
        if _heads.status(slot.answer.head) == _heads.NO_RESPONDERS:
            raise NoResponders(subject)
        return slot.answer

    def _on_message(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        complete = self._waiting.pop(subject[len(self._prefix) :], None)
        if complete is not None:
            complete(Answer(payload, head))

    def _on_state(self, state: BusState) -> None:
        if state.connected or not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        for complete in waiting.values():
            complete(None)


class _Slot:
    __slots__ = ("answer", "done")

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.done = anyio.Event()

    def complete(self, answer: Answer | None) -> None:
        self.answer = answer
        self.done.set()

    async def is_done_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.done.wait()
        return self.done.is_set()
