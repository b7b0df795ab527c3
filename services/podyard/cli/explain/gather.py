"""Collecting what the bus holds about one pod, or about a workload's moves. Shell: listings and one request,
no judgement."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, NotFound
from podyard.cli.errors import CliError
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Placement
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply, QueueListRequest
from podyard.proto.requeues import RequeueRecord
from podyard.shell import stream_reading
from podyard.telling import evidence
from podyard.telling.evidence import Evidence, Records
from podyard.telling.moves import MoveStory, story_of

T = TypeVar("T")


async def gather(bus: Bus, namespace: str, name: str) -> Evidence:
    """Everything about the living pod of that name, or the one that was last deleted if its records are still
    there.

    :raises CliError: if there is no trace of such a pod
    """
    found: dict[str, list[tuple[Delivery, Any]]] = {}

    async def collect(what: str, stream: str, wanted: tuple[str, ...], message: Any) -> None:
        found[what] = await _records(bus, stream, wanted, message)

    def wanted(of: Callable[[str, str, str], str]) -> tuple[str]:
        return (subjects.any_uid(of, namespace, name),)

    async with anyio.create_task_group() as tasks:
        cluster = streams.CLUSTER.name
        tasks.start_soon(collect, "object", cluster, (subjects.object_(subjects.PODS, namespace, name),), ClusterEvent)
        tasks.start_soon(collect, "placement", cluster, wanted(subjects.binding), Placement)
        tasks.start_soon(collect, "status", cluster, wanted(subjects.pod_status_anywhere), PodStatusFact)
        tasks.start_soon(collect, "attempts", streams.DECISIONS.name, wanted(subjects.decisions), AttemptRecord)
        tasks.start_soon(collect, "requeues", streams.REQUEUES.name, (subjects.ALL_REQUEUES,), RequeueRecord)
        tasks.start_soon(
            collect,
            "events",
            streams.K8SEVENTS.name,
            subjects.k8s_events_about(namespace, subjects.PODS, name),
            K8sEvent,
        )
    about = evidence.of(_together(namespace, name, found, await _queued(bus, namespace, name)))
    if about is None:
        advice = f"`podyard get pods -n {namespace}` lists those there are"
        raise CliError(f'no pod "{name}" in namespace "{namespace}"', advice)
    return about


async def moves(bus: Bus, namespace: str, kind: str, name: str) -> MoveStory:
    """What the descheduler moved, or wanted to move, of a workload or a pod."""
    found = await _records(bus, streams.MOVES.name, (subjects.moves_in(namespace),), MoveRecord)
    return story_of(namespace, kind, name, [record for _, record in found])


def _together(
    namespace: str, name: str, found: dict[str, list[tuple[Delivery, Any]]], queued: QueuedPodInfo | None
) -> Records:
    def messages(what: str) -> list[Any]:
        return [message for _, message in found[what]]

    versions = found["object"]
    return Records(
        namespace=namespace,
        name=name,
        version=versions[-1][1] if versions else None,
        deleted=bool(versions) and versions[-1][0].deleted,
        attempts=messages("attempts"),
        requeues=messages("requeues"),
        placements=messages("placement"),
        statuses=messages("status"),
        events=messages("events"),
        queued=queued,
    )


async def _records(bus: Bus, stream: str, wanted: tuple[str, ...], message: type[T]) -> list[tuple[Delivery, T]]:
    """What a stream holds on these subjects; a stream that is not there holds nothing, an unreadable record
    is passed over.
    """
    deliveries: list[Delivery] = []
    try:
        for subject in wanted:  # each by itself: several at once have the whole stream read
            deliveries += await stream_reading.listing(bus, stream, (subject,))
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
