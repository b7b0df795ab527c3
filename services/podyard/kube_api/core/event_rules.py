"""What a client may write as an event. Pure.

Source: kubernetes v1.36.2, pkg/apis/core/validation/events.go; apiserver/pkg/registry/rest/create.go and
update.go.
"""

import math
from typing import Any, Final

import msgspec

from podyard.kube_api.core import event_forms
from podyard.kube_api.core.event_forms import CORE, KIND
from podyard.objects import decoding, kinds, times
from podyard.objects.admission import Validation, readable
from podyard.objects.decoding import convert
from podyard.objects.documents import Document, child, copy_without_nulls, is_mapping, mapping
from podyard.objects.errors import AdmissionError, ObjectError, UnknownKindError
from podyard.objects.faults import Faults
from podyard.objects.kind_validation import check_metadata
from podyard.objects.kinds import Kind, StoredObject
from podyard.objects.meta import ObjectMeta
from podyard.objects.names import qualified_fault, subdomain_fault
from podyard.objects.updates import merge_replace
from podyard.proto import subjects
from podyard.proto.bounds import LAST_S
from podyard.proto.message import INT64_MAX, ObjectRef
from podyard.proto.operations import LONGEST_NOTE, K8sEvent, Reason, shortened
from podyard.telling.events import DEFAULT

EVENT: Final = Kind(kind=KIND, api_version=CORE, resource="events", type=StoredObject, short_names=("ev",))
"""Events are no objects of the api: this kind is known here alone."""
NEW_EVENT: Final = msgspec.structs.replace(EVENT, api_version=event_forms.NEW)

MOST_BYTES: Final = 65536
"""Of an event. All of them share the room of their stream."""
MOST_LETTERS: Final = 128
"""Of reason, action and reporting instance. Source: ReasonLengthLimit and the like."""
REPORTER: Final = "kube_api"

_SYSTEM: Final = "kube-system"
_FIXED: Final = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("action", "related", "reportingComponent", "reportingInstance"),
)
"""What no update in events.k8s.io/v1 may change."""
_SPELLED: Final = {"reportingComponent": "reportingController"}
_WHOLE_NAME: Final = "="
"""Before an id that is the whole name of an event: it does not begin with that of its object."""


class TooLargeError(Exception):
    """An event is larger than `MOST_BYTES`."""


def settled(
    given: Document,
    api_version: str,
    *,
    old: Document | None,
    validation: Validation,
    warnings: list[str],
) -> Document:
    """What a client wrote as it is to be stored: an Event of v1, with its name; a new one without uid and
    time.

    :param given: in `api_version`
    :param old: the one whose place it takes, as an Event of v1
    :param warnings: gets what the client should know
    :raises AdmissionError: with all that is wrong
    :raises TooLargeError: it is too large
    """
    faults = Faults()
    kind = EVENT if api_version == CORE else NEW_EVENT
    known = readable(kind, given, faults, validation, warnings)
    event = event_forms.stored(known, api_version)
    metadata = child(event, "metadata")
    for name in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(name, None)
    if old is None:
        metadata.pop("uid", None)
        metadata.pop("creationTimestamp", None)
    else:
        event = merge_replace(old, event)
        metadata = child(event, "metadata")
    check_metadata(faults, EVENT, convert(ObjectMeta, msgspec.json.decode(msgspec.json.encode(metadata))))
    _check(faults, event, is_core=api_version == CORE)
    if api_version != CORE:
        if old is None:
            _check_new(faults, event)
        else:
            _check_update(faults, event, old)
    if faults:
        raise AdmissionError(KIND, str(metadata.get("name") or ""), faults.found)
    event = bare(event)
    if len(msgspec.json.encode(event)) > MOST_BYTES:
        raise TooLargeError
    return event


def bare(event: Document) -> Document:
    """An event without what is shown though it is empty."""
    return {key: value for key, value in copy_without_nulls(event).items() if value not in ("", {}, 0)}


def _check(faults: Faults, event: Document, *, is_core: bool) -> None:
    """Source: legacyValidateEvent."""
    namespace = str(mapping(event, "metadata").get("namespace") or "")
    about = str(mapping(event, "involvedObject").get("namespace") or "")
    elsewhere = "does not match event.namespace"
    if not event.get("eventTime"):
        if namespace != (about or DEFAULT):
            faults.invalid("involvedObject.namespace", about, elsewhere)
    else:
        if not about and namespace not in (DEFAULT, _SYSTEM):
            faults.invalid("involvedObject.namespace", about, elsewhere)
        reporter = str(event.get("reportingComponent") or "")
        field = "reportingComponent" if is_core else "reportingController"
        if not reporter:
            faults.required(field)
        if fault := qualified_fault(reporter):
            faults.invalid(field, reporter, fault)
        for name in ("reportingInstance", "action", "reason"):
            _check_length(faults, event, name, MOST_LETTERS)
        _check_length(faults, event, "message", LONGEST_NOTE, needed=False)


