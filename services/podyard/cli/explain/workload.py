"""Collecting what the bus holds about a workload. Shell: listings and requests, no judgement."""

from typing import Any, Final

from podyard.bus.connection import Bus
from podyard.cli import stored_objects
from podyard.cli.errors import CliError
from podyard.cli.explain import gather
from podyard.cluster.keys import ObjectKey
from podyard.objects.kinds import Kind
from podyard.proto import streams, subjects
from podyard.proto.operations import K8sEvent
from podyard.proto.queue_api import QueueListRequest
from podyard.shell.snapshot import snapshot
from podyard.telling import workload
from podyard.telling.workload import WorkloadStory

OUTSIDE: Final = 256
"""Pods that nobody schedules, as many as the queue names in one answer."""
MOST_OWNERS: Final = 8
"""Of what it made about which events are read, the youngest; semi-arbitrary."""


async def story(bus: Bus, kind: Kind, namespace: str, name: str) -> WorkloadStory:
    """How its pods are, and what was moved of it.

    :raises CliError: if there is no such workload, and nothing was moved of one
    """
    await bus.last_sequence(streams.CLUSTER.name)
    listed = workload.subjects_of(kind, namespace)
    try:
        view = await snapshot(bus, listed, service="cli", silence_s=stored_objects.READ_S)
    except TimeoutError as error:
        raise stored_objects.stands_still() from error
    found = workload.family(view, kind, namespace, name)
    moves = await gather.moves(bus, namespace, kind.kind, name)
    if found.item is None and not moves.moves:
        advice = f"`podyard get {kind.resource} -n {namespace}` lists those there are"
        raise CliError(f'no {kind.singular} "{name}" in namespace "{namespace}"', advice)
    return workload.story(
        kind,
        namespace,
        name,
        found,
        attempts=await gather.last_attempts(bus, found.waiting[: workload.MOST_LOOKED_AT]),
        queue=await gather.queue_says(bus, QueueListRequest(namespace=namespace, limit=OUTSIDE)),
        events=await _events(bus, found.owners),
        moves=moves,
    )


async def _events(bus: Bus, owners: tuple[ObjectKey, ...]) -> list[K8sEvent]:
    found: list[Any] = []
    for resource, namespace, name in (*owners[:1], *owners[1:][-MOST_OWNERS:]):
        about = subjects.k8s_events_about(namespace, resource, name)
        found += await gather.records(bus, streams.K8SEVENTS.name, about, gather.as_a(K8sEvent))
    return [event for _, event in found if not event.deleted]
