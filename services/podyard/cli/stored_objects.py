"""The objects of some kinds, joined and with their documents: read once, or followed."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.cli.errors import CliError
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects.quotas import QUOTAS
from podyard.proto import streams, subjects
from podyard.shell import stream_reading
from podyard.shell.folds import Beside, Folds
from podyard.shell.informer import Followed, Informer
from podyard.shell.snapshot import listed_into
from podyard.telling.objects import Objects

READ_S: Final = 15.0
"""Seconds within which something of a listing has to come, and all of objects that are named. A listing of
500,000 pods takes half a minute as a whole."""

OVERLOADED: Final = "is NATS overloaded?"

FACTS: Final = (
    "placement.",
    *(
        subject.removesuffix(">")
        for subject in (*subjects.ALL_FACTS, subjects.ALL_NOMINATIONS, subjects.ALL_QUOTA_USAGE)
    ),
)
"""What others say of objects: joined by the view, no documents of their own."""


async def read(bus: Bus, resources: Sequence[str], *, room: bool = False) -> Objects:
    """List the objects of `resources` once.

    :param room: with what the pods on nodes request, if nodes are among them
    :raises NotFound: if the CLUSTER stream is not there
    :raises CliError: if nothing comes for `READ_S`
    """
    await bus.last_sequence(streams.CLUSTER.name)
    objects = nothing()
    listed = of_resources(resources, room=room)
    try:
        await listed_into(bus, folds_of(objects), listed, service="cli", silence_s=READ_S)
    except TimeoutError as error:
        raise stands_still() from error
    return objects


async def read_named(bus: Bus, keys: Sequence[ObjectKey]) -> Objects:
    """Read these objects once: what lies on their own subjects and no other, however much there is besides.

    :raises NotFound: if the CLUSTER stream is not there
    :raises CliError: if it takes too long
    """
    stream = streams.CLUSTER.name
    found: list[Delivery] = []

    async def collect(subject: str) -> None:
        found.extend(await stream_reading.listing(bus, stream, (subject,)))

    await bus.last_sequence(stream)
    try:
        with anyio.fail_after(READ_S):
            async with anyio.create_task_group() as tasks:
                # each subject by itself: for several at once the server looks through the whole stream
                for subject in of_names(keys):
                    tasks.start_soon(collect, subject)
    except TimeoutError as error:
        raise CliError(f"the objects could not be read within {READ_S:g} s", OVERLOADED) from error
    objects = nothing()
    folds = folds_of(objects)
    folds.begin_listing()
    for delivery in sorted(found, key=lambda one: one.sequence):
        folds.apply(delivery)
    folds.end_listing(max((one.sequence for one in found), default=0))
    return objects


def stands_still() -> CliError:
    """Nothing came of a listing for `READ_S`."""
    return CliError(f"the objects could not be read: nothing came for {READ_S:g} s", OVERLOADED)


@asynccontextmanager
async def following(
    bus: Bus, objects: Objects, listed: tuple[str, ...], on_changes: Callable[[Sequence[Change]], None]
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


def of_resources(resources: Sequence[str], *, room: bool = False) -> tuple[str, ...]:
    """Subjects of all objects of these resources, with the facts that are joined to pods and nodes.

    :param room: with what takes room on nodes, if nodes are among them
    """
    listed = [subjects.objects(resource) for resource in dict.fromkeys(resources)]
    if subjects.PODS in resources:
        listed += [subjects.ALL_POD_STATUS, subjects.ALL_NOMINATIONS, subjects.ALL_BINDINGS]
    if subjects.NODES in resources:
        listed += [subjects.ALL_NODE_STATUS, subjects.ALL_NODE_LIFE]
        if room and subjects.PODS not in resources:
            listed += [subjects.objects(subjects.PODS), subjects.ALL_BINDINGS]
    if QUOTAS in resources:
        listed.append(subjects.ALL_QUOTA_USAGE)
    return tuple(listed)


def of_names(keys: Sequence[ObjectKey]) -> tuple[str, ...]:
    """Subjects of these objects, with the facts that are joined to them."""
    listed: list[str] = []
    for resource, namespace, name in dict.fromkeys(keys):
        listed.append(subjects.object_(resource, namespace, name))
        if resource == subjects.PODS:
            facts = (subjects.binding, subjects.pod_status_anywhere, subjects.nomination)
            listed += [subjects.any_uid(of, namespace, name) for of in facts]
        elif resource == subjects.NODES:
            listed += [subjects.node_status(name), subjects.node_life(name)]
        elif resource == QUOTAS:
            listed.append(subjects.any_uid(subjects.quota_usage, namespace, name))
    return tuple(listed)
