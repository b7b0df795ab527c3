"""What is published, and what the server says to it."""

from typing import Any, NamedTuple

import msgspec

from podyard.bus import _heads, errors
from podyard.proto import codec, headers
from podyard.proto.codec import MessageError
from podyard.proto.streams import MARKER_TTL_S


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A message for a stream.

    `expect` makes it a compare-and-set: the subject's last sequence must be that one (0 = there is no
    message; a deletion marker is a message), and the server keeps it with the message, where readers find the
    predecessor. `ttl_s` (whole seconds, at least 1) is how long the server keeps it; `expires`: as long as
    deletion markers (`BusSettings.marker_ttl_s`). `trace` is a W3C traceparent. `message_id` lets the server
    drop repetitions within two minutes.
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

    expires: bool = False
    """Whether the server forgets it as soon as a deletion marker."""

    def but(self, **changes: Any) -> "Outgoing":
        """The same message, but for these fields."""
        return msgspec.structs.replace(self, **changes)


class Ack(NamedTuple):
    """The server has stored it.

    `sequence` is the message's (of a batch: its last message's); `duplicate` says that a message with the
    same `message_id` was stored before, and `sequence` is that one's.
    """

    sequence: int
    duplicate: bool = False


class _PubAck(msgspec.Struct, frozen=True):
    seq: int = 0
    duplicate: bool = False
    error: errors.ApiError | None = None


_decode_ack = codec.decoder(_PubAck).decode


def head_of(message: Outgoing, batch: str = "", marker_ttl_s: int = MARKER_TTL_S) -> bytes:
    """The header block of `message`, with the lines of its place in a `batch`; empty if there is nothing to
    say.

    :param marker_ttl_s: how long the server keeps a message that `expires`

    :raises ValueError: if `ttl_s` is below 1, or a further header has an impossible name
    """
    text = batch
    if message.expect is not None:
        text += f"{headers.EXPECTED_LAST_SUBJECT_SEQUENCE}: {message.expect:d}\r\n"
    if message.trace:
        text += _heads.line(headers.TRACEPARENT, message.trace)
    ttl_s = marker_ttl_s if message.expires else message.ttl_s
    if ttl_s is not None:
        if ttl_s < 1:
            raise ValueError(f"{message.subject}: ttl_s is {ttl_s}, must be at least 1 (whole seconds)")
        text += f"{headers.TTL}: {int(ttl_s)}s\r\n"
    if message.message_id:
        text += _heads.line(headers.MESSAGE_ID, message.message_id)
    if message.deleted:
        text += f"{headers.OPERATION}: {headers.DELETED}\r\n"
    if message.headers:
        text += "".join(_heads.line(name, value) for name, value in message.headers.items())
    return _heads.block(text) if text else b""


def batch_lines(batch_id: str, number: int, *, last: bool) -> str:
    """The header lines of message `number`, from 1, of an atomic batch (ADR-50)."""
    commit = f"{headers.BATCH_COMMIT}: 1\r\n" if last else ""
    return f"{headers.BATCH_ID}: {batch_id}\r\n{headers.BATCH_SEQUENCE}: {number}\r\n{commit}"


def read_ack(
    payload: bytes, head: bytes, subject: str, *, batch_id: str = "", size_bytes: int = 0
) -> Ack | errors.BusError:
    """What the server answered to a message on `subject`."""
    if _heads.status(head) == _heads.NO_RESPONDERS:
        return errors.NoResponders(subject)
    try:
        answer = _decode_ack(payload)
    except MessageError as error:
        return errors.Unclear(subject, f"the answer is not an acknowledgement ({error.reason})")
    if answer.error is not None:
        return errors.from_api(answer.error, subject, batch_id=batch_id, size_bytes=size_bytes)
    return Ack(answer.seq, answer.duplicate)
