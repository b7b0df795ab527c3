"""What is to become of an object, decided from what is stored now. Pure.

A plan is a function from the stored version to a step. Writing repeats it whenever somebody else was faster,
so it must decide from its argument alone.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from podyard.cluster import finalizing
from podyard.cluster.changes import Delivered
from podyard.cluster.errors import ObjectExists, ObjectMissing, VersionMoved
from podyard.cluster.keys import ObjectKey
from podyard.objects import decoding, times
from podyard.objects.documents import mapping
from podyard.objects.errors import ObjectError
from podyard.objects.pod_defaults import TERMINATION_GRACE_PERIOD_S
from podyard.proto import codec, subjects
from podyard.proto.actions import ActionName
from podyard.proto.codec import MessageError
from podyard.proto.events import ClusterEvent
from podyard.proto.objects_api import Propagation

Document: TypeAlias = dict[str, Any]


class Stored:
    """The last version of a subject, as it lies in the stream: a living object, or a marker. Decoded when
    asked for."""

    __slots__ = ("_event", "_fault", "_has_no_view", "deleted", "payload", "sequence", "typed")

    def __init__(self, sequence: int, payload: bytes, deleted: bool) -> None:
        self.sequence = sequence
        self.payload = payload
        self.deleted = deleted
        self.typed: Any = None
        """The typed view, once somebody has asked for it."""
        self._event: ClusterEvent | None = None
        self._fault: str | None = None
        self._has_no_view = False
        """It was found that the object cannot be read."""

    @property
    def put_aside(self) -> bool:
        """Whether only its sequence is known (`DocumentView`): what it holds is read when it is asked for."""
        return not self.deleted and not self.payload

    @property
    def event(self) -> ClusterEvent:
        """
        :raises MessageError: if it is no ClusterEvent
        """
        if self._event is None:
            self._event = codec.decode(ClusterEvent, self.payload)
        return self._event

    @property
    def uid(self) -> str:
        """The object's uid; empty if the version cannot be read."""
        try:
            return self.event.uid
        except MessageError:
            return ""

    def document(self) -> Document:
        """A copy of the object.

        :raises MessageError: if the version cannot be read
        """
        try:
            return decoding.document(self.event.object)
        except ObjectError as error:
            raise MessageError("Kubernetes object", str(error)) from error

    def view(self) -> Any:
        """The object as its typed view.

        :raises MessageError: if the version is no ClusterEvent
        :raises ObjectError: if its object cannot be read
        """
        if self.typed is None:
            event = self.event
            self.typed = decoding.decode_stored(event.resource, event.namespace, event.name, event.object)
        return self.typed

    def view_if_any(self) -> Any | None:
        """The object as its typed view, None if it cannot be read: found out once, however often one asks."""
        if self.typed is None and not self._has_no_view:
            try:
                return self.view()
            except (MessageError, ObjectError):
                self._has_no_view = True
        return self.typed

    @property
    def fault(self) -> str:
        """Why it cannot be read, as its kind or as a document; empty if it can be. One that cannot counts as
        deleted."""
        if self._fault is None:
            try:
                self.view()
                self.document()
                self._fault = ""
            except (MessageError, ObjectError) as error:
                self._fault = str(error)
        return self._fault

    @property
    def readable(self) -> bool:
        """Whether it can be read."""
        return not self.fault


def stored_of(delivery: Delivered | None) -> Stored | None:
    """What a delivery, or its absence, says about a subject."""
    return None if delivery is None else Stored(delivery.sequence, delivery.payload, delivery.deleted)


def living(stored: Stored | None, uid: str = "") -> Stored | None:
    """`stored` if it is a living, readable object (with that uid, if one is given), else None."""
    if stored is None or stored.deleted or not stored.readable:
        return None
    return stored if uid in ("", stored.uid) else None


def remains(stored: Stored | None, uid: str = "") -> bool:
    """Whether a version is there that cannot be read (of that uid, if one is given): an object for nobody,
    and there until removed."""
    return stored is not None and not stored.deleted and not stored.readable and uid in ("", stored.uid)


