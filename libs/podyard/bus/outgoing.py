"""What is published, and what the server says to it."""

from typing import NamedTuple

import msgspec
from nats.aio.msg import Msg

from podyard.bus import errors
from podyard.proto import headers

STATUS = "Status"
NO_RESPONDERS = "503"


class Outgoing(NamedTuple):
    """A message for a stream.

    `expect` makes it a compare-and-set: the subject's last sequence must be that one (0 = there is no message; a deletion marker is
    a message), and the server keeps it with the message, where readers find the predecessor. `ttl_s` (whole seconds, at least 1)
    is how long the server keeps it. `trace` is a W3C traceparent. `message_id` lets the server drop repetitions within two minutes.
    """

    subject: str
    payload: bytes
    expect: int | None = None
    ttl_s: int | None = None
    trace: str = ""
    message_id: str = ""
    deleted: bool = False
    """Whether it is a deletion marker (`Podyard-Op: del`)."""

    headers: dict[str, str] | None = None
    """Further headers; copied, never changed."""


class Ack(NamedTuple):
    """The server has stored it.

    `sequence` is the message's (of a batch: its last message's); `duplicate` says that a message with the same `message_id` was
    stored before, and `sequence` is that one's.
    """

    sequence: int
    duplicate: bool = False


class _PubAck(msgspec.Struct, frozen=True):
    seq: int = 0
    duplicate: bool = False
    error: errors.ApiError | None = None


_decode_ack = msgspec.json.Decoder(_PubAck).decode


def header_dict(message: Outgoing) -> dict[str, str] | None:
    """The headers of `message`, None if it has none.

    :raises ValueError: if `ttl_s` is below 1
    """
    result = dict(message.headers) if message.headers else {}
    if message.expect is not None:
        result[headers.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(message.expect)
    if message.ttl_s is not None:
        if message.ttl_s < 1:
            raise ValueError(f"{message.subject}: ttl_s is {message.ttl_s}, must be at least 1 (whole seconds)")
        result[headers.TTL] = f"{int(message.ttl_s)}s"
    if message.trace:
        result[headers.TRACEPARENT] = message.trace
    if message.message_id:
        result[headers.MESSAGE_ID] = message.message_id
    if message.deleted:
        result[headers.OPERATION] = headers.DELETED
    return result or None


def read_ack(message: Msg, subject: str, *, batch_id: str = "", size_bytes: int = 0) -> Ack | errors.BusError:
    """What the server answered to a message on `subject`."""
    if message.headers and message.headers.get(STATUS) == NO_RESPONDERS:
        return errors.NoResponders(subject)
    try:
        answer = _decode_ack(message.data)
    except msgspec.DecodeError as error:
        return errors.Unclear(subject, f"the answer is not an acknowledgement ({error})")
    if answer.error is not None:
        return errors.from_api(answer.error, subject, batch_id=batch_id, size_bytes=size_bytes)
    return Ack(answer.seq, answer.duplicate)
