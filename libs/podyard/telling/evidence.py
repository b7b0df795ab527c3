"""Which of the records under a pod's name are about one pod, and which pod that is."""

from collections.abc import Iterable, Sequence

import msgspec

from podyard.objects import decoding, times
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError
from podyard.objects.priority import pod_priority
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo, QueueListReply
from podyard.proto.requeues import RequeueRecord


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored under one namespace and name, in stream order: of all pods that have had the name."""

    namespace: str
    name: str
    version: ClusterEvent | None = None
    """The object's last version; None: nothing is known of it any more."""
    deleted: bool = False
    """That version is a deletion marker."""
    attempts: Sequence[AttemptRecord] = ()
    requeues: Sequence[RequeueRecord] = ()
    placements: Sequence[Binding | Tombstone] = ()
    statuses: Sequence[PodStatusFact] = ()
    events: Sequence[K8sEvent] = ()
    queue: QueueListReply | None = None
    """What the queue says of pods of that name; None: no leader answers."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored about one pod (one uid)."""

    namespace: str
    name: str
    uid: str
    priority: int = 0
    scheduler: str = ""
    created_at: float = 0.0
    deleting: bool = False
    deleted: bool = False
    """The object is gone; the records are not yet."""
    pod: Pod | None = None
    """The object, or its last version; None: nobody knows it any more."""
    attempts: Sequence[AttemptRecord] = ()
    requeues: Sequence[RequeueRecord] = ()
    placement: Binding | Tombstone | None = None
    status: PodStatusFact | None = None
    started_at: float = 0.0
    queued: QueuedPodInfo | None = None
    """Where the queue has it."""
    outside: OutsidePod | None = None
    """Whom it waits for, if nobody schedules it."""
    profiles: Sequence[str] = ()
    """Names of the profiles that the queue has."""
    unheard: bool = False
    """No leader of the queue answers."""
    events: Sequence[K8sEvent] = ()


def of(records: Records) -> Evidence | None:
    """About the living pod of that name, else the one that the newest record is about; None without a trace
    of any.
    """
    pod = _pod(records.version)
    uid = pod.metadata.uid if pod is not None else _last_uid(records)
    if not uid:
        return None
    placements = [fact for fact in records.placements if fact.uid == uid]
    statuses = [fact for fact in records.statuses if fact.uid == uid]
    status = statuses[-1] if statuses else None
    queue = QueueListReply(epoch=0) if records.queue is None else records.queue
    return Evidence(
        namespace=records.namespace,
        name=records.name,
        uid=uid,
        priority=pod_priority(pod) if pod is not None else 0,
        scheduler=pod.spec.scheduler_name if pod is not None else "",
        created_at=times.seconds_or(pod.metadata.creation_timestamp, 0.0) if pod is not None else 0.0,
        deleting=pod is not None and pod.metadata.deletion_timestamp is not None,
        deleted=records.deleted or pod is None,
        pod=pod,
        attempts=[record for record in records.attempts if record.uid == uid],
        requeues=records.requeues,
        placement=placements[-1] if placements else None,
        status=status,
        started_at=times.seconds_or(status.start_time, 0.0) if status is not None else 0.0,
        queued=next((one for one in queue.pods if one.uid == uid), None),
        outside=next((one for one in queue.outside if one.uid == uid), None),
        profiles=queue.profiles,
        unheard=records.queue is None,
        events=_last_versions(event for event in records.events if event.regarding.uid in ("", uid)),
    )


def _last_versions(events: Iterable[K8sEvent]) -> list[K8sEvent]:
    """One that happened again once, as it was last; those of release 0.1.0 had no ids."""
    found = {event.id or f"{number}": event for number, event in enumerate(events)}
    return list(found.values())


def _pod(version: ClusterEvent | None) -> Pod | None:
    try:
        return None if version is None else decoding.decode_as(Pod, version.object)
    except ObjectError:
        return None


def _last_uid(records: Records) -> str:
    """The pod that the newest record is about, when its object is gone without a marker."""
    dated = [(fact.bound_at, fact.uid) for fact in records.placements]
    dated += [(record.at, record.uid) for record in records.attempts]
    return max(dated)[1] if dated else ""
