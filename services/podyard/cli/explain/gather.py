"""Collecting what the bus holds about one pod. Shell: listings and one request, no judgement."""

from collections.abc import Sequence
from typing import Any, TypeVar

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, NotFound
from podyard.cli import reading
from podyard.cli.errors import CliError
from podyard.cli.explain.report import Evidence
from podyard.cli.render.times import parse_rfc3339
from podyard.objects import decoding
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError
from podyard.objects.priority import pod_priority
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Placement, Tombstone
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply, QueueListRequest
from podyard.proto.requeues import RequeueRecord

T = TypeVar("T")
ANY = "*"


async def gather(bus: Bus, namespace: str, name: str) -> Evidence:
    """Everything about the living pod of that name, or the one that was last deleted if its records are still there.

    :raises CliError: if there is no trace of such a pod
    """
    found: dict[str, Any] = {}

    async def collect(what: str, stream: str, subject: str, message: Any) -> None:
        found[what] = await _records(bus, stream, subject, message)

    pod_token, ns_token = subjects.encode(name), subjects.encode(namespace)
    async with anyio.create_task_group() as tasks:
        cluster = streams.CLUSTER.name
        tasks.start_soon(collect, "object", cluster, subjects.object_(subjects.PODS, namespace, name), ClusterEvent)
        tasks.start_soon(collect, "placement", cluster, f"placement.bindings.{ns_token}.{pod_token}.*", Placement)
        tasks.start_soon(collect, "status", cluster, f"cluster.podstatus.*.{ns_token}.{pod_token}.*", PodStatusFact)
        decisions = f"decisions.{ns_token}.{pod_token}.*"
        tasks.start_soon(collect, "attempts", streams.DECISIONS.name, decisions, AttemptRecord)
        tasks.start_soon(collect, "requeues", streams.REQUEUES.name, subjects.ALL_REQUEUES, RequeueRecord)
        tasks.start_soon(
            collect, "events", streams.K8SEVENTS.name, subjects.k8s_event(namespace, "Pod", name), K8sEvent
        )
    return _evidence(namespace, name, found, await _queued(bus, namespace, name))


def _evidence(namespace: str, name: str, found: dict[str, Any], queued: QueuedPodInfo | None) -> Evidence:
    pod, deleted = _object(found["object"])
    uid = pod.metadata.uid if pod is not None else _last_uid(found)
    if not uid:
        advice = f"`podyard get pods -n {namespace}` lists those there are"
        raise CliError(f'no pod "{name}" in namespace "{namespace}"', advice)
    placements: Sequence[Binding | Tombstone] = [fact for _, fact in found["placement"] if fact.uid == uid]
    statuses: Sequence[PodStatusFact] = [fact for _, fact in found["status"] if fact.uid == uid]
    status = statuses[-1] if statuses else None
    return Evidence(
        namespace=namespace,
        name=name,
        uid=uid,
        priority=pod_priority(pod) if pod is not None else 0,
        scheduler=pod.spec.scheduler_name if pod is not None else "",
        created_at=parse_rfc3339(pod.metadata.creation_timestamp or "") if pod is not None else 0.0,
        deleting=pod is not None and pod.metadata.deletion_timestamp is not None,
        deleted=deleted or pod is None,
        attempts=[record for _, record in found["attempts"] if record.uid == uid],
        requeues=[record for _, record in found["requeues"]],
        placement=placements[-1] if placements else None,
        status=status,
        started_at=parse_rfc3339(status.start_time) if status is not None else 0.0,
        queued=queued if queued is not None and queued.uid == uid else None,
        events=[event for _, event in found["events"] if event.regarding.uid in ("", uid)],
    )


def _object(versions: Sequence[tuple[Delivery, ClusterEvent]]) -> tuple[Pod | None, bool]:
    """The pod's last version, and whether that is a deletion marker."""
    if not versions:
        return None, True
    delivery, event = versions[-1]
    try:
        return decoding.decode_as(Pod, event.object), delivery.deleted
    except ObjectError:
        return None, delivery.deleted


def _last_uid(found: dict[str, Any]) -> str:
    """The pod that the newest record is about, when its object is gone without a marker."""
    dated = [(fact.bound_at, fact.uid) for _, fact in found["placement"]]
    dated += [(record.at, record.uid) for _, record in found["attempts"]]
    return max(dated)[1] if dated else ""


async def _records(bus: Bus, stream: str, subject: str, message: type[T]) -> list[tuple[Delivery, T]]:
    """What a stream holds on `subject`; a stream that is not there holds nothing, an unreadable record is passed over."""
    try:
        deliveries = await reading.listing(bus, stream, (subject,))
    except NotFound:
        return []
    found: list[tuple[Delivery, T]] = []
    for delivery in deliveries:
        try:
            found.append((delivery, codec.decoder(message).decode(delivery.payload)))
        except MessageError:
            continue
    return found


async def _queued(bus: Bus, namespace: str, name: str) -> QueuedPodInfo | None:
    """Where the queue has it; `None` also if no leader answers."""
    request = QueueListRequest(namespace=namespace, name=name, limit=1)
    try:
        answer = await bus.request(subjects.queue_verb("list"), codec.encode(request), timeout_s=2.0)
        reply = codec.decode(QueueListReply, answer.payload)
    except (BusError, MessageError):
        return None
    return reply.pods[0] if reply.pods else None
