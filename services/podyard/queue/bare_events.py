"""Bare events (`events.>`): typed events without a change of state. They may requeue; each id counts once."""

from collections.abc import Iterator
from typing import Final

import msgspec

from podyard.framework.events import ClusterEvent
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects import CustomObject, ObjectError, kind_of_event
from podyard.objects import decode as decode_object
from podyard.proto import actions, codec
from podyard.proto.codec import MessageError
from podyard.proto.events import BareEvent
from podyard.queue.core.effects import Incoming

OWN_IDS: Final = "bare"
"""Before the ids of bare events: whoever sends one chooses its id, and records of what really happened are kept by their events' ids."""

REMEMBERED_BYTES: Final = 1024 * 1024
"""What ids that are known to be repetitions may take: some 4,000 of 40 letters."""


class BareEvents:
    """Turns messages into events, each id once."""

    def __init__(self) -> None:
        self._seen = Kept[str, bool](REMEMBERED_BYTES)

    def read(self, payload: bytes, trace: str) -> list[Incoming]:
        """The events of a message, one an action, each once; none if its id was seen before.

        :raises MessageError: if it is not a BareEvent, or names a resource, action or object that does not exist
        """
        message = codec.decode(BareEvent, payload)
        if message.id in self._seen:
            return []
        found = events_of(message, trace)
        self._seen.keep(message.id, True, bytes_of(message.id))
        return found


def events_of(message: BareEvent, trace: str) -> list[Incoming]:
    """The events of a message, one an action, each once: who repeats one asks for nothing more.

    :raises MessageError: if it names a resource, action or object that does not exist
    """
    return list(_events(message, trace))


def _events(message: BareEvent, trace: str) -> Iterator[Incoming]:
    old, new = _object(message, "old", message.old), _object(message, "new", message.new)
    name = _name(new if new is not None else old)
    for index, spelled in enumerate(dict.fromkeys(message.actions)):
        try:
            action = actions.parse(spelled)
        except ValueError as error:
            where = f"$.actions[{message.actions.index(spelled)}]"
            raise MessageError("BareEvent", f"{error} - at `{where}`") from error
        yield Incoming(
            event=ClusterEvent(message.resource, action),
            old=old,
            new=new,
            id=f"{OWN_IDS}-{message.id}" if index == 0 else f"{OWN_IDS}{index}-{message.id}",
            object_name=name,
            who=message.who,
            why=message.why,
            trace=trace,
        )


def _object(message: BareEvent, field: str, raw: msgspec.Raw) -> object | None:
    if bytes(raw) in (b"", b"null"):
        return None
    try:
        return decode_object(kind_of_event(message.resource).resource, raw)
    except ObjectError as error:
        raise MessageError("BareEvent", f"{error} - at `$.{field}`") from error


def _name(found: object | None) -> str:
    metadata = getattr(found, "metadata", None) if not isinstance(found, CustomObject) else found.metadata
    if metadata is None:
        return ""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
