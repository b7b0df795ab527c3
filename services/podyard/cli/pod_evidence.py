"""What conditions of pods are told from and no object says: when a pod was bound, and why it is not."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError, NotFound
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.proto import codec, placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.shell import stream_reading
from podyard.telling import pod_conditions
from podyard.telling.objects import Objects
from podyard.telling.pod_conditions import Evidence

AT_ONCE: Final = 64
"""Direct readings under way at once: each is one small message."""

_decode_attempt: Final = codec.decoder(AttemptRecord).decode


async def read(bus: Bus, objects: Objects, keys: Sequence[ObjectKey], *, whole: bool) -> str:
    """Put into `objects` what is known of these pods.

    :param whole: all attempts that are kept, which tell since when a pod waits; else the last alone
    :return: why something of it could not be read; empty if all was
    """
    views = [objects.view.pods.get(key.namespaced_name) for key in keys if key.resource == subjects.PODS]
    placed, waiting = pod_conditions.wanted(view for view in views if view is not None)
    faults: list[str] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def look(view: PodView, found: Callable[[Bus, PodView], Awaitable[Evidence]]) -> None:
        async with limit:
            try:
                objects.evidence[view.uid] = await found(bus, view)
            except NotFound:
                return  # no stream, so nobody has tried
            except (BusError, MessageError) as error:
                faults.append(str(error))

    async with anyio.create_task_group() as tasks:
        for view in placed:
            tasks.start_soon(look, view, _placement)
        for view in waiting:
            tasks.start_soon(look, view, _attempts if whole else _last_attempt)
    return faults[0] if faults else ""


async def _placement(bus: Bus, view: PodView) -> Evidence:
    last = await bus.get(streams.CLUSTER.name, subjects.binding(*view.key, view.uid))
    if last is None or last.deleted:
        return pod_conditions.NOTHING
    return Evidence(bound_at=placement_reading.decode(last.subject, last.payload).bound_at)


async def _last_attempt(bus: Bus, view: PodView) -> Evidence:
    last = await bus.get(streams.DECISIONS.name, subjects.decisions(*view.key, view.uid))
    return pod_conditions.NOTHING if last is None else Evidence(attempts=(_decode_attempt(last.payload),))


async def _attempts(bus: Bus, view: PodView) -> Evidence:
    wanted = subjects.decisions(*view.key, view.uid)
    found = await stream_reading.listing(bus, streams.DECISIONS.name, (wanted,))
    return Evidence(attempts=[_decode_attempt(one.payload) for one in found])
