"""Stored messages that are set aside: something broke on them, so that views see them without their payload.

A view cannot read them then: their objects count as absent, as every unreadable one does, until they are
written again.
"""

from typing import Final

from podyard.bus.delivery import Delivery
from podyard.memory.latest import Latest

MOST: Final = 1024
"""Messages that are set aside at once; above it the oldest is tried again."""


class SetAside:
    """Which messages. Owned by one event loop; several informers may share it."""

    def __init__(self) -> None:
        self._sequences = Latest[str, int](MOST)
        """By subject."""

    def __len__(self) -> int:
        return len(self._sequences)

    def put(self, delivery: Delivery) -> None:
        """Set a message aside."""
        self._sequences.keep(delivery.subject, delivery.sequence)

    def admit(self, delivery: Delivery) -> Delivery:
        """A delivery as a view may see it."""
        if not self._sequences:
            return delivery
        aside = self._sequences.get(delivery.subject)
        if aside is None:
            return delivery
        if aside == delivery.sequence and not delivery.deleted:
            return Delivery(delivery.subject, b"", delivery.sequence, delivery.stored_at, delivery.headers)
        if delivery.sequence > aside:
            del self._sequences[delivery.subject]  # written anew
        return delivery
