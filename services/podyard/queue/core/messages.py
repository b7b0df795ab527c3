"""What the queue's core is told: values between the shell and the core. What it wants done is in
`effects`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from podyard.cluster.changes import Change, object_of
from podyard.framework.events import ClusterEvent
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import PodRef
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    SessionHeartbeat,
)


class Incoming(msgspec.Struct, frozen=True):
    """One cluster event with the changed object before and after, and what people want to know about it."""

    event: ClusterEvent
    old: object | None = None
    """The object before, or its view: of most events nobody looks at them, and views are joined when somebody
    does (`objects`)."""
    new: object | None = None
    """And after."""
    id: str = ""
    """Key of the event's RequeueRecord."""
    object_name: str = ""
    """namespace/name of the object, or its name."""
    position: int = 0
    """CLUSTER sequence; 0 if it has none."""
    who: str = ""
    why: str = ""
    trace: str = ""
    """Traceparent of what made the event."""
    missed: bool = False
    """A version of the object was missed: counts as all actions of the resource, and every hint as Queue."""
    bytes: int = 0
    """What the objects take as JSON, as far as nobody else keeps them."""

    @property
    def objects(self) -> tuple[object | None, object | None]:
        """The object before and after, as hints see it."""
        return object_of(self.old), object_of(self.new)

    @property
    def brings_object(self) -> bool:
        """Whether there is anything for hints to look at; a bare event may come without."""
        return self.old is not None or self.new is not None


class Begin(NamedTuple):
    """This queue leads, and its view is complete: take in every pending pod. Told once, before everything
    else.
    """

    records: Mapping[str, AttemptRecord]
    """The last record of each pod that has one, by uid."""
    nominated: Sequence[PodRef] = ()
    """Pods with a nomination fact."""


class Would(NamedTuple):
    """Somebody asks what these events would do to one pod."""

    namespace: str
    name: str
    events: Sequence[Incoming]


Request: TypeAlias = (
    PopRequest | DoneRequest | SessionHeartbeat | ActivateRequest | PreemptingRequest | QueueListRequest | Would
)


class Asked(NamedTuple):
    """Somebody asks; `ticket` names the request until its `Reply` or `Declined`."""

    ticket: int
    request: Request
    set_aside: str = ""
    """Why the request is refused, whatever it asks: a core raised on it; empty: none did."""


class Changed(NamedTuple):
    """The view changed."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view was listed again for this reason: what happened in between is not known in full."""

    reason: str


class Happened(NamedTuple):
    """A bare event: it changed no object. Of several with one id the first counts."""

    id: str
    events: Sequence[Incoming]
    """One an action."""


class Tick(NamedTuple):
    """Time passed: `wake_at` is reached."""


Message: TypeAlias = Begin | Asked | Changed | Listed | Happened | Tick
