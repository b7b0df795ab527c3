"""Versions of objects as the benches store them, without an api."""

from typing import Any, Final

from podyard.bus import Outgoing
from podyard.cluster import intents
from podyard.cluster.intents import Author, Put
from podyard.proto import codec, subjects

AUTHOR: Final = Author("bench")


def version(resource: str, document: dict[str, Any], expect: int = 0) -> Outgoing:
    """An object, which has its uid, over the version with the sequence `expect`; 0: there is none."""
    key = intents.key_of(resource, document)
    event = intents.event_of(key, Put(document), None, AUTHOR)
    return Outgoing(subjects.object_(*key), codec.encode(event), expect=expect)
