"""What `podyard mend` finds, says, asks and writes."""

import contextlib
import sys
from typing import Final, NamedTuple

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import BatchUnclear, BusError, Conflict
from podyard.cli.errors import CliError, InputError
from podyard.cli.objects_client import person
from podyard.cluster.changes import Unreadable
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.facts import PodStatusFact
from podyard.proto.operations import Lease
from podyard.proto.placement import CommitRecord, Fence
from podyard.runtime import clock
from podyard.shell import mending, stream_reading
from podyard.shell.mending import Mend, MendError, Standing
from podyard.shell.snapshot import snapshot

READ_S: Final = 30.0
"""Seconds for one listing of everything."""


class Known(NamedTuple):
    """What else is stored about a pod whose placement cannot be read."""

    agents: tuple[PodStatusFact, ...]
    """What nodes' agents say of it."""
    commits: tuple[str, ...]
    """What commit records of the last minutes say of it, in words."""

    @property
    def node(self) -> str:
        """A node whose agent has spoken of it; empty if none has."""
        return self.agents[0].node if self.agents else ""


async def show(bus: Bus) -> int:
    """Print all placements that cannot be read, and what is known of each."""
    view = await _view(bus)
    for found in view.unreadable_placements:
        print("\n".join(await _told(bus, view, found)))
    if not view.unreadable_placements:
        print("Every binding and the fence can be read.")
    return 0


async def mend(bus: Bus, subject: str, *, node: str, gone: bool, agreed: bool) -> int:
    """Say what will be written, ask, and write it.

    :param agreed: it need not be asked
    :raises CliError: it was not done, and why
    """
    view = await _view(bus)
    found = next((one for one in view.unreadable_placements if one.subject == subject), None)
    if found is None:
        raise InputError(
            f"{subject}: nothing is stored there that cannot be read", "`podyard mend` lists what cannot be"
        )
    print("\n".join(await _told(bus, view, found)))
    try:
        planned = await _plan(bus, view, found, node, gone)
    except MendError as error:
        raise CliError(str(error)) from error
    print(f"\n{planned.says[0].upper()}{planned.says[1:]}.", flush=True)
    if not agreed and not await _agrees():
        raise CliError("nothing was written", "say --yes to do it")
    await _write(bus, planned)
    print("Done. A binder that waits for this goes on within seconds.")
    return 0


async def _view(bus: Bus) -> ClusterView:
    await bus.last_sequence(streams.CLUSTER.name)
    try:
        return await snapshot(bus, service="binder", silence_s=READ_S)
    except TimeoutError as error:
        raise CliError(
            f"the cluster could not be read: nothing came for {READ_S:g} s", "is NATS overloaded?"
        ) from error


async def _plan(bus: Bus, view: ClusterView, found: Unreadable, node: str, gone: bool) -> Mend:
    """
    :raises MendError: it cannot be mended so
    """
    now, who = clock.now(), f"mend by {person()}"
    if found.subject == subjects.FENCE:
        return mending.fence(found, await _highest_epoch(bus), who=who)
    if not mending.is_binding(found):
        raise MendError(f"{found.subject} needs no mending: readers have listed the cluster anew, and it expires")
    if not node and not gone:
        raise MendError("say what it was: --node NODE if the pod runs there, --gone if nothing of it runs any more")
    standing = await _standing(bus)
    pod = view.pods_by_uid.get(subjects.parse_pod(found.subject).uid)
    if gone:
        known = await _known(bus, found)
        return mending.gone(found, pod, known.node, standing, who=who, now=now)
    if node not in view.nodes:
        raise MendError(f"there is no node {node}: whatever was bound to it has ended; say --gone")
    return mending.bound(found, pod, node, standing, who=who, now=now)


async def _standing(bus: Bus) -> Standing:
    """
    :raises MendError: the fence cannot be read either
    """
    there = await bus.get(streams.CLUSTER.name, subjects.FENCE)
    if there is None:
        return Standing(Fence(epoch=0, n=0), 0)
    try:
        return Standing(codec.decode(Fence, there.payload), there.sequence)
    except MessageError as error:
        raise MendError(f"{subjects.FENCE} cannot be read either: mend it first") from error


async def _highest_epoch(bus: Bus) -> int:
    """Of all that commit records of the last minutes and the lease name; 0 if there are none."""
    epochs = [record.epoch for record in await _records(bus)]
    lease = await bus.get(streams.LEASES.name, subjects.lease("binder"))
    if lease is not None and not lease.deleted:
        with contextlib.suppress(
            MessageError
        ):  # the fence alone decides: an epoch is for people and for the order of answers
            epochs.append(codec.decode(Lease, lease.payload).epoch)
    return max(epochs, default=0)


async def _records(bus: Bus) -> list[CommitRecord]:
    found: list[CommitRecord] = []
    for delivery in await stream_reading.listing(bus, streams.CLUSTER.name, (subjects.ALL_COMMITS,)):
        try:
            found.append(codec.decode(CommitRecord, delivery.payload))
        except MessageError:
            continue
    return found


async def _known(bus: Bus, found: Unreadable) -> Known:
    place = subjects.parse_pod(found.subject)
    agents: list[PodStatusFact] = []
    for delivery in await stream_reading.listing(bus, streams.CLUSTER.name, (subjects.pod_status_anywhere(*place),)):
        try:
            agents.append(codec.decode(PodStatusFact, delivery.payload))
        except MessageError:
            continue
    said: list[str] = []
    for record in await _records(bus):
        said += [f"commit {record.n} bound it to {one.node}" for one in record.bindings if one.uid == place.uid]
        said += [f"commit {record.n} ended it ({one.reason})" for one in record.releases if one.uid == place.uid]
    return Known(tuple(agents), tuple(said))


async def _told(bus: Bus, view: ClusterView, found: Unreadable) -> list[str]:
    """What is known of it, line by line."""
    lines = [str(found)]
    if found.subject == subjects.FENCE:
        return [*lines, f"  mend it: podyard mend {found.subject}"]
    if not mending.is_binding(found):
        return lines
    place = subjects.parse_pod(found.subject)
    pod = view.pods_by_uid.get(place.uid)
    lives = "its object is there" if pod is not None and not pod.gone else "its object is not there, or cannot be read"
    lines.append(f"  pod {place.namespace}/{place.name}, uid {place.uid}: {lives}")
    known = await _known(bus, found)
    lines += [
        f"  the agent of node {one.node} says: {one.phase}{', ended' if one.ended else ''}" for one in known.agents
    ]
    lines += [f"  {said}" for said in known.commits]
    return [*lines, f"  mend it: podyard mend {found.subject} --node NODE, or --gone"]


async def _agrees() -> bool:
    if not sys.stdin.isatty():
        return False
    return (await anyio.to_thread.run_sync(input, "Do it? [y/N] ")).strip().lower() in ("y", "yes")


async def _write(bus: Bus, planned: Mend) -> None:
    try:
        if len(planned.messages) == 1:
            await bus.publish(planned.messages[0])
        else:
            await bus.publish_batch(planned.messages)
    except (Conflict, BatchUnclear) as error:
        raise CliError(
            "somebody has written placements meanwhile: nothing was written", "look again, and try again"
        ) from error
    except BusError as error:
        advice = 'only the binder\'s identity may write placements: eval "$(podyard security env DIRECTORY binder)"'
        raise CliError(f"{error}; `podyard mend` says whether it was done", advice) from error
