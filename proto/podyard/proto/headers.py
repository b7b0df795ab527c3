"""NATS headers that Podyard reads or writes."""

from typing import Final

TRACEPARENT: Final = "traceparent"
"""W3C trace context of whatever caused the message: `00-<trace id>-<span id>-<flags>`."""

EXPECTED_LAST_SUBJECT_SEQUENCE: Final = "Nats-Expected-Last-Subject-Sequence"
"""Compare-and-set: the subject's last sequence must be this one (0 = no message). Stored, so it names the
predecessor."""

TTL: Final = "Nats-TTL"
"""How long the server keeps the message, whole seconds as `<n>s`."""

BATCH_ID: Final = "Nats-Batch-Id"
BATCH_SEQUENCE: Final = "Nats-Batch-Sequence"
BATCH_COMMIT: Final = "Nats-Batch-Commit"
LAST_STREAM: Final = "Nats-Last-Stream"
"""On an idle heartbeat: the stream's last sequence that the consumer has passed."""

LAST_CONSUMER: Final = "Nats-Last-Consumer"
"""On an idle heartbeat: the consumer's last sequence; a higher one than was received is a gap."""

OPERATION: Final = "Podyard-Op"
"""`del` marks a deletion marker without decoding the payload."""

DELETED: Final = "del"

MESSAGE_ID: Final = "Nats-Msg-Id"
"""The server drops a second message with the same id within two minutes."""

CONSUMER_STALLED: Final = "Nats-Consumer-Stalled"
"""On an idle heartbeat: the consumer waits for a flow control answer to this subject."""

REQUEST_INFO: Final = "Nats-Request-Info"
"""Who made a request, as the server says of one that came through an import with `share`."""

ERROR: Final = "Podyard-Error"
"""On a reply: the request was refused, and this is the reason."""

RETRY_AFTER: Final = "Podyard-Retry-After"
"""Besides `Podyard-Error`: the same request may succeed after so many seconds."""
