"""What can go wrong on the bus, by what the caller does about it.

::

    BusError
    ├── TemporaryError          nothing was done: try again after `delay_s`
    │   ├── Unavailable         no connection, or JetStream is not ready
    │   │   └── NoResponders    nobody listens on the subject (no leader yet, no stream yet)
    │   ├── StreamFull          the stream's or the disk's limit is reached
    │   └── Busy                the other side refused for now (too many requests at once)
    ├── Unclear                 sent, no answer: it was applied, or may yet be. Settle by a compare-and-set
    │   └── RequestTimeout      the same, of a request
    └── PermanentError          trying the same again fails again
        ├── Conflict            compare-and-set lost; `last_sequence` is what the server has
        ├── BatchUnclear        a batch was refused without saying why (10164, 10176): move the fence
        ├── TooLarge            above the server's max_payload
        ├── SubjectTooLong      above what a line of the protocol takes; nothing was sent
        ├── NotFound            no such stream or consumer
        ├── RemoteError         a service refused the request; `reason` is its sentence
        ├── Refused             any other refusal of the server, with its code
        ├── StreamSettingsConflict   a stream is in the way with settings that cannot be changed
        └── SettingsError       the connection settings make no sense
    EmbeddedServerError         the embedded server did not start

Told apart by the server's numeric error codes, never by texts.
"""

import re
from typing import Final

import msgspec

WRONG_LAST_SEQUENCE: Final = 10071
WRONG_LAST_SEQUENCE_NO_NUMBER: Final = 10164
BATCH_INCOMPLETE: Final = 10176
STREAM_NAME_IN_USE: Final = 10058
SUBJECTS_OVERLAP: Final = 10065

_NOT_FOUND: Final = frozenset({10014, 10037, 10059})
_FULL: Final = frozenset({10002, 10023, 10028, 10047, 10053, 10077})
_NOT_READY: Final = frozenset({10004, 10005, 10006, 10007, 10008, 10009, 10039, 10076, 10194, 10195, 10202})
_TOO_MANY: Final = frozenset({10074, 10167})
_TOO_MANY_BATCHES: Final = frozenset({10210, 10211})
_TOO_LARGE: Final = frozenset({10054, 10199})
_LAST_NUMBER: Final = re.compile(r"(\d+)\s*$")


class BusError(Exception):
    """Any failure of the bus."""


class TemporaryError(BusError):
    """Nothing was done; try again after `delay_s` seconds."""

    def __init__(self, sentence: str, *, delay_s: float = 0.5) -> None:
        self.delay_s = delay_s
        super().__init__(sentence)


class Unavailable(TemporaryError):
    """No connection to NATS, or its JetStream is not ready; nothing was sent."""


class NoResponders(Unavailable):
    """Nobody listens on `subject`: no leader, no such service, or its stream is not there (yet)."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(f"nobody answers on {subject}: the service has no leader, or the stream is not there yet")


class StreamFull(TemporaryError):
    """The stream or the disk below it has no room for a message on `subject`."""

    def __init__(self, subject: str, detail: str) -> None:
        self.subject = subject
        super().__init__(f"no room for {subject}: {detail}", delay_s=1.0)


class Busy(TemporaryError):
    """The other side has too much to do; it did nothing."""

    def __init__(self, subject: str, detail: str, *, delay_s: float = 0.2) -> None:
        self.subject = subject
        super().__init__(f"{subject} is busy: {detail}", delay_s=delay_s)


class Unclear(BusError):
    """A message on `subject` was sent and not answered: it may have been applied, or may be later."""

    def __init__(self, subject: str, detail: str) -> None:
        self.subject = subject
        super().__init__(f"{subject}: {detail}; it may have been applied")


class RequestTimeout(Unclear):
    """A request on `subject` was not answered within `timeout_s` seconds."""

    def __init__(self, subject: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(subject, f"no answer within {timeout_s:g} s")


class PermanentError(BusError):
    """Trying the same again fails again."""


class Conflict(PermanentError):
    """The subject's last sequence is not the expected one.

    `subject` is the message's own for a single publish and empty for a batch (the server names none);
    `last_sequence` is the failing subject's, None if the server did not say.
    """

    def __init__(self, subject: str, last_sequence: int | None) -> None:
        self.subject = subject
        self.last_sequence = last_sequence
        where = subject or "a subject of the batch"
        what = "another version" if last_sequence is None else f"version {last_sequence}"
        super().__init__(f"conflict: {where} is at {what}, not at the expected one")


class BatchUnclear(PermanentError):
    """The batch `batch_id` was refused with error `code`, which does not say which message failed."""

    def __init__(self, batch_id: str, code: int, detail: str) -> None:
        self.batch_id = batch_id
        self.code = code
        super().__init__(
            f"batch {batch_id} was refused without a number (error {code}: {detail}): move the fence and judge again"
        )


class TooLarge(PermanentError):
    """A message on `subject` is above what the server takes."""

    def __init__(self, subject: str, size_bytes: int, limit_bytes: int | None = None) -> None:
        self.subject = subject
        self.size_bytes = size_bytes
        limit = "the server's limit" if limit_bytes is None else f"the limit of {limit_bytes}"
        super().__init__(f"the message on {subject} has {size_bytes} bytes, above {limit}")


class SubjectTooLong(PermanentError):
    """A message's subject has more characters than `limit`: the server would close the connection."""

    def __init__(self, subject: str, limit: int) -> None:
        self.subject = subject
        super().__init__(f"the subject {subject[:100]}... has {len(subject)} characters, above the limit of {limit}")


