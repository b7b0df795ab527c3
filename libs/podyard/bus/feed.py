"""One push consumer and the check that nothing of it was lost
(docs/rules.md, little-is-on-its-way).

A connection that broke, a server that forgot a consumer's state: both show as a hole in the consumer's own
sequence, in a message or in an idle heartbeat. A feed that is broken stays so; its watch makes another.

What is on its way to a slow reader stands before everything else that its connection brings: the answer to a
lease's renewal waits for all of it. The server doubles what it sends unasked with each answer to its flow
control, up to 32 MiB, and closes a connection on which 64 MiB wait, which two readers reach. So the feed
answers until `WIDEST` bytes may be on their way, and no more: when all of them have come the feed is full,
and its watch goes on by another feed.
"""

import logging
from typing import Final, Protocol

from nats.nuid import NUID

from podyard.bus import _heads
from podyard.bus._api import SECOND_NS, Api, ConsumerConfig
from podyard.bus._link import Link, LinkSubscription
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError
from podyard.proto import headers
from podyard.proto.streams import MEBIBYTE

log: Final = logging.getLogger("podyard.bus")

INACTIVE_S: Final = 30
"""The server removes a consumer that nobody listened to for so long; a shorter loss of connection may leave
it whole."""

NARROWEST: Final = 2 * MEBIBYTE
"""Bytes that the server sends at first before it waits for an answer. Source: nats-server v2.15.1,
server/consumer.go, setMaxPendingBytes: a sixteenth of JsFlowControlMaxPending."""
WIDEST: Final = 4 * MEBIBYTE
"""Bytes that may be on their way to a reader; one message may come on top."""

_ACK_TOKENS: Final = 9
"""`$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`; with domain and
account 12."""


class FeedOwner(Protocol):
    """Whom a feed tells; all synchronous and not raising."""

    def on_message(self, delivery: Delivery, pending: int) -> None: ...
    def on_heartbeat(self, last_stream: int) -> None: ...
    def on_stalled(self) -> None: ...
    def on_full(self) -> None: ...
    def on_broken(self, reason: str) -> None: ...


class Feed:
    """Delivers one consumer's messages in order, until it is full, or says that it is broken."""

    def __init__(self, link: Link, stream: str, heartbeat_s: float, owner: FeedOwner) -> None:
        """:param heartbeat_s: how often the server says that it has nothing; at least 0.1"""
        self.consumer = NUID().next().decode()
        self._link = link
        self._stream = stream
        self._heartbeat_s = heartbeat_s
        self._owner = owner
        self._subject = f"{link.settings.inbox}.{self.consumer}"
        self._subscription: LinkSubscription | None = None
        self._received = 0
        self._last_sequence = 0
        self.full = False
        """All has come that the server sends without an answer: nothing more will."""
        self._over = False
        """What still comes is of no use: the feed is broken, full or closed."""
        self._window = NARROWEST
        """Bytes that the server sends before it waits for an answer."""
        self._on_way = 0
        """Bytes that came since the last answer: what the server counts as being on its way."""
        self._answered = ""
        """The last request for flow control that was answered."""
        self._unanswered = False
        """A later request is left without an answer."""

    async def open(self, api: Api, subjects: tuple[str, ...], start: int) -> int:
        """Begin at stream sequence `start` (0 = at the first message); returns how many messages wait.

        :raises BusError: if the consumer could not be made
        """
        self._subscription = await self._link.subscribe(self._subject, self._on_message)
        config = ConsumerConfig(
            name=self.consumer,
            deliver_subject=self._subject,
            filter_subjects=subjects,
            opt_start_seq=start,
            deliver_policy="by_start_sequence" if start else "all",
            ack_policy="none",
            replay_policy="instant",
            idle_heartbeat=int(self._heartbeat_s * SECOND_NS),
            flow_control=True,
            inactive_threshold=INACTIVE_S * SECOND_NS,
            num_replicas=1,
            mem_storage=True,
        )
        return (await api.create_consumer(self._stream, config)).num_pending

    async def close(self) -> None:
        """Stop; the server is told to forget the consumer, and does so by itself if it does not hear that."""
        self._over = True
        if self._subscription is not None:
            await self._subscription.close()
        self._send(f"{self._link.settings.jetstream_prefix}.CONSUMER.DELETE.{self._stream}.{self.consumer}")

    def _on_message(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        if self._over:
            return
        if _heads.status(head) == _heads.CONTROL:
            self._on_control(reply, _heads.parse(head))
            return
        tokens = reply.split(".")
        first = 5 if len(tokens) == _ACK_TOKENS else 7
        try:
            sequence, number, stored_ns, pending = map(int, tokens[first : first + 4])
        except ValueError:
            log.warning("%s got a message that no consumer sent, reply subject %r", self._subject, reply)
            return
        if number != self._received + 1:
            self._break(f"messages {self._received + 1} to {number - 1} of the consumer were lost")
            return
        self._received = number
        self._last_sequence = sequence
        self._on_way += len(self._subject) + len(reply) + len(head) + len(payload)
        self._owner.on_message(Delivery(subject, payload, sequence, stored_ns / SECOND_NS, head=head), pending)
        if self._unanswered and self._on_way > self._window:
            self._fill()

    def _on_control(self, reply: str, lines: dict[str, str]) -> None:
        """An idle heartbeat, or a flow control request: all before it was handed over."""
        if reply:
            self._on_flow_control(reply)
            return
        stalled = lines.get(headers.CONSUMER_STALLED)
        last_consumer, last_stream = lines.get(headers.LAST_CONSUMER, ""), lines.get(headers.LAST_STREAM, "")
        if not (last_consumer.isdecimal() and last_stream.isdecimal()):
            return
        if int(last_consumer) != self._received:
            self._break(f"the consumer has sent {last_consumer} messages, {self._received} arrived")
        elif int(last_stream) < self._last_sequence:
            self._break(f"the stream went back from {self._last_sequence} to {last_stream}")
        elif stalled and stalled == self._answered:
            self._send(stalled)  # the answer is on its way, or was lost
            self._owner.on_stalled()
        elif stalled:
            self._fill()
        else:
            self._owner.on_heartbeat(int(last_stream))

    def _on_flow_control(self, reply: str) -> None:
        if self._window < WIDEST:
            self._send(reply)
            self._answered = reply
            self._window *= 2
            self._on_way = 0
        else:
            self._unanswered = True
        self._owner.on_stalled()

    def _fill(self) -> None:
        self.full = self._over = True
        self._owner.on_full()

    def _send(self, subject: str) -> None:
        """An empty message that may be lost: the server asks again, or forgets by itself."""
        try:
            self._link.publish(subject, b"")
        except BusError as error:
            log.debug("nothing was sent to %s: %s", subject, error)

    def _break(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._owner.on_broken(reason)
