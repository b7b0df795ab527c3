"""What a delivery did to a view, and what a fold asks its shell for."""

from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from podyard.cluster import classify
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.proto import actions, subjects
from podyard.proto.actions import ActionType
from podyard.proto.placement import Release

Viewed: TypeAlias = Any
"""A `PodView` or `NodeView`; for all other resources the typed object itself."""


def object_of(viewed: Viewed | None) -> object | None:
    """What hints see of a viewed object: the typed one, joined."""
    if isinstance(viewed, PodView):
        return viewed.pod
    return viewed.node if isinstance(viewed, NodeView) else viewed


class ClusterChangeEvent(NamedTuple):
    """One cluster event that a change amounts to, as kube-scheduler would derive it."""

    resource: str
    """Node, AssignedPod, UnschedulablePod, or the event resource of another kind."""
    action: ActionType

    @property
    def label(self) -> str:
        """Its name in records and metrics, e.g. NodeUpdateNodeTaint."""
        return _label(self.resource, self.action)


@lru_cache(maxsize=1024)
def _label(resource: str, action: ActionType) -> str:
    return actions.label(resource, action)


ASSIGNED_POD_ADD: Final = ClusterChangeEvent(classify.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE: Final = ClusterChangeEvent(classify.ASSIGNED_POD, ActionType.DELETE)
_ASSIGNED: Final = (ASSIGNED_POD_ADD,)
_RELEASED: Final = (ASSIGNED_POD_DELETE,)
_WAITS: Final = (ClusterChangeEvent(classify.UNSCHEDULABLE_POD, ActionType.ADD),)


class Delivered(Protocol):
    """What a fold reads of a delivery (`podyard.bus.Delivery` is one)."""

    @property
    def subject(self) -> str: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def sequence(self) -> int: ...
    @property
    def predecessor(self) -> int | None: ...
    @property
    def trace(self) -> str: ...
    @property
    def deleted(self) -> bool: ...
    @property
    def stored_at(self) -> float: ...
    @property
    def ttl_s(self) -> int: ...


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Who wrote a version, why, and as part of which trace: for people, records and links."""

    sequence: int = 0
    """CLUSTER sequence of the message that made the change."""
    trace: str = ""
    """Its traceparent."""
    at: float = 0.0
    """When the server stored it, seconds since 1970, UTC; 0 if unknown."""
    who: str = ""
    why: str = ""
    causes: tuple[str, ...] = ()
    """Traceparents of what led to it, e.g. the eviction that a pod replaces."""
    bytes: int = 0
    """What the object's version, or its marker with the last one, takes in the stream; 0 of facts and
    placements."""
    replaces: str = ""
    """Name of the pod that this one replaces."""


class Change(msgspec.Struct, eq=False, gc=False):
    """One object's step from `old` to `new` in a view.

    An addition has no `old`, a deletion no `new`; another uid under the same name makes two changes. `bound`
    and `release` say that the step is a pod's binding or its end. The end of a binding of which nothing else
    is known has neither `old` nor `new`. Views with `gone` set are bindings whose object is deleted or
    unknown: they take room, nobody schedules them.
    """

    resource: str
    """Plural of the kind (`pods`, `nodes`, ...)."""
    uid: str
    """Of the object."""
    old: Viewed | None
    """The object before, as this reader knew it."""
    new: Viewed | None
    """The object now."""
    origin: Origin
    """The version that made the change."""
    bound: bool = False
    """The pod got its binding."""
    release: Release | None = None
    """What ended the pod's binding: the only change that frees room."""
    gap: bool = False
    """Versions in between were missed: all actions of the resource may have happened, hints answer Queue."""
    relisted: bool = False
    """Found by comparing a new listing with the old state."""
    _events: tuple[ClusterChangeEvent, ...] | None = None
    _name: str | None = None

    @property
    def events(self) -> tuple[ClusterChangeEvent, ...]:
        """The cluster events it amounts to, in kube-scheduler's order; worked out when first asked for.

        With a gap: one event with all actions of the resource. Additions and deletions of pods that are not
        bound carry UnschedulablePod; the deletion of a bound pod's object carries none, because its room
        comes free by its release.
        """
        if self._events is None:
            self._events = _events(self)
        return self._events

    @property
    def key(self) -> ObjectKey:
        """Resource, namespace and name of the object."""
        one = self.new if self.new is not None else self.old
        if isinstance(one, PodView):
            return ObjectKey(self.resource, one.key[0], one.key[1])
        if isinstance(one, NodeView):
            return ObjectKey(self.resource, "", one.name)
        if one is not None:
            return ObjectKey(self.resource, one.metadata.namespace or "", one.metadata.name)
        release = self.release
        return (
            ObjectKey(self.resource, release.namespace, release.name) if release else ObjectKey(self.resource, "", "")
        )

    @property
    def object_name(self) -> str:
        """The object for people: namespace/name, or its name; put together when first asked for."""
        if self._name is None:
            _, namespace, name = self.key
            self._name = f"{namespace}/{name}" if namespace else name
        return self._name

    @property
    def sequence(self) -> int:
        """CLUSTER sequence of the message that made the change."""
        return self.origin.sequence

    @property
    def trace(self) -> str:
        """Traceparent of that message."""
        return self.origin.trace

    @property
    def who(self) -> str:
        return self.origin.who

    @property
    def why(self) -> str:
        return self.origin.why

    @property
    def causes(self) -> tuple[str, ...]:
        """Traceparents of what led to it."""
        return self.origin.causes

    def __repr__(self) -> str:
        labels = ", ".join(event.label for event in self.events)
        return f"<Change {self.key} @{self.sequence} [{labels}]{' gap' if self.gap else ''}>"


def _events(change: Change) -> tuple[ClusterChangeEvent, ...]:
    if change.resource == subjects.PODS:
        return _pod_events(change)
    resource = classify.event_resource(change.resource)
    if change.gap:
        return (ClusterChangeEvent(resource, ActionType.ALL),)
    if change.old is None:
        return (ClusterChangeEvent(resource, ActionType.ADD),)
    if change.new is None:
        return (ClusterChangeEvent(resource, ActionType.DELETE),)
    if change.resource == subjects.NODES:
        return _named(classify.classify_node(change.old.node, change.new.node))
    return (ClusterChangeEvent(resource, ActionType.UPDATE),)


def _pod_events(change: Change) -> tuple[ClusterChangeEvent, ...]:
    if change.bound:
        return _ASSIGNED
    if change.release is not None:
        return _RELEASED
    seen: Any = change.old if change.new is None else change.new
    if change.gap:
        return (ClusterChangeEvent(classify.pod_resource(seen.node_name), ActionType.ALL),)
    if change.old is None:
        return _WAITS if not seen.node_name else _ASSIGNED
    if change.new is None:
        return () if seen.node_name else (ClusterChangeEvent(classify.UNSCHEDULABLE_POD, ActionType.DELETE),)
    return _named(classify.classify_pod(change.old.pod, change.new.pod))


def _named(events: tuple[tuple[str, ActionType], ...]) -> tuple[ClusterChangeEvent, ...]:
    return tuple(ClusterChangeEvent(resource, action) for resource, action in events)


class Unreadable(NamedTuple):
    """The last version on a subject, which cannot be read. It counts as absent, except: of a node's status
    the last readable one stays, and a pod whose placement cannot be read may be on any node."""

    subject: str
    sequence: int
    reason: str

    def __str__(self) -> str:
        return f"{self.subject} (sequence {self.sequence}) cannot be read: {self.reason}"


class DeadDelivery(NamedTuple):
    """An effect: put this delivery on `dead.<service>`; the view has counted it as a deletion."""

    delivery: Any
    """As it came from the bus."""
    reason: str


class RelistNeeded(NamedTuple):
    """An effect: what was read cannot be the whole truth; list again."""

    reason: str


Effect: TypeAlias = DeadDelivery | RelistNeeded