class NotFound(PermanentError):
    """The stream or consumer that `subject` asks for does not exist."""

    def __init__(self, subject: str, detail: str) -> None:
        self.subject = subject
        super().__init__(f"{subject}: {detail}")


class RemoteError(PermanentError):
    """A service refused a request. Raised by `request`; a handler raises it to refuse with a `reason` for the
    caller."""

    def __init__(self, reason: str, *, subject: str = "") -> None:
        self.reason = reason
        self.subject = subject
        super().__init__(f"{subject} refused: {reason}" if subject else reason)


class Refused(PermanentError):
    """The server refused a message on `subject` with the JetStream error `code`."""

    def __init__(self, subject: str, code: int, detail: str) -> None:
        self.subject = subject
        self.code = code
        super().__init__(f"{subject}: the server refused it (error {code}: {detail})")


class StreamSettingsConflict(PermanentError):
    """Stream `stream` is in the way with settings that the server cannot change into ours, or another has its
    subjects."""

    def __init__(self, stream: str, differences: tuple[str, ...], detail: str) -> None:
        self.stream = stream
        self.differences = differences
        super().__init__(
            f"stream {stream} cannot be made as it must be ({'; '.join(differences)}): {detail}. "
            f"Use another NATS account, or remove what is in the way if nobody needs it"
        )


class SettingsError(PermanentError):
    """The setting `setting` of the connection makes no sense."""

    def __init__(self, setting: str, detail: str) -> None:
        self.setting = setting
        super().__init__(f"bus setting {setting}: {detail}")


class EmbeddedServerError(BusError):
    """The embedded nats-server did not start or did not become ready."""


class ApiError(msgspec.Struct, frozen=True):
    """The `error` of a JetStream answer."""

    code: int = 0
    err_code: int = 0
    description: str = ""


def from_api(error: ApiError, subject: str, *, batch_id: str = "", size_bytes: int = 0) -> BusError:
    """The exception for a JetStream error that answered a message on `subject` (or the batch `batch_id`)."""
    code, detail = error.err_code, error.description
    match code:
        case c if c == WRONG_LAST_SEQUENCE:
            number = _LAST_NUMBER.search(detail)
            return Conflict("" if batch_id else subject, int(number[1]) if number else None)
        case c if c in (WRONG_LAST_SEQUENCE_NO_NUMBER, BATCH_INCOMPLETE):
            return BatchUnclear(batch_id, code, detail) if batch_id else Conflict(subject, None)
        case c if c in _NOT_FOUND:
            return NotFound(subject, detail)
        case c if c in _FULL:
            return StreamFull(subject, detail)
        case c if c in _TOO_MANY_BATCHES:
            return Busy(
                subject, f"{detail}: others have begun as many atomic batches as the server allows, and not ended them"
            )
        case c if c in _TOO_MANY:
            return Busy(subject, detail)
        case c if c in _TOO_LARGE:
            return TooLarge(subject, size_bytes)
        case c if c in _NOT_READY or error.code == 503:
            return Unavailable(f"{subject}: JetStream is not ready ({detail})")
        case _:
            return Refused(subject, code, detail)
