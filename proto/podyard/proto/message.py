"""The base of every message: how it is encoded, and how it may change.

A change is additive: a new field has a default, an old field keeps name and type. Decoding ignores fields it
does not know, so that version N reads what N+1 wrote. Golden bytes in tests/contract hold this.
"""

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from podyard.proto.bounds import Name

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""`schedulerName` of pods that name none, and the profile of that name. Source: v1.DefaultSchedulerName."""

INT64_MAX: Final = 2**63 - 1

Int64: TypeAlias = Annotated[int, Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]
"""A whole number as Go's int64 and our tables' columns hold it. Whole numbers of messages and objects are
such, or have closer bounds."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=INT64_MAX)]
"""One that is not negative."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A message on the bus, JSON with camelCase keys; fields at their default are left out. Outside the
    garbage collector, since data has no cycles."""


class ObjectRef(Message, frozen=True, kw_only=True):
    """Which object is meant. `namespace` is empty for cluster-scoped kinds; an empty `uid` means whichever
    has the name."""

    resource: str
    name: str
    namespace: str = ""
    uid: str = ""


class PodRef(Message, frozen=True, kw_only=True):
    """Which pod is meant, for ever: the uid tells namesakes apart."""

    namespace: Name
    name: Name
    uid: Name