class Put(NamedTuple):
    """Write this object."""

    document: Document
    actions: tuple[ActionName, ...] = ()


class Remove(NamedTuple):
    """Write a marker in the object's place."""


class Keep(NamedTuple):
    """Nothing needs to be written."""


Step: TypeAlias = Put | Remove | Keep
Plan: TypeAlias = Callable[[Stored | None], Step]
"""May raise a `ClusterError` or `ObjectError`: then the object is left as it is."""


class Author(NamedTuple):
    """Who writes, why, and as part of which trace."""

    who: str
    why: str = ""
    trace: str = ""
    """Traceparent that goes into the header of each message."""
    causes: tuple[str, ...] = ()
    replaces: str = ""
    """Name of the pod that a new one replaces."""


class Intent(NamedTuple):
    """A plan for the object at `key`. `known` is the version to begin with; a wrong guess costs a round trip,
    no harm."""

    key: ObjectKey
    plan: Plan
    known: Stored | None = None
    causes: tuple[str, ...] = ()
    """In addition to the author's."""
    replaces: str = ""
    """Name of the pod that a new one replaces."""


class Written(NamedTuple):
    """What became of an intent."""

    key: ObjectKey
    step: Step
    sequence: int
    """CLUSTER sequence of the write; for Keep that of the version that stays, 0 if there is none."""
    before: Stored | None
    """The version that the step was decided from."""
    after: Stored | None = None
    """The version that was written; None for Keep."""


def key_of(resource: str, document: Document) -> ObjectKey:
    """Where a document belongs."""
    metadata = document["metadata"]
    return ObjectKey(resource, metadata.get("namespace") or "", metadata["name"])


def event_of(key: ObjectKey, step: Put | Remove, before: Stored | None, author: Author) -> ClusterEvent:
    """The message that carries out a step. A marker holds the last version."""
    op: Literal["put", "delete"]
    actions: tuple[ActionName, ...]
    if isinstance(step, Put):
        content = msgspec.Raw(msgspec.json.encode(step.document))
        uid, op, actions = str(step.document["metadata"]["uid"]), "put", step.actions
    else:
        readable = before is not None and before.readable
        content = before.event.object if before is not None and readable else codec.NULL
        uid, op = before.uid if before is not None else "", "delete"
        actions = ("Delete",)
    return ClusterEvent(
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        op=op,
        actions=actions,
        who=author.who,
        why=author.why,
        causes=author.causes,
        replaces=author.replaces,
        object=content,
    )


# Plans


def creation(key: ObjectKey, document: Document) -> Plan:
    """Create `document`, which has its uid; the same uid already there is a repetition of this very
    create."""
    uid = document["metadata"]["uid"]

    def plan(stored: Stored | None) -> Step:
        there = living(stored)
        if there is None:
            return Put(document, ("Add",))
        if there.uid == uid:
            return Keep()
        raise ObjectExists(key, there.uid, there.sequence)

    return plan


def of_version(key: ObjectKey, plan: Plan, sequence: int) -> Plan:
    """The same, for one version of the object alone.

    :param sequence: of CLUSTER; 0: the object must not be there
    """

    def guarded(stored: Stored | None) -> Step:
        found = sequence_of(stored)
        if found != sequence:
            raise VersionMoved(key, found)
        return plan(stored)

    return guarded


def sequence_of(stored: Stored | None) -> int:
    """Of a living object's version; 0 if there is none."""
    there = living(stored)
    return 0 if there is None else there.sequence


def alteration(key: ObjectKey, alter: Callable[[Document], Document | None], uid: str = "") -> Plan:
    """Change a living object: `alter` gets a copy and returns what to write, or None to leave it. A deleted
    one goes with its last finalizer."""

    def plan(stored: Stored | None) -> Step:
        there = living(stored, uid)
        if there is None:
            raise ObjectMissing(key, uid)
        document = there.document()
        waits = finalizing.waits(document)
        altered = alter(document)
        if altered is None:
            return Keep()
        return Remove() if waits and not finalizing.keeps(key.resource, altered) else Put(altered)

    return plan


