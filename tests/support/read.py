"""Stored messages as the checker reads them."""

from podyard.bench.checking.checker import Read
from podyard.bus import _heads
from tests.memory_nats.stream import Stored


def read(message: Stored) -> Read:
    """One message."""
    lines = _heads.parse(message.head) if message.head else {}
    return Read(message.subject, message.payload, message.sequence, lines)
