"""Leases, dead letters, and Kubernetes-like events."""

from typing import Annotated, Literal

from msgspec import Meta

from podyard.proto.message import INT64_MAX, Count, Message, ObjectRef


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
    """Something people may want to know about an object, on `k8sevents.<ns>.<kind>.<name>`; kept one hour."""

    regarding: ObjectRef
    type: Literal["Normal", "Warning"] = "Normal"
    reason: Annotated[str, Meta(description="CamelCase, e.g. Evicted, Scheduled, FailedScheduling")]
    message: str = ""
    reporter: str
    at: Annotated[float, Meta(description="seconds since 1970, UTC")]
    trace: str = ""
