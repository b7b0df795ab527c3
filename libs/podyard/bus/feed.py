"""One push consumer and the check that nothing of it was lost.

A connection that broke, a server that forgot a consumer's state: both show as a hole in the consumer's own
sequence, in a message or in an idle heartbeat. A feed that is broken stays so; its watch makes another.
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

log: Final = logging.getLogger("podyard.bus")

INACTIVE_S: Final = 30
"""The server removes a consumer that nobody listened to for so long; a shorter loss of connection may leave
it whole."""

_ACK_TOKENS: Final = 9
"""`$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`; with domain and
account 12."""


class FeedOwner(Protocol):
    """Whom a feed tells; all synchronous and not raising."""

    def on_message(self, delivery: Delivery, pending: int) -> None: ...
    def on_heartbeat(self, last_stream: int) -> None: ...
    def on_stalled(self) -> None: ...
    def on_broken(self, reason: str) -> None: ...


class Feed:
    """Delivers one consumer's messages in order, or says that it is broken."""

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
        self._broken = False

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
        self._broken = True
        if self._subscription is not None:
            await self._subscription.close()
        self._send(f"{self._link.settings.jetstream_prefix}.CONSUMER.DELETE.{self._stream}.{self.consumer}")

    def _on_message(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        if self._broken:
            return
        if _heads.status(head) == _heads.CONTROL:
            self._on_control(reply, _heads.parse(head))
            return
        tokens = reply.split(".")
        first = 5 if len(tokens) == _ACK_TOKENS else 7
        try:
            sequence, number, stored_ns, pending = (int(token) for token in tokens[first : first + 4])
        except ValueError:
            log.warning("%s got a message that no consumer sent, reply subject %r", self._subject, reply)
            return
        if number != self._received + 1:
            self._break(f"messages {self._received + 1} to {number - 1} of the consumer were lost")
            return
        self._received = number
        self._last_sequence = sequence
        self._owner.on_message(Delivery(subject, payload, sequence, stored_ns / SECOND_NS, head=head), pending)

    def _on_control(self, reply: str, lines: dict[str, str]) -> None:
        """An idle heartbeat, or a flow control request, which is answered once all before it was handed over:
        now."""
        if reply:
            self._send(reply)
            self._owner.on_stalled()
            return
        stalled = lines.get(headers.CONSUMER_STALLED)
        if stalled:
            self._send(stalled)
        last_consumer, last_stream = lines.get(headers.LAST_CONSUMER, ""), lines.get(headers.LAST_STREAM, "")
        if not (last_consumer.isdecimal() and last_stream.isdecimal()):
            return
        if int(last_consumer) != self._received:
            self._break(f"the consumer has sent {last_consumer} messages, {self._received} arrived")
        elif int(last_stream) < self._last_sequence:
            self._break(f"the stream went back from {self._last_sequence} to {last_stream}")
        elif stalled:
            self._owner.on_stalled()
        else:
            self._owner.on_heartbeat(int(last_stream))

    def _send(self, subject: str) -> None:
        """An empty message that may be lost: the server asks again, or forgets by itself."""
        try:
            self._link.publish(subject, b"")
        except BusError as error:
            log.debug("nothing was sent to %s: %s", subject, error)

    def _break(self, reason: str) -> None:
        if not self._broken:
            self._broken = True
            self._owner.on_broken(reason)
