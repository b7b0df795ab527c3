"""Records of attempts that did not bind, as messages of the stream of decisions."""

from typing import Final

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord, message_id

TRIES: Final = 5
"""After that a record is given up: it is for people, and the next attempt writes another."""


def outgoing(record: AttemptRecord) -> Outgoing:
    """A repeat carries the same message id, so the stream keeps one."""
    return Outgoing(
        subject=subjects.decisions(record.namespace, record.name, record.uid),
        payload=codec.encode(record),
        message_id=message_id(record),
        trace=record.trace,
    )
