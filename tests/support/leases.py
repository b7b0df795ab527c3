"""Another process leads: what ends a service's term."""

from podyard.bus import Bus, Outgoing
from podyard.proto import codec, operations, subjects


async def take_lease(bus: Bus, service: str) -> None:
    """As one would that saw it expire; whoever leads notices at its next renewal."""
    thief = operations.Lease(holder=f"{service}-9", session="another", epoch=99)
    await bus.publish(Outgoing(subjects.lease(service), codec.encode(thief)))
