"""The objects of some kinds, joined and with their documents: read once, or followed."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.cli.errors import CliError
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView
from podyard.cluster.view import ClusterView
from podyard.proto import streams, subjects
from podyard.shell.folds import Beside, Folds
from podyard.shell.informer import Followed, Informer
from podyard.shell.snapshot import snapshot
from podyard.telling.objects import Objects

READ_S: Final = 15.0
"""Seconds for one listing; 100,000 objects take about two."""

FACTS: Final = (
    "placement.",
    *(subject.removesuffix(">") for subject in (*subjects.ALL_FACTS, subjects.ALL_NOMINATIONS)),
)
"""What others say of objects: joined by the view, no documents of their own."""


async def read(bus: Bus, resources: Sequence[str]) -> Objects:
    """List the objects of `resources` once.

    :raises NotFound: if the CLUSTER stream is not there
    :raises CliError: if it takes too long
    """
    await bus.last_sequence(streams.CLUSTER.name)
    documents = DocumentView()
    try:
        beside = Beside(documents, FACTS)
        view = await snapshot(bus, of_resources(resources), beside, service="cli", timeout_s=READ_S)
    except TimeoutError as error:
        raise CliError(f"the objects could not be read within {READ_S:g} s", "is NATS overloaded?") from error
    return Objects(view, documents)


@asynccontextmanager
async def following(
    bus: Bus, objects: Objects, listed: tuple[str, ...], on_changes: Callable[[list[Change]], None]
) -> AsyncGenerator[None]:
    """Keep `objects` up to date for as long as the block runs, which begins when the listing is complete.

    :param objects: empty
    :param listed: subjects that do not overlap
    """
    informer = Informer(bus, folds_of(objects), Followed(listed, listed), service="cli", on_changes=on_changes)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        yield
        tasks.cancel_scope.cancel()


def nothing() -> Objects:
    """What is known before anything was read."""
    return Objects(ClusterView(), DocumentView())


def folds_of(objects: Objects) -> Folds:
    """What an informer feeds, so that `objects` know what it reads."""
    return Folds(objects.view, Beside(objects.documents, FACTS))


def of_resources(resources: Sequence[str]) -> tuple[str, ...]:
    """Subjects of all objects of these resources, with the facts that are joined to pods and nodes."""
    listed = [subjects.objects(resource) for resource in dict.fromkeys(resources)]
    if subjects.PODS in resources:
        listed += [subjects.ALL_POD_STATUS, subjects.ALL_NOMINATIONS, subjects.ALL_BINDINGS]
    if subjects.NODES in resources:
        listed += [subjects.ALL_NODE_STATUS, subjects.ALL_NODE_LIFE]
    return tuple(listed)
