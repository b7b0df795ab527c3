"""What the core wants written, and what it is told: values between the core and its shell."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.proto.facts import QuotaUsageFact
from podyard.proto.objects_api import Propagation
from podyard.proto.operations import Reason

Document: TypeAlias = dict[str, Any]


class Lost(NamedTuple):
    """A pod that its controller has to replace."""

    trace: str
    """Traceparent of what ended it: the eviction, the deletion."""
    name: str


class Create(NamedTuple):
    """Create this object, which is admitted and has its uid. Creating it twice is creating it once."""

    key: ObjectKey
    document: Document
    replaces: Lost | None = None
    """The pod that it replaces, as far as that is known."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Traceparents of what led to it."""
        return () if self.replaces is None else (self.replaces.trace,)


class Alter(NamedTuple):
    """Change an object with this uid: `alter` gets the newest version and returns what to write, None to
    leave it."""

    key: ObjectKey
    uid: str
    alter: Callable[[Document], Document | None]


class Delete(NamedTuple):
    """Delete an object as its kind is deleted: a bound pod gets its grace period, what has finalizers stays
    until they are gone, all else gets a marker."""

    key: ObjectKey
    uid: str
    reason: str = ""
    """Of the condition DisruptionTarget that a bound pod gets in the same write; empty: none."""
    message: str = ""
    """Of that condition."""
    propagation: Propagation | None = None


class Remove(NamedTuple):
    """Delete a pod that holds nothing any more: no time is left to it, but what its finalizers take."""

    key: ObjectKey
    uid: str


Write: TypeAlias = Create | Alter | Delete | Remove


class Work(NamedTuple):
    """Writes for one key. It is not looked at again before all of them are settled and seen in the view."""

    owner: ObjectKey
    why: str
    """For people, on each object."""
    writes: Sequence[Write]
    led_by: str = ""
    """Traceparent of what led to it, if that trace is kept: somebody's change, the end of a pod."""
    atomic: bool = False
    """All or nothing, in one batch of Alters; if it fails the key is looked at again."""


class Usage(NamedTuple):
    """What is to be stored of a quota's usage, by its uid."""

    uid: str
    fact: QuotaUsageFact | None
    """None: a marker, since the quota is gone."""
    expect: int
    """Sequence of what the count went by."""


class Count(NamedTuple):
    """Usages of one quota, which is not looked at again before they are settled and seen in the view."""

    owner: ObjectKey
    usages: Sequence[Usage]


class Failed(NamedTuple):
    """A look at a key failed, e.g. its template makes no valid object: for the log and a Kubernetes event."""

    owner: ObjectKey
    reason: Reason
    detail: str


class Told(NamedTuple):
    """What people should know of an object, as a Kubernetes event of its controller."""

    owner: ObjectKey
    reason: Reason
    message: str
    warning: bool = False


Ask: TypeAlias = Work | Count
"""What is answered with `Done`."""
Effect: TypeAlias = Ask | Failed | Told

# ---- what the core is told ---------------------------------------------------------------------------------


class Changed(NamedTuple):
    """The view changed."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view has listed everything (again): look at everything."""


class Done(NamedTuple):
    """The writes of a key, or its usages, are settled. `position` is the highest sequence written, 0 if
    nothing was."""

    owner: ObjectKey
    position: int
    failures: Sequence[str] = ()


class Tick(NamedTuple):
    """Time passed."""


Message: TypeAlias = Changed | Listed | Done | Tick
