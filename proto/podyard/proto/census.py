"""The census: which messages of CLUSTER lived when it was taken."""

from typing import Annotated

from msgspec import Meta

from podyard.proto.message import Count, Message


class Census(Message, frozen=True, kw_only=True):
    """On `cluster.census`: of all messages of CLUSTER up to `position` that the server does not forget by
    itself (no TTL), these were there; whatever else it has of them later had been deleted, and came back when
    the server was killed.

    Sent by workloads, a compare-and-set on its subject: a repetition is refused by the server. Read by
    everybody who lists CLUSTER (`podyard.bus.census` packs and unpacks it). One of 1,000,000 messages has
    0.9 MB if one number in ten lives, 2.0 MB if one in 1,000 does, and 3.1 MB if one in 100,000 does.
    """

    position: Count
    living: Annotated[
        bytes, Meta(description="sequences in their order, each less the one before, as bytes by significance, zlib")
    ]
    at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0
