"""What `podyard get events` says: rows as kubectl prints them, and core/v1 Events.

Sources: kubectl v0.36, pkg/cmd/events (columns, the interval of LAST SEEN); kubernetes v1.36.2,
pkg/printers/internalversion/printers.go (printEvent, formatEventSource); client-go v0.36.2,
tools/record/event.go and tools/events/event_recorder.go (makeEvent).
"""

from typing import Any, Final

from podyard.objects import decoding, times
from podyard.objects.documents import Document, fill, mapping
from podyard.objects.errors import UnknownKindError
from podyard.objects.kinds import kind_of_resource
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.telling.events import DEFAULT

Cells = tuple[str, ...]

HEADERS: Final = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
WIDE: Final = (*HEADERS[:-1], "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME")


def headers(*, wide: bool, namespaces: bool) -> Cells:
    """Headers of the table."""
    return (*(("NAMESPACE",) if namespaces else ()), *(WIDE if wide else HEADERS))


def row(event: K8sEvent, now: float, *, wide: bool, namespaces: bool) -> Cells:
    """Cells of one event."""
    about, message = event.regarding, " ".join(event.message.split())
    space = (namespace_of(event),) if namespaces else ()
    begin = (*space, last_seen(event, now), event.type, event.reason, f"{_kind(about)[1].lower()}/{about.name}")
    if not wide:
        return (*begin, message)
    first = times.duration(now - first_at(event))
    return (*begin, event.field_path, _source(event), message, first, str(event.count), name_of(event))


def last_seen(event: K8sEvent, now: float) -> str:
    """How long ago; of one that happened again also how often, and since when."""
    last = times.duration(now - event.at)
    return last if event.count == 1 else f"{last} (x{event.count} over {times.duration(now - first_at(event))})"


def first_at(event: K8sEvent) -> float:
    """When it happened first, seconds since 1970."""
    return event.first_at or event.at


def namespace_of(event: K8sEvent) -> str:
    """Where it belongs; one about an object that is in no namespace belongs to `default`."""
    written = mapping(written_of(event), "metadata").get("namespace") if event.written else None
    return str(written or event.regarding.namespace or DEFAULT)


def name_of(event: K8sEvent) -> str:
    """As the event's object is called."""
    written = mapping(written_of(event), "metadata").get("name") if event.written else None
    return str(written or f"{event.regarding.name}.{event.id or f'{int(event.at * 1e6):x}'}")


def written_of(event: K8sEvent) -> Document:
    """As a client wrote it; empty: a service sent it, or it is told from what is stored."""
    return decoding.document(event.written[0]) if event.written else {}


def document(event: K8sEvent) -> Document:
    """A core/v1 Event."""
    if event.written:
        found = {"apiVersion": "v1", "kind": "Event", **written_of(event)}
        fill(found, involvedObject={}, source={}, firstTimestamp=None, lastTimestamp=None, eventTime=None)
        fill(found, reportingComponent="", reportingInstance="")
        return found
    about, first = event.regarding, first_at(event)
    api_version, kind = _kind(about)
    controller = event.controller or event.reporter
    involved = {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "fieldPath": event.field_path,
    }
    metadata: dict[str, Any] = {
        "name": name_of(event),
        "namespace": namespace_of(event),
        "creationTimestamp": times.rfc3339(first),
    }
    if event.annotations:
        metadata["annotations"] = event.annotations
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": {key: value for key, value in involved.items() if value},
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {key: value for key, value in (("component", controller), ("host", event.instance)) if value},
        "firstTimestamp": times.rfc3339(first),
        "lastTimestamp": times.rfc3339(event.at),
        "count": event.count,
        "eventTime": times.rfc3339_micro(first) if event.action else None,
        **({"action": event.action} if event.action else {}),
        "reportingComponent": controller,
        "reportingInstance": event.instance,
    }


def _source(event: K8sEvent) -> str:
    controller = event.controller or event.reporter
    return f"{controller}, {event.instance}" if event.instance else controller


def _kind(about: ObjectRef) -> tuple[str, str]:
    """apiVersion and kind of an object."""
    try:
        kind = kind_of_resource(about.resource)
    except UnknownKindError:
        return "", about.resource
    return kind.api_version, kind.kind or about.resource.partition(".")[0]