def removal(key: ObjectKey, uid: str = "") -> Plan:
    """Put a marker in the place of a living object, or of what cannot be read."""

    def plan(stored: Stored | None) -> Step:
        if living(stored, uid) is None and not remains(stored, uid):
            raise ObjectMissing(key, uid)
        return Remove()

    return plan


def deletion(
    key: ObjectKey,
    *,
    now: float,
    occupies: Callable[[str], bool],
    grace_s: int | None = None,
    uid: str = "",
    propagation: Propagation | None = None,
) -> Plan:
    """Delete an object as its kind is deleted: a pod that takes room on a node gets its grace period, what
    has finalizers stays until they are gone, a namespace until its content is; all else gets a marker at
    once, also what cannot be read.

    :param now: seconds since 1970
    :param occupies: whether the pod with this uid is bound and not released
    :param grace_s: seconds; None means the pod's own, 0 at once, less than that a second. Source:
        apiserver/pkg/registry/rest/delete.go, BeforeDelete
    :param propagation: what becomes of dependents
    """

    def plan(stored: Stored | None) -> Step:
        if remains(stored, uid):
            return Remove()
        there = living(stored, uid)
        if there is None:
            raise ObjectMissing(key, uid)
        document = there.document()
        return deleted(key, document, now, occupies(there.uid), grace_s=grace_s, propagation=propagation)

    return plan


def deleted(
    key: ObjectKey,
    document: Document,
    now: float,
    occupies: bool,
    *,
    grace_s: int | None = None,
    propagation: Propagation | None = None,
) -> Step:
    """What `deletion` makes of an object that is there.

    :param document: changed in place
    :param occupies: whether it is a pod that takes room
    """
    if key.resource == finalizing.NAMESPACES and not finalizing.is_deleting(document):
        finalizing.terminate(document, now)
        finalizing.set_policy(document, propagation)
        return Put(document)
    if key.resource == finalizing.NAMESPACES and finalizing.of_spec(document):
        return Keep()
    grace = pod_grace_s(document) if grace_s is None else (1 if grace_s < 0 else grace_s)
    if key.resource == subjects.PODS and occupies and grace > 0:
        if not begin_deletion(document, now, grace):
            return Keep()
        finalizing.set_policy(document, propagation)
        return Put(document)
    return _without_grace(document, now, propagation)


def _without_grace(document: Document, now: float, propagation: Propagation | None) -> Step:
    """Remove an object, or mark it if it has finalizers."""
    before = finalizing.finalizers(document)
    finalizing.set_policy(document, propagation)
    after = finalizing.finalizers(document)
    if not after:
        return Remove()
    changed = finalizing.mark_deleting(document, now)
    return Put(document) if changed or after != before else Keep()


def pod_grace_s(document: Document) -> int:
    """The pod's own grace period in seconds."""
    grace = mapping(document, "spec").get("terminationGracePeriodSeconds")
    return TERMINATION_GRACE_PERIOD_S if grace is None else int(grace)


def begin_deletion(document: Document, now: float, grace_s: int) -> bool:
    """Set the deletion timestamp (when the grace period ends) in place; a second deletion may only shorten
    it.

    A grace period ends at the last time that RFC 3339 can say at the latest.

    :return: whether anything changed. Source: apiserver/pkg/registry/rest/delete.go, BeforeDelete
    """
    metadata = document["metadata"]
    ended = _ends_at(metadata)
    began = now if ended is None else ended - (metadata.get("deletionGracePeriodSeconds") or 0)
    ends = min(began + grace_s, times.LAST)
    if ended is not None and ends >= ended:
        return False
    if ended is None:
        finalizing.count_generation(document)
    metadata["deletionTimestamp"] = times.rfc3339(max(now, ends))
    metadata["deletionGracePeriodSeconds"] = int(ends - began)
    return True


def _ends_at(metadata: Document) -> float | None:
    """When the grace period of a deletion ends, seconds since 1970; None: nobody deleted it, or what is
    written there is no time."""
    return times.seconds_or(metadata.get("deletionTimestamp"), None)
