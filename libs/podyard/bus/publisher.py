"""Publishing into streams: one message, many independent ones, or an atomic batch (ADR-50)."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
from nats.nuid import NUID

from podyard.bus._inbox import Answer, Inbox
from podyard.bus._link import Link, Sendable
from podyard.bus.errors import BusError, RequestTimeout, Unavailable, Unclear
from podyard.bus.outgoing import Ack, Outgoing, batch_lines, head_of, read_ack

WINDOW_BYTES: Final = 16 * 1024 * 1024
"""Payload of `publish_many` under way at once: some milliseconds of a disk, and bounded memory."""

MAX_BATCH: Final = 1000
"""Messages in an atomic batch. Source: ADR-50."""


class Publisher:
    """The three ways to store messages; state is only what is under way."""

    def __init__(self, link: Link, inbox: Inbox) -> None:
        self._link = link
        self._inbox = inbox
        self._nuid = NUID()

    async def publish(self, message: Outgoing, *, timeout_s: float | None = None) -> Ack:
        """Store one message."""
        timeout_s = timeout_s or self._link.settings.request_timeout_s
        head = head_of(message, marker_ttl_s=self._link.settings.marker_ttl_s)
        answer = await self._inbox.request(message.subject, message.payload, head, timeout_s)
        return _sure(read_ack(*answer, message.subject, size_bytes=len(message.payload)))

    async def publish_many(
        self, messages: Sequence[Outgoing], *, timeout_s: float | None = None
    ) -> list[Ack | BusError]:
        """Store messages that do not depend on each other, many under way at once."""
        timeout_s = timeout_s or self._link.settings.request_timeout_s
        return await _Pipeline(self._link, self._inbox, messages, timeout_s).run()

    async def publish_batch(
        self, messages: Sequence[Outgoing], *, batch_id: str | None = None, timeout_s: float | None = None
    ) -> Ack:
        """Store all or none."""
        if not 1 <= len(messages) <= MAX_BATCH:
            raise ValueError(f"a batch has 1 to {MAX_BATCH} messages, not {len(messages)}")
        if len({message.subject for message in messages}) != len(messages):
            raise ValueError("a subject is twice in the batch, which the server refuses without saying so")
        timeout_s = timeout_s or self._link.settings.request_timeout_s
        batch = _Batch(self._link, self._inbox, messages, batch_id or self._nuid.next().decode())
        return await batch.run(timeout_s)


class _Batch:
    """One atomic batch under way. The first and the last message are answered: the first only if it cannot
    begin."""

    def __init__(self, link: Link, inbox: Inbox, messages: Sequence[Outgoing], batch_id: str) -> None:
        self._link = link
        self._inbox = inbox
        self._messages = messages
        self._batch_id = batch_id
        self._result: Ack | BusError | None = None
        self._done = anyio.Event()

    async def run(self, timeout_s: float) -> Ack:
        await self._link.ready(timeout_s)
        replies = [self._inbox.expect(self._on_commit)]
        if len(self._messages) > 1:
            replies.append(self._inbox.expect(self._on_begin))
        try:
            self._send(replies)
            with anyio.move_on_after(timeout_s):
                await self._done.wait()
        finally:
            for reply in replies:
                self._inbox.forget(reply)
        return _sure(self._result or RequestTimeout(f"batch {self._batch_id}", timeout_s))

    def _send(self, replies: list[str]) -> None:
        """All are looked at before one is sent: a batch that is begun and not ended keeps the server busy
        with it."""
        last, ttl_s = len(self._messages), self._link.settings.marker_ttl_s
        ready: list[Sendable] = []
        for number, message in enumerate(self._messages, 1):
            reply = replies[0] if number == last else replies[1] if number == 1 else ""
            place = batch_lines(self._batch_id, number, last=number == last)
            ready.append((message.subject, message.payload, reply, head_of(message, place, ttl_s)))
        self._link.publish_all(ready)

    def _on_begin(self, answer: Answer | None) -> None:
        if answer is not None and (answer.payload or answer.head):
            self._settle(read_ack(*answer, self._messages[0].subject, batch_id=self._batch_id))

    def _on_commit(self, answer: Answer | None) -> None:
        if answer is None:
            self._settle(Unclear(f"batch {self._batch_id}", "the connection was lost before the answer"))
        else:
            self._settle(read_ack(*answer, self._messages[-1].subject, batch_id=self._batch_id))

    def _settle(self, result: Ack | BusError) -> None:
        if self._result is None:
            self._result = result
            self._done.set()


class _Pipeline:
    """Messages of one `publish_many`. Sent in order, at most a window of them unanswered."""

    def __init__(self, link: Link, inbox: Inbox, messages: Sequence[Outgoing], timeout_s: float) -> None:
        self._link = link
        self._inbox = inbox
        self._messages = messages
        self._timeout_s = timeout_s
        self._results: list[Ack | BusError | None] = [None] * len(messages)
        self._replies: list[str] = []
        self._deadlines: list[float] = []
        self._oldest = 0
        """Every message before it is settled."""

        self._under_way = 0
        self._bytes_under_way = 0
        self._enough = 0
        """So few may be under way that who waits is woken: not for each answer, of which there may be
        thousands."""

        self._progress = anyio.Event()

    async def run(self) -> list[Ack | BusError]:
        try:
            for index, message in enumerate(self._messages):
                while self._full():
                    await self._wait_for_answers(self._under_way - 1)
                if not await self._send(index, message):
                    break
            while self._under_way:
                await self._wait_for_answers(0)
        finally:
            for reply in self._replies[self._oldest :]:
                self._inbox.forget(reply)
        return [result or Unavailable("not sent: there is no connection to NATS") for result in self._results]

    def _full(self) -> bool:
        return self._under_way >= self._link.settings.publish_window or self._bytes_under_way >= WINDOW_BYTES

    async def _send(self, index: int, message: Outgoing) -> bool:
        """Send one; False if there is no connection, so that the rest need not be tried."""
        refused = None if self._link.open else await self._refused()
        # not before: a connection is left when no answer is awaited any more
        reply = self._inbox.expect(partial(self._on_answer, index))
        self._replies.append(reply)
        self._deadlines.append(time.monotonic() + self._timeout_s)
        self._under_way += 1
        self._bytes_under_way += len(message.payload)
        try:
            if refused is not None:
                raise refused
            head = head_of(message, marker_ttl_s=self._link.settings.marker_ttl_s)
            self._link.publish(message.subject, message.payload, reply, head)
        except BusError as error:
            self._inbox.forget(reply)
            self._settle(index, error)
            return not isinstance(error, Unavailable)
        return True

    async def _refused(self) -> Unavailable | None:
        """Wait for a connection; what to say if there is none."""
        try:
            await self._link.ready(self._timeout_s)
        except Unavailable as error:
            return error
        return None

    async def _wait_for_answers(self, enough: int) -> None:
        """Until at most `enough` are under way, or the time of the oldest message ran out."""
        results = self._results
        while self._oldest < len(self._replies) and results[self._oldest] is not None:
            self._oldest += 1
        if not self._under_way:
            return
        self._enough = enough
        self._progress = anyio.Event()
        with anyio.move_on_after(max(0.0, self._deadlines[self._oldest] - time.monotonic())):
            await self._progress.wait()
            return
        self._expire()

    def _expire(self) -> None:
        now = time.monotonic()
        for index in range(self._oldest, len(self._replies)):
            if self._deadlines[index] > now:
                break
            if self._results[index] is None:
                self._inbox.forget(self._replies[index])
                self._settle(index, RequestTimeout(self._messages[index].subject, self._timeout_s))

    def _on_answer(self, index: int, answer: Answer | None) -> None:
        message = self._messages[index]
        if answer is None:
            self._settle(index, Unclear(message.subject, "the connection was lost before the answer"))
        else:
            self._settle(index, read_ack(*answer, message.subject, size_bytes=len(message.payload)))

    def _settle(self, index: int, result: Ack | BusError) -> None:
        if self._results[index] is None:
            self._results[index] = result
            self._under_way -= 1
            self._bytes_under_way -= len(self._messages[index].payload)
            if self._under_way <= self._enough:
                self._progress.set()


def _sure(result: Ack | BusError) -> Ack:
    if isinstance(result, BusError):
        raise result
    return result
