"""Asking the queue what an event would do to a pod. Shell: one read, one request."""

from typing import Any

import msgspec

from podyard.bus.connection import Bus
from podyard.bus.errors import NoResponders, RemoteError
from podyard.cli.errors import CliError, InputError
from podyard.cli.scenario.model import Publish
from podyard.objects import decoding
from podyard.objects.kinds import kind_of_event
from podyard.proto import codec, subjects
from podyard.proto.events import BareEvent, ClusterEvent
from podyard.proto.queue_api import WouldReply, WouldRequest
from podyard.proto.streams import CLUSTER


async def ask(bus: Bus, namespace: str, name: str, event: Publish) -> WouldReply:
    """What the queue says. Without an old object, that of an update is the one that is stored now.

    :raises CliError: if no queue answers, or the pod is not in it
    """
    old, new = event.old, event.new
    if event.action == "Delete":
        old, new = old or new, None
    elif old is None and new is not None and event.action != "Add":
        old = await _stored(bus, event.resource, new)
    question = BareEvent(
        id="would", resource=event.resource, actions=(event.action,), who="explain", old=_raw(old), new=_raw(new)
    )
    request = WouldRequest(namespace=namespace, name=name, event=question)
    try:
        answer = await bus.request(subjects.queue_verb("would"), codec.encode(request))
    except NoResponders as error:
        raise CliError("no queue leader answers", "is the queue running? (`podyard up`)") from error
    except RemoteError as error:
        raise InputError(str(error)) from error
    reply = codec.decode(WouldReply, answer.payload)
    if not reply.pool:
        advice = f"`podyard explain pod {name} -n {namespace}` tells where it is"
        raise CliError(f'the queue has no pod "{name}" in namespace "{namespace}"', advice)
    return reply


def _raw(document: dict[str, Any] | None) -> msgspec.Raw:
    return codec.NULL if document is None else msgspec.Raw(msgspec.json.encode(document))


async def _stored(bus: Bus, event_resource: str, document: dict[str, Any]) -> dict[str, Any] | None:
    """The object as it is stored now, `None` if it is not there."""
    kind = kind_of_event(event_resource)
    metadata: dict[str, Any] = document.get("metadata") or {}
    namespace = metadata.get("namespace", "default") if kind.namespaced else ""
    delivery = await bus.get(CLUSTER.name, subjects.object_(kind.resource, namespace, metadata.get("name", "")))
    if delivery is None or delivery.deleted:
        return None
    return decoding.document(codec.decode(ClusterEvent, delivery.payload).object)