def _check_length(faults: Faults, event: Document, name: str, most: int, *, needed: bool = True) -> None:
    value = str(event.get(name) or "")
    if needed and not value:
        faults.required(name)
    if len(value.encode(errors="replace")) > most:
        faults.invalid(name, "", f"can have at most {most} characters")


def _check_new(faults: Faults, event: Document) -> None:
    """Source: ValidateEventCreate, of events.k8s.io/v1."""
    name = str(mapping(event, "metadata").get("name") or "")
    if fault := subdomain_fault(name):
        faults.invalid("metadata.name", name, fault)
    _check_series(faults, event)
    if not event.get("eventTime"):
        faults.required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        faults.invalid("type", "", f"has invalid value: {event.get('type') or ''}")
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(name):
            faults.invalid(name, "", "needs to be unset")
    if any(mapping(event, "source").values()):
        faults.invalid("source", "", "needs to be unset")


def _check_series(faults: Faults, event: Document) -> None:
    """Source: validateV1EventSeries."""
    series = event.get("series")
    if not is_mapping(series):
        return
    if (series.get("count") or 0) < 2:
        faults.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        faults.required("series.lastObservedTime")


def _check_update(faults: Faults, event: Document, old: Document) -> None:
    """Source: ValidateEventUpdate, of events.k8s.io/v1."""
    if event.get("series") != old.get("series"):
        _check_series(faults, event)
    for name in _FIXED:
        if (event.get(name) or None) != (old.get(name) or None):
            faults.invalid(_SPELLED.get(name, name), _plain(event.get(name)), "field is immutable")
    if _micro(event.get("eventTime")) != _micro(old.get("eventTime")):
        faults.invalid("eventTime", _plain(event.get("eventTime")), "field is immutable")


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return msgspec.json.encode(value).decode() if is_mapping(value) else value


def _micro(text: Any) -> int:
    return int(times.seconds_or(str(text or ""), 0.0) * 1e6)


# ---- as a message ------------------------------------------------------------------------------------------


def message(event: Document, now: float) -> K8sEvent:
    """The message that says an event: as it was written, and what others read of it.

    :param event: settled, an Event of v1
    :param now: seconds since 1970, UTC: when it happened, if it does not say
    """
    series, source = mapping(event, "series"), mapping(event, "source")
    about = mapping(event, "involvedObject")
    begun = _time(event, "firstTimestamp") or _time(event, "eventTime") or now
    last = _time(series, "lastObservedTime") or _time(event, "lastTimestamp") or begun
    name, of = str(mapping(event, "metadata").get("name") or ""), str(about.get("name") or "")
    begins = f"{of}."
    return K8sEvent(
        regarding=ObjectRef(
            resource=_resource(about), name=of, namespace=_text(about, "namespace"), uid=_text(about, "uid")
        ),
        type="Warning" if event.get("type") == "Warning" else "Normal",
        reason=Reason(_text(event, "reason")),
        message=shortened(_text(event, "message")),
        reporter=REPORTER,
        at=last,
        id=name.removeprefix(begins) if name.startswith(begins) and name != begins else _WHOLE_NAME + name,
        first_at=begun,
        count=min(max(int(series.get("count") or event.get("count") or 1), 1), INT64_MAX),
        action=_text(event, "action"),
        controller=_text(source, "component") or _text(event, "reportingComponent"),
        instance=_text(source, "host") or _text(event, "reportingInstance"),
        field_path=_text(about, "fieldPath"),
        written=(msgspec.Raw(msgspec.json.encode(event)),),
    )


def subject(event: K8sEvent) -> str:
    """Where the message lies."""
    about = event.regarding
    return subjects.k8s_event(about.namespace, about.resource, about.name, event.id)


def _text(document: Document, key: str) -> str:
    return str(document.get(key) or "")


def _time(document: Document, key: str) -> float:
    return min(max(times.seconds_or(_text(document, key), 0.0), 0.0), float(LAST_S))


def _resource(about: Document) -> str:
    """Of an object that an event is about; nobody checks that there is such a kind."""
    kind = _text(about, "kind")
    try:
        return kinds.kind_for(_text(about, "apiVersion") or CORE, kind).resource
    except UnknownKindError:
        return kinds.plural_of(kind) if kind else ""


def absurd(event: K8sEvent) -> str:
    """Why a message of the stream says no event; empty: it does."""
    for what, at in (("at", event.at), ("first_at", event.first_at)):
        if not math.isfinite(at) or not 0 <= at <= LAST_S:
            return f"{what}: {at} is no time"
    if event.written:
        try:
            written = decoding.document(event.written[0])
        except ObjectError as error:
            return f"written: {error}"
        if not is_mapping(written.get("metadata")):
            return "written: it has no metadata"
    return ""
