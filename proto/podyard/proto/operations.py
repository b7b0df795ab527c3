"""Leases, dead letters, and Kubernetes-like events."""

from typing import Annotated, Final, Literal, NewType

import msgspec
from msgspec import Meta

from podyard.proto.message import INT64_MAX, Count, Message, ObjectRef

Reason = NewType("Reason", str)
"""Why an event was sent, in one word. Whoever sends one declares it so; `docs/events.md` lists them all."""

ALIKE: Final = 10
"""Messages of events that differ in nothing else, from which on these are told as one. Source of this and
the next two: client-go v0.36.2, tools/record/events_cache.go (defaultAggregateMaxEvents,
defaultAggregateIntervalInSeconds, EventAggregatorByReasonMessageFunc)."""
ALIKE_S: Final = 600.0
"""Since the last of them; after more they begin anew."""
COMBINED: Final = "(combined from similar events): "
"""How the message of such an event begins; the last one's follows."""

LONGEST_NOTE: Final = 1024
"""Bytes of an event's message. Source: kubernetes v1.36.2, pkg/apis/core/validation/events.go,
NoteLengthLimit."""
CUT: Final = " ..."
"""End of a message that was longer. Source: pkg/scheduler/schedule_one.go, truncateMessage."""


class Lease(Message, frozen=True, kw_only=True):
    """Who leads a service, on `leases.<service>`; lives 10 s without renewal. `epoch` grows with every
    holder."""

    holder: Annotated[str, Meta(description="instance name; the same instance started again may take its lease over")]
    session: Annotated[str, Meta(description="process start")]
    epoch: Annotated[int, Meta(ge=1, le=INT64_MAX)]


class DeadLetter(Message, frozen=True, kw_only=True):
    """A message that a service could not use, on `dead.<service>`, as it came, with the reason."""

    service: str
    subject: str
    reason: str
    sequence: Annotated[Count, Meta(description="stream sequence, 0 if it was not stored")] = 0
    payload: Annotated[bytes, Meta(description="base64; cut at 64 KiB")] = b""
    payload_bytes: Annotated[Count, Meta(description="its whole size")] = 0
    headers: dict[str, str] = {}
    at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0


class K8sEvent(Message, frozen=True, kw_only=True):
    """Something people may want to know about an object, on `k8sevents.<ns>.<kind>.<name>.<id>`; kept one
    hour.

    Sent by a service's recorder (`podyard.shell.event_recorder`), and by `kube_api` for its clients; read by
    people. One that happened again is sent again with a higher `count`, and takes the place of the one
    before; a repetition changes nothing. Release 0.1.0 wrote to `k8sevents.<ns>.<kind>.<name>`, without an
    id.
    """

    regarding: ObjectRef
    type: Literal["Normal", "Warning"] = "Normal"
    reason: Annotated[str, Meta(description="CamelCase, e.g. Evicted, Scheduled, FailedScheduling")]
    message: Annotated[str, Meta(description="the note; at most 1,024 bytes")] = ""
    reporter: Annotated[str, Meta(description="the service")]
    at: Annotated[float, Meta(description="when it happened last, seconds since 1970, UTC")]
    trace: str = ""
    id: Annotated[str, Meta(description="last token of the subject; as Kubernetes' event it is <name>.<id>")] = ""
    first_at: Annotated[float, Meta(description="when it happened first; 0: at `at`")] = 0.0
    count: Annotated[int, Meta(ge=1, le=INT64_MAX, description="how often it happened")] = 1
    action: Annotated[str, Meta(description="what was done, e.g. Descheduled; empty: nothing is said")] = ""
    controller: Annotated[
        str, Meta(description="who reports, as Kubernetes calls it, e.g. kubelet; empty: the reporter")
    ] = ""
    instance: Annotated[str, Meta(description="which of these: of a kubelet the node, else the process")] = ""
    field_path: Annotated[str, Meta(description="part of the object, e.g. spec.containers{app}")] = ""
    annotations: dict[str, str] = {}
    written: Annotated[
        tuple[msgspec.Raw, ...],
        Meta(description="as a client of the Kubernetes API wrote it, as an Event of v1; none: nobody did"),
    ] = ()
    deleted: Annotated[bool, Meta(description="somebody deleted it: nobody tells of it any more")] = False


def shortened(message: str) -> str:
    """An event's message of at most `LONGEST_NOTE` bytes, in letters that can be sent."""
    encoded = message.encode(errors="replace")
    if len(encoded) <= LONGEST_NOTE:
        return encoded.decode()
    return encoded[: LONGEST_NOTE - len(CUT)].decode(errors="ignore") + CUT
