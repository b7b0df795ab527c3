"""The JetStream API as raw requests: what nats-py does not offer, and typed answers by msgspec."""

from datetime import datetime
from typing import Any, Final, Literal, TypeVar

import msgspec

from podyard.bus import _heads, errors
from podyard.bus._inbox import Answer, Inbox
from podyard.bus.delivery import Delivery
from podyard.proto import codec
from podyard.proto.codec import MessageError

SECOND_NS = 1_000_000_000


class StreamState(msgspec.Struct, frozen=True):
    """What a stream holds."""

    last_seq: int = 0
    messages: int = 0


class StreamInfo(msgspec.Struct, frozen=True):
    """A stream as the server describes it. `created` tells a stream from another of the same name."""

    config: dict[str, Any]
    created: str
    state: StreamState = StreamState()


class ConsumerConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A push consumer that needs no acknowledgement and dies with its reader; times in nanoseconds."""

    name: str
    deliver_subject: str
    filter_subjects: tuple[str, ...]
    opt_start_seq: int = 0
    deliver_policy: Literal["all", "by_start_sequence"]
    ack_policy: Literal["none"] = msgspec.field()
    replay_policy: Literal["instant"] = msgspec.field()
    max_deliver: int = -1
    idle_heartbeat: int = 0
    flow_control: bool = False
    inactive_threshold: int = 0
    num_replicas: int = 0
    mem_storage: bool = False


class ConsumerInfo(msgspec.Struct, frozen=True):
    """A consumer as the server describes it; `num_pending` messages wait for it."""

    name: str
    stream_name: str = ""
    num_pending: int = 0


class Purged(msgspec.Struct, frozen=True):
    """Answer to a purge."""

    purged: int = 0


class _Failure(msgspec.Struct, frozen=True):
    error: errors.ApiError | None = None


ASKED_AGAIN_S: Final = 0.5
"""A single message is asked for again so often (docs/rules.md, reads-are-asked-for-again)."""

T = TypeVar("T")
_decode_failure = codec.decoder(_Failure).decode


class Api:
    """Requests to JetStream; each waits at most `timeout_s`, by default the settings' request time-out."""

    def __init__(self, inbox: Inbox, timeout_s: float, prefix: str = "$JS.API") -> None:
        self._inbox = inbox
        self._timeout_s = timeout_s
        self._prefix = prefix

    async def call(self, verb: str, body: object, answer_type: type[T], timeout_s: float | None = None) -> T:
        """Ask `$JS.API.<verb>`, or what the settings put for `$JS.API`.

        :raises NotFound: if the stream or consumer does not exist
        :raises BusError: for other refusals, and what `Inbox.request` raises
        """
        subject = f"{self._prefix}.{verb}"
        payload = b"" if body is None else msgspec.json.encode(body)
        answer = await self._inbox.request(subject, payload, b"", timeout_s or self._timeout_s)
        try:
            failure = _decode_failure(answer.payload).error
            if failure is not None:
                raise errors.from_api(failure, subject)
            return codec.decode(answer_type, answer.payload)
        except MessageError as error:
            raise errors.Unclear(subject, f"the answer is not understood ({error.reason})") from error

    async def stream_info(self, stream: str, timeout_s: float | None = None) -> StreamInfo:
        """What a stream is and holds; goes through its leader."""
        return await self.call(f"STREAM.INFO.{stream}", None, StreamInfo, timeout_s)

    async def create_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Make a consumer; the answer's `num_pending` is what it will deliver at once."""
        body = {"stream_name": stream, "config": config, "action": "create"}
        return await self.call(f"CONSUMER.CREATE.{stream}.{config.name}", body, ConsumerInfo)

    async def consumer_info(self, stream: str, consumer: str, timeout_s: float) -> ConsumerInfo:
        """Whether a consumer is still there."""
        return await self.call(f"CONSUMER.INFO.{stream}.{consumer}", None, ConsumerInfo, timeout_s)

    async def purge(self, stream: str, subject: str) -> int:
        """Remove all messages of a subject; returns how many."""
        return (await self.call(f"STREAM.PURGE.{stream}", {"filter": subject}, Purged)).purged

    async def last_message(self, stream: str, subject: str, timeout_s: float | None = None) -> Delivery | None:
        """The last message of a subject as some replica has it, None if it has none."""
        verb = f"{self._prefix}.DIRECT.GET.{stream}.{subject}"
        answer = await self._inbox.request(verb, b"", b"", timeout_s or self._timeout_s, again_s=ASKED_AGAIN_S)
        status = _heads.status(answer.head)
        if status == _heads.NOT_FOUND:
            return None
        if status:
            raise errors.Refused(verb, int(status), _heads.description(answer.head))
        return _stored(answer)


def _stored(answer: Answer) -> Delivery:
    lines = _heads.parse(answer.head)
    stored_at = datetime.fromisoformat(lines["Nats-Time-Stamp"]).timestamp()
    return Delivery(lines["Nats-Subject"], answer.payload, int(lines["Nats-Sequence"]), stored_at, lines)
