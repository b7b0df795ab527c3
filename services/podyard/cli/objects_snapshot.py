"""The objects of some kinds as they are now, documents included."""

from collections.abc import Sequence

import anyio

from podyard.bus.connection import Bus
from podyard.cli.errors import CliError
from podyard.cli.objects_view import ObjectsView
from podyard.cli.targets import object_subjects
from podyard.cluster.informer import Followed, Informer
from podyard.proto import streams

READ_S = 15.0
"""Seconds for one listing; 100,000 objects take about two."""


async def read(bus: Bus, resources: Sequence[str]) -> ObjectsView:
    """List the objects of `resources` once.

    :raises NotFound: if the CLUSTER stream is not there
    :raises CliError: if it takes too long
    """
    await bus.last_sequence(streams.CLUSTER.name)
    listed = object_subjects(resources)
    view = ObjectsView()
    informer = Informer(bus, view, Followed(listed, listed), service="cli")
    with anyio.move_on_after(READ_S) as limit:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(informer.run)
            await informer.synced()
            tasks.cancel_scope.cancel()
    if limit.cancelled_caught:
        raise CliError(f"the objects could not be read within {READ_S:g} s", "is NATS overloaded?")
    return view
