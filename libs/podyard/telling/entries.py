"""What happened to a pod, one entry each. Times are seconds since 1970, UTC."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from podyard.proto.decisions import AttemptRecord
from podyard.proto.requeues import HintCall


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base: JSON in the bus' own style."""


class Attempt(Data, frozen=True, kw_only=True, tag_field="entry", tag="attempt"):
    """One scheduling attempt."""

    at: float
    record: AttemptRecord


class Woken(Data, frozen=True, kw_only=True, tag_field="entry", tag="woken"):
    """An event moved the pod."""

    at: float
    event: str
    event_id: str = ""
    object: str = ""
    plugin: str = ""
    to: str = ""
    hints: tuple[HintCall, ...] = ()
    who: str = ""
    why: str = ""


class NotWoken(Data, frozen=True, kw_only=True, tag_field="entry", tag="notWoken"):
    """An event reached the pod's hints and did not move it."""

    at: float
    event: str
    event_id: str = ""
    object: str = ""
    hints: tuple[HintCall, ...] = ()
    who: str = ""
    why: str = ""
    counted: Annotated[bool, Meta(description="joined by rejector and time: the record holds counts only")] = False
    times: Annotated[int, Meta(description="equal entries, this one being the last")] = 1
    first_at: Annotated[float, Meta(description="of several: when the first of them happened")] = 0.0


class Bound(Data, frozen=True, kw_only=True, tag_field="entry", tag="bound"):
    """The binding became durable."""

    at: float
    node: str
    forced: bool = False
    trace: str = ""


class Started(Data, frozen=True, kw_only=True, tag_field="entry", tag="started"):
    """The node's agent accepted the pod; `phase` is the latest it reports."""

    at: float
    node: str
    phase: str
    reason: str = ""
    message: str = ""


class Released(Data, frozen=True, kw_only=True, tag_field="entry", tag="released"):
    """The binding ended."""

    at: float
    node: str
    reason: str


class Told(Data, frozen=True, kw_only=True, tag_field="entry", tag="told"):
    """A Kubernetes-like event about the pod."""

    at: float
    reason: str
    message: str
    reporter: str
    times: Annotated[int, Meta(description="how often it happened, this being the last time")] = 1


Entry: TypeAlias = Attempt | Woken | NotWoken | Bound | Started | Released | Told
