"""The CLUSTER stream without a bus: calls that answer at once.

It is the stream of the memory bus, of which the bus' own tests prove that it does what nats-server does.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from podyard.bus import Ack, BusError, Delivery, Outgoing
from podyard.bus.bootstrap import config_of
from podyard.bus.errors import ApiError, from_api
from podyard.bus.outgoing import batch_lines, head_of
from podyard.bus.publisher import MAX_BATCH
from podyard.proto import codec, streams, subjects
from podyard.proto.placement import Binding, CommitRecord, Fence, Placement, Tombstone
from tests.memory_nats.stream import Incoming, Refusal, Stored, Stream

COMMITS: Final = "placement.commits."
_decode_placement: Final = codec.decoder(Placement).decode
_decode_commit: Final = codec.decoder(CommitRecord).decode


class ClusterStream:
    """`log` is every message in the order of sequences, `held` what still lies in the stream."""

    def __init__(
        self, clock: Callable[[], float] | None = None, on_stored: Callable[[Delivery], None] | None = None
    ) -> None:
        """
        :param clock: seconds; if None, a second passes with every message
        :param on_stored: told of each message
        """
        self._clock = clock
        self._on_stored = on_stored
        self._commits: list[CommitRecord] = []
        self.remake()

    def remake(self) -> None:
        """As if it were deleted and made again: empty, its sequences from 1."""
        self.log: list[Delivery] = []
        self._searched = 0
        self._stream = Stream(config_of(streams.CLUSTER), 0.0)

    @property
    def last(self) -> int:
        """The sequence of the last message that was stored."""
        return len(self.log)

    @property
    def now(self) -> float:
        return float(self.last + 1) if self._clock is None else self._clock()

    # ---- writing

    def publish(self, message: Outgoing) -> Ack | BusError:
        """One message, and what the server says to it."""
        answer = self._stream.store(_incoming(message), self.now)
        if isinstance(answer, Refusal):
            return _error(answer, message.subject)
        assert isinstance(answer, Stored), "a repetition: no message here has an id"
        return self._keep([answer])

    def publish_batch(self, messages: Sequence[Outgoing], batch_id: str) -> Ack | BusError:
        """All of them or none, and what the server says to it. Neither it nor the link would take more than
        this.
        """
        assert 1 <= len(messages) <= MAX_BATCH, f"a batch of {len(messages)} messages"
        for number, message in enumerate(messages, 1):
            place = batch_lines(batch_id, number, last=number == len(messages))
            answer = self._stream.stage(_incoming(message, place), self.now)
            if isinstance(answer, Refusal):
                return _error(answer, message.subject, batch_id)
            if answer is not None:
                return self._keep(answer)
        raise AssertionError("the last message of a batch commits it")

    def put(self, message: Outgoing) -> Delivery:
        """One message of a writer that knows what is there: it expects just that."""
        answer = self.publish(message.but(expect=self.sequence_of(message.subject)))
        assert isinstance(answer, Ack), answer
        return self.log[-1]

    def put_all(self, messages: Sequence[Outgoing]) -> None:
        """One after the other."""
        for message in messages:
            self.put(message)

    def expire(self, subject: str) -> None:
        """What the server does when a TTL ends: nobody hears of it."""
        self._stream.purge(subject, self.now)

    def _keep(self, found: Sequence[Stored]) -> Ack:
        for one in found:
            delivery = Delivery(one.subject, one.payload, one.sequence, one.stored_at, head=one.head)
            self.log.append(delivery)
            if self._on_stored is not None:
                self._on_stored(delivery)
        return Ack(found[-1].sequence)

    # ---- reading

    def find(self, subject: str) -> Delivery | None:
        """What lies on a subject."""
        found = self._stream.get(subject, self.now)
        return None if found is None else self.log[found.sequence - 1]

    def sequence_of(self, subject: str) -> int:
        """The version on a subject, 0 if there is none: what a writer expects."""
        found = self._stream.get(subject, self.now)
        return 0 if found is None else found.sequence

    def held(self) -> list[Delivery]:
        """What lies in the stream, in order."""
        self._stream.expire(self.now)
        return [self.log[found.sequence - 1] for found in self._stream.after(0)]

    @property
    def messages(self) -> dict[str, Delivery]:
        """The same by subject."""
        return {one.subject: one for one in self.held()}

    def listed(self) -> list[Delivery]:
        """What a listing reads: everything but the commit records."""
        return [one for one in self.held() if not one.subject.startswith(COMMITS)]

    def after(self, position: int) -> Iterator[Delivery]:
        """What a reader gets that follows from `position`: no version that was replaced before it came to
        it."""
        while position < self.last:
            delivery = self.log[position]
            position += 1
            if self.sequence_of(delivery.subject) == position:
                yield delivery

    # ---- placements

    @property
    def commits(self) -> list[CommitRecord]:
        """Every commit record ever written, in order."""
        for delivery in self.log[self._searched :]:
            if delivery.subject.startswith(COMMITS):
                self._commits.append(_decode_commit(delivery.payload))
        self._searched = self.last
        return self._commits

    def live(self) -> dict[str, str]:
        """Node by name of the pods that the commit records leave bound."""
        bound: dict[str, str] = {}
        for record in self.commits:
            bound.update({pod.name: pod.node for pod in record.bindings})
            for release in record.releases:
                bound.pop(release.name, None)
        return bound

    def placement(self, name: str, uid: str = "", namespace: str = "default") -> Binding | Tombstone | None:
        """What the binder has written about a pod, whose uid is `uid-<name>` if none is given."""
        found = self.find(subjects.binding(namespace, name, uid or f"uid-{name}"))
        return _decode_placement(found.payload) if found else None

    def fence(self) -> Fence:
        """Who may write placements."""
        found = self.find(subjects.FENCE)
        assert found is not None, "no binder has written yet"
        return codec.decode(Fence, found.payload)


def _incoming(message: Outgoing, place: str = "") -> Incoming:
    assert len(message.payload) <= streams.MAX_PAYLOAD_BYTES, f"the server takes no such message: {message.subject}"
    head = head_of(message, place)
    lines = Delivery(message.subject, b"", 0, head=head).headers
    return Incoming(message.subject, message.payload, head, lines)


def _error(refusal: Refusal, subject: str, batch_id: str = "") -> BusError:
    return from_api(ApiError(400, refusal.code, refusal.text), subject, batch_id=batch_id)
