"""The plan of a replay, done on a bus: what is created and deleted, and what is heard of it."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import anyio

from podyard.bench.replay import objects
from podyard.bench.replay.curves import Moment
from podyard.bench.replay.plan import Due, Plan
from podyard.bench.replay.rows import PodRow
from podyard.bench.scheduler_perf.cluster import Cluster
from podyard.bench.scheduler_perf.executing import StalledError
from podyard.bench.scheduler_perf.following import Follower
from podyard.bench.scheduler_perf.moulds import Mould, new_uid
from podyard.bus import Bus, Delivery, Outgoing
from podyard.cluster.keys import ObjectKey
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.placement import CommitRecord
from podyard.runtime import clock
from podyard.shell import stream_reading

LOOK_EVERY_S: Final = 0.2
STALLED_AFTER_S: Final = 60.0
MOST_AT_ONCE: Final = 256
"""Pods that are created or deleted together when several are due."""
NOT_TRIED: Final = "no attempt had ended"
BETWEEN: Final = " + "

Tell: TypeAlias = Callable[[int, int, str], None]


class Seen(NamedTuple):
    """What a replay has shown."""

    started: float
    """Seconds since 1970."""
    seconds: float
    """Until nothing more was to come."""
    moments: list[Moment]
    late: list[float]
    """Of each creation and deletion: seconds behind the plan when it was sent."""
    why_not: dict[str, int]
    """Pods that were never bound, by what rejected them last."""


class Player:
    """One replay.

    :param tell: told how far it is
    """

    def __init__(self, bus: Bus, plan: Plan, tell: Tell) -> None:
        self._bus = bus
        self._plan = plan
        self._tell = tell
        self._follower = Follower(bus, self._committed)
        self._cluster = Cluster(bus, self._follower)
        self._node_of = {row.name: number for number, row in enumerate(plan.nodes)}
        self._pod_of: dict[str, int] = {}
        """By uid."""
        self._moulds: list[Mould] = []
        self._started = self._seconds = 0.0
        self._moments: list[Moment] = []
        self._late: list[float] = []
        self._bound: set[int] = set()
        self._rejected: dict[int, str] = {}
        """By what, the last time."""
        self._parked: set[int] = set()
        """Those whose last attempt has found that no node takes them."""
        self._created = 0
        self._more_created = anyio.Event()

    async def prepare(self) -> None:
        """Everything that stands before the first pod comes.

        :raises CliError: an object is refused
        """
        moulds: dict[tuple[object, ...], Mould] = {}
        for row in self._plan.pods:
            kind = _kind(row)
            if kind not in moulds:
                moulds[kind] = self._cluster.mould(objects.pod(row), objects.NAMESPACE)
            self._moulds.append(moulds[kind])
        await self._cluster.create(self._node_messages())

    def _node_messages(self) -> Iterable[Outgoing]:
        for row in self._plan.nodes:
            yield self._cluster.cast(self._cluster.mould(objects.node(row)), row.name)

    async def play(self) -> Seen:
        """The whole plan, from now on.

        :raises CliError: a write is refused, or what has to come does not
        """
        listed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follower.run)
            tasks.start_soon(self._hear_decisions, listed)
            await listed.wait()
            self._started = clock.now()
            tasks.start_soon(self._look)
            async with anyio.create_task_group() as both:
                both.start_soon(self._create)
                both.start_soon(self._delete)
            await self._settle()
            self._seconds = self._now()
            tasks.cancel_scope.cancel()
        never = [number for number in range(len(self._plan.pods)) if number not in self._bound]
        why_not: dict[str, int] = {}
        for number in never:
            why = self._rejected.get(number, NOT_TRIED)
            why_not[why] = why_not.get(why, 0) + 1
        return Seen(self._started, self._seconds, self._moments, self._late, why_not)

    # what is done

    async def _create(self) -> None:
        creations, at = self._plan.creations, 0
        while at < len(creations):
            batch = await self._due(creations, at)
            at += len(batch)
            await self._cluster.create([self._cast(due.pod) for due in batch])
            self._created = at
            more, self._more_created = self._more_created, anyio.Event()
            more.set()

    def _cast(self, number: int) -> Outgoing:
        uid = new_uid()
        self._pod_of[uid] = number
        self._moments.append(Moment(self._now(), "created", number))
        return self._cluster.cast(self._moulds[number], self._plan.pods[number].name, uid=uid)

    async def _delete(self) -> None:
        deletions, at = self._plan.deletions, 0
        while at < len(deletions):
            batch = await self._due(deletions, at)
            at += len(batch)
            # the numbers of pods are in the order of their creation
            while self._created <= max(due.pod for due in batch):
                await self._more_created.wait()
            await self._cluster.delete([self._key(due.pod) for due in batch], grace_s=0)
            self._moments += (Moment(self._now(), "removed", due.pod) for due in batch)

    def _key(self, number: int) -> ObjectKey:
        return ObjectKey(subjects.PODS, objects.NAMESPACE, self._plan.pods[number].name)

    async def _due(self, planned: Sequence[Due], at: int) -> Sequence[Due]:
        """What is due from a place on, once there is something."""
        await anyio.sleep(max(0.0, planned[at].at - self._now()))
        now = self._now()
        # by the clock of the wait it may be a moment early
        end = max(at + 1, bisect_right(planned, now, lo=at, key=lambda due: due.at))
        batch = planned[at : min(end, at + MOST_AT_ONCE)]
        self._late += (max(0.0, now - due.at) for due in batch)
        return batch

    async def _settle(self) -> None:
        """Until nothing more is to come: who is deleted has given his room back, or, where pods stay, each
        is bound or parked."""
        if self._plan.deletions:
            done = await self._follower.until(lambda: not self._follower.live, STALLED_AFTER_S)
            told = f"{len(self._follower.live)} deleted pods have not given their room back"
        else:
            done = await self._at_rest()
            told = f"{len(self._plan.pods) - len(self._bound | self._parked)} pods are neither bound nor parked"
        if not done:
            raise StalledError(
                f"{told}, and nothing moved for {STALLED_AFTER_S:g} s",
                "see the services' logs: run it again with --data DIR",
            )

    async def _at_rest(self) -> bool:
        known, since = -1, self._now()
        while (settled := len(self._bound | self._parked)) < len(self._plan.pods):
            if settled != known:
                known, since = settled, self._now()
            elif self._now() - since > STALLED_AFTER_S:
                return False
            await anyio.sleep(LOOK_EVERY_S)
        return True

    # what is heard

    def _committed(self, record: CommitRecord, at: float) -> None:
        # what a commit ends makes room for what it binds
        for release in record.releases:
            self._moments.append(Moment(at - self._started, "ended", self._pod_of[release.uid]))
        for one in record.bindings:
            number = self._pod_of[one.uid]
            self._bound.add(number)
            self._moments.append(Moment(at - self._started, "bound", number, self._node_of[one.node]))

    async def _hear_decisions(self, listed: anyio.Event) -> None:
        # records of a pod go with it: they are read as they come
        await stream_reading.read(
            self._bus, streams.DECISIONS.name, (subjects.ALL_DECISIONS,), self._decided, listed=listed
        )

    def _decided(self, delivery: Delivery) -> None:
        if not delivery.payload:
            return
        record = codec.decode(AttemptRecord, delivery.payload)
        number = self._pod_of.get(record.uid)
        if number is not None:
            plugins = BETWEEN.join(sorted({*record.unschedulable_plugins, *record.pending_plugins}))
            self._rejected[number] = plugins or record.outcome
            (self._parked.add if record.outcome == "unschedulable" else self._parked.discard)(number)

    async def _look(self) -> None:
        of = len(self._plan.creations) + len(self._plan.deletions)
        while True:
            waiting = self._created - len(self._bound)
            late = math.ceil(self._late[-1] * 1e3) if self._late else 0
            told = f"{len(self._follower.live):,} bound, {waiting:,} of {self._created:,} never yet; {late} ms late"
            self._tell(len(self._late), of, told)
            await anyio.sleep(LOOK_EVERY_S)

    def _now(self) -> float:
        """Seconds from the beginning."""
        return clock.now() - self._started


def _kind(row: PodRow) -> tuple[object, ...]:
    """What pods of one mould have in common."""
    return (row.cpu_milli, row.memory_mib, row.gpus, row.gpu_milli, row.models, row.qos)
