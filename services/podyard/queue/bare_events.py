"""Bare events (`events.>`): typed events without a change of state. They may requeue."""

from collections.abc import Iterator
from typing import Final

import msgspec

from podyard.framework.events import ClusterEvent
from podyard.objects import CustomObject, ObjectError, kind_of_event
from podyard.objects import decode as decode_object
from podyard.proto import actions, codec
from podyard.proto.codec import MessageError
from podyard.proto.events import BareEvent
from podyard.queue.core.messages import Happened, Incoming

OWN_IDS: Final = "bare"
"""Before the ids of bare events: whoever sends one chooses its id, and records of what really happened are
kept by their events' ids.
"""


def read(payload: bytes, trace: str) -> Happened:
    """A message as the core is told of it.

    :param trace: traceparent of what sent it
    :raises MessageError: if it is not a BareEvent, or names a resource, action or object that does not exist
    """
    message = codec.decode(BareEvent, payload)
    return Happened(message.id, events_of(message, trace))


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
            bytes=len(bytes(message.old)) + len(bytes(message.new)) if index == 0 else 0,
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
