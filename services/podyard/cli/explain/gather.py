"""Collecting what the bus holds about one pod, or about a workload's moves. Shell: listings and one request,
no judgement."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import anyio
from msgspec.structs import replace

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, NotFound
from podyard.cli import stored_objects
from podyard.cli.errors import CliError
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.moves import OPEN, OPEN_S, Moves
from podyard.proto import codec, placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.operations import K8sEvent
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply, QueueListRequest
from podyard.proto.requeues import RequeueRecord
from podyard.runtime import clock
from podyard.shell import stream_reading
from podyard.shell.snapshot import snapshot
from podyard.telling import evidence
from podyard.telling.evidence import Evidence, Records
from podyard.telling.moves import MoveStory, story_of

T = TypeVar("T")
Read: TypeAlias = Callable[[str, bytes], T]
"""Gives what a record on a subject says; raises `MessageError` if it cannot be read."""


async def gather(bus: Bus, namespace: str, name: str) -> Evidence:
    """Everything about the living pod of that name, or the one that was last deleted if its records are still
    there.

    :raises CliError: if there is no trace of such a pod
    """
    found: dict[str, list[tuple[Delivery, Any]]] = {}

    async def collect(what: str, stream: str, wanted: tuple[str, ...], read: Read[Any]) -> None:
        found[what] = await records(bus, stream, wanted, read)

    def wanted(of: Callable[[str, str, str], str]) -> tuple[str]:
        return (subjects.any_uid(of, namespace, name),)

    async with anyio.create_task_group() as tasks:
        cluster = streams.CLUSTER.name
        tasks.start_soon(
            collect, "object", cluster, (subjects.object_(subjects.PODS, namespace, name),), as_a(ClusterEvent)
        )
        tasks.start_soon(collect, "placement", cluster, wanted(subjects.binding), placement_reading.decode)
        tasks.start_soon(collect, "status", cluster, wanted(subjects.pod_status_anywhere), as_a(PodStatusFact))
        tasks.start_soon(collect, "attempts", streams.DECISIONS.name, wanted(subjects.decisions), as_a(AttemptRecord))
        tasks.start_soon(collect, "requeues", streams.REQUEUES.name, (subjects.ALL_REQUEUES,), as_a(RequeueRecord))
        tasks.start_soon(
            collect,
            "events",
            streams.K8SEVENTS.name,
            subjects.k8s_events_about(namespace, subjects.PODS, name),
            as_a(K8sEvent),
        )
    queue = await queue_says(bus, QueueListRequest(namespace=namespace, name=name, limit=1))
    about = evidence.of(_together(namespace, name, found, queue))
    if about is None:
        advice = f"`podyard get pods -n {namespace}` lists those there are"
        raise CliError(f'no pod "{name}" in namespace "{namespace}"', advice)
    return about


async def moves(bus: Bus, namespace: str, kind: str, name: str) -> MoveStory:
    """What the descheduler moved, or wanted to move, of a workload or a pod, and what came of it by now."""
    found = await records(bus, streams.MOVES.name, (subjects.moves_in(namespace),), as_a(MoveRecord))
    told = story_of(namespace, kind, name, [record for _, record in found])
    if not any(one.outcome in OPEN for one in told.moves):
        return told
    pods = (
        subjects.objects(subjects.PODS, namespace),
        subjects.bindings_in(namespace),
        subjects.pod_statuses_in(namespace),
    )
    view = await snapshot(bus, pods, service="cli", silence_s=stored_objects.READ_S)
    return story_of(namespace, kind, name, known_now([record for _, record in found], view, clock.now()))


def known_now(records: Sequence[MoveRecord], view: ClusterView, now: float) -> list[MoveRecord]:
    """Records of moves, and what the pods that are there say of those that were open when the descheduler
    looked last: a cycle on demand looks once.

    :param view: has the pods of their namespace
    """
    moves = Moves()
    moves.recall(records)
    seen = {one.id: one for one in moves.seen(view, now)}
    still = {
        one.id: replace(one, known_at=now)
        for one in moves.made()
        if one.outcome in OPEN and one.id not in seen and one.at > now - OPEN_S
    }
    return [*records, *seen.values(), *still.values()]


def _together(
    namespace: str, name: str, found: dict[str, list[tuple[Delivery, Any]]], queue: QueueListReply | None
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
        events=[event for event in messages("events") if not event.deleted],
        queue=queue,
    )


def as_a(message: type[T]) -> Read[T]:
    """Reads a record as that message, whatever its subject."""
    return lambda subject, payload: codec.decode(message, payload)


async def records(bus: Bus, stream: str, wanted: tuple[str, ...], read: Read[T]) -> list[tuple[Delivery, T]]:
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
            found.append((delivery, read(delivery.subject, delivery.payload)))
        except MessageError:
            continue
    return found


async def last_attempts(bus: Bus, pods: Sequence[PodView]) -> dict[str, AttemptRecord]:
    """The last attempt of each pod that did not bind it, by uid; those that have none, or one that cannot be
    read, are left out."""
    found: dict[str, AttemptRecord] = {}

    async def ask(pod: PodView) -> None:
        try:
            delivery = await bus.get(streams.DECISIONS.name, subjects.decisions(*pod.key, pod.uid))
            if delivery is not None:
                found[pod.uid] = codec.decode(AttemptRecord, delivery.payload)
        except (NotFound, MessageError):
            return

    async with anyio.create_task_group() as tasks:
        for pod in pods:
            tasks.start_soon(ask, pod)
    return found


async def queued(bus: Bus, namespace: str, name: str) -> QueuedPodInfo | None:
    """Where the queue has it; `None` also if no leader answers."""
    reply = await queue_says(bus, QueueListRequest(namespace=namespace, name=name, limit=1))
    return reply.pods[0] if reply is not None and reply.pods else None


async def queue_says(bus: Bus, request: QueueListRequest) -> QueueListReply | None:
    """What the queue says; `None` if no leader answers."""
    try:
        answer = await bus.request(subjects.queue_verb("list"), codec.encode(request), timeout_s=2.0)
        return codec.decode(QueueListReply, answer.payload)
    except (BusError, MessageError):
        return None
