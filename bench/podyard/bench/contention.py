"""`bench contention`: several schedulers fill a cluster until nothing fits; one of them, and the leading
binder, are killed midway.

All pods are there from the beginning, so that the schedulers are never idle: they decide on views of the
cluster that the others' decisions have overtaken, and the fuller the nodes are, the more of that the binder
refuses.
"""

import os
import time
from collections.abc import Callable
from typing import Final

import anyio
import msgspec

from podyard.bench import end_state, load, meters, mixed
from podyard.bench.commits import CommitCounter
from podyard.bench.end_state import EndState
from podyard.bench.tally import Tally
from podyard.bus import Bus
from podyard.cli.lab import plan
from podyard.cli.lab.child import Child
from podyard.cli.lab.lab import Lab
from podyard.cli.lab.plan import Planned
from podyard.cli.top import looking
from podyard.cli.top.figures import CONFLICTS, DECISIONS, RETRIES
from podyard.framework.profile import Profile
from podyard.proto import codec, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.runtime import clock
from podyard.shell.snapshot import snapshot

LOOK_EVERY_S: Final = 0.25
STALLED_AFTER_S: Final = 120.0
"""Nothing bound and nobody parked for so long: the run has failed, and says how far it came. A standby takes
over after 10 s."""
KILL_SCHEDULER_AT: Final = 0.4
"""Bound pods, of all, when a scheduler is killed; it is started again."""
KILL_BINDER_AT: Final = 0.6
"""Bound pods, of all, when the binder that leads is killed, for good: its standby takes over when the lease
has run out."""
PARKED: Final = "unschedulable"
MOST_LISTED: Final = 10_000
RESULTS: Final = "podyard_scheduler_results_total"


def services(schedulers: int, *, kills: bool) -> tuple[Planned, ...]:
    """What runs: a binder that is killed needs a standby."""
    return plan.parse(f"api,queue,scheduler={schedulers},binder={2 if kills else 1}")


class UnsettledError(Exception):
    """The run did not come to rest."""


class SchedulerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler, over all its starts."""

    instance: str
    starts: int
    decisions: int
    share: float
    """Of all schedulers' decisions, from 0 to 1."""
    conflicts: int
    conflict_rate: float
    """Of its decisions, from 0 to 1."""
    conflicts_by_cause: dict[str, int]
    retries: int
    """Decisions that were made again after a conflict, at the binder's position."""
    given_up: int
    """Attempts that ended with a conflict, and went to error backoff."""


class ContentionResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run."""

    nodes: int
    pods: int
    pods_apart: int
    """Those with required anti-affinity to their own app's."""
    seconds: float
    """From the first create to the last binding."""
    pods_per_second_average: float
    seconds_to_rest: float
    """From the first create until all pods were bound or parked."""
    cpu_us_per_pod: dict[str, float]
    """Of each process over all its starts, the NATS server and the benchmark among them, by all pods: from
    the first create until all pods were bound or parked. Of one that is killed: up to the look before.
    """
    decisions: int
    conflicts: int
    conflict_rate: float
    """Of decisions, from 0 to 1."""
    conflicts_by_cause: dict[str, int]
    retries: int
    schedulers: tuple[SchedulerFigures, ...]
    killed: tuple[str, ...]
    unexplained: tuple[str, ...]
    """Unbound pods that nobody has parked with a reason."""
    end: EndState


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    bound: int
    parked: int
    pods: int
    decisions: int
    conflicts: int
    killed: tuple[str, ...]


Tell = Callable[[Progress], None]


class Contention:
    """One run over a lab that is ready.

    :param kills: whether a scheduler and the leading binder are killed midway
    :param tell: called a few times a second
    """

    def __init__(self, lab: Lab, bus: Bus, profile: Profile, given: mixed.Load, *, kills: bool, tell: Tell) -> None:
        self._lab = lab
        self._bus = bus
        self._profile = profile
        self._load = given
        self._tell = tell
        self._tally = Tally(child for child in lab.children if child.service in ("scheduler", "binder"))
        self._schedulers = [child for child in lab.children if child.service == "scheduler"]
        self._counter = CommitCounter(bus, mixed.NAMESPACE)
        self._kills = [(KILL_SCHEDULER_AT, self._a_scheduler), (KILL_BINDER_AT, self._leading_binder)] if kills else []
        self._killed: list[str] = []
        self._created = False
        self._cpu = meters.CpuOverStarts()

    async def run(self) -> ContentionResult:
        """
        :raises LoadError: if the api refuses nodes or pods
        :raises UnsettledError: if pods are neither bound nor parked in the end
        """
        await load.create(self._bus, load.requests(self._load.nodes))
        payloads = load.requests(self._load.pods)
        self._cpu.begin(self._pids())
        started = clock.now()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._counter.run)
            tasks.start_soon(self._create, payloads)
            await self._until_at_rest()
            tasks.cancel_scope.cancel()
        rested = clock.now()
        await self._tally.take()
        return await self._result(self._counter.last_commit_at - started, rested - started)

    async def _create(self, payloads: list[bytes]) -> None:
        await load.create(self._bus, payloads)
        self._created = True

    # ---- the middle ----------------------------------------------------------------------------------------

    async def _until_at_rest(self) -> None:
        """All pods are bound or parked, at two looks in a row: a wake-up may be under way at one."""
        rests, last, since = 0, (-1, -1), time.monotonic()
        while rests < 2:
            await anyio.sleep(LOOK_EVERY_S)
            await self._tally.take()
            self._cpu.take(self._pids())
            await self._kill_when_due()
            queue = await looking.ask_queue(self._bus)
            parked = 0 if queue is None else queue.counts.get(PARKED, 0)
            self._show(parked)
            settled = self._created and self._counter.bound + parked == len(self._load.pods)
            rests = rests + 1 if settled else 0
            if last != (self._counter.bound, parked):
                last, since = (self._counter.bound, parked), time.monotonic()
            elif not settled and time.monotonic() - since > STALLED_AFTER_S:
                held = "no queue answers" if queue is None else f"the queue holds {queue.counts}"
                raise UnsettledError(
                    f"{self._counter.bound} of {len(self._load.pods)} pods are bound, nothing moved for {STALLED_AFTER_S:.0f} s; {held}"
                )

    def _pids(self) -> dict[str, int]:
        """Processes that run now, by name."""
        running = {child.instance: child.pid for child in self._lab.children if child.pid}
        return running | {"nats-server": self._lab.server.pid, "client": os.getpid()}

    async def _kill_when_due(self) -> None:
        if self._kills and self._counter.bound >= self._kills[0][0] * len(self._load.pods):
            _, kill = self._kills.pop(0)
            self._killed.append(kill())

    def _a_scheduler(self) -> str:
        victim = self._schedulers[0]
        victim.kill()
        return victim.instance

    def _leading_binder(self) -> str:
        victim = self._leader()
        victim.kill(for_good=True)
        return victim.instance

    def _leader(self) -> Child:
        binders = [child for child in self._lab.children if child.service == "binder"]
        return max(binders, key=lambda child: self._tally.total(child.instance, "podyard_binder_leading"))

    def _show(self, parked: int) -> None:
        self._tell(
            Progress(
                bound=self._counter.bound,
                parked=parked,
                pods=len(self._load.pods),
                decisions=self._sum(DECISIONS),
                conflicts=self._sum(CONFLICTS),
                killed=tuple(self._killed),
            )
        )

    def _sum(self, name: str) -> int:
        return sum(self._tally.total(child.instance, name) for child in self._schedulers)

    # ---- the end -------------------------------------------------------------------------------------------

    async def _result(self, to_bind: float, to_rest: float) -> ContentionResult:
        end = end_state.judge(await snapshot(self._bus), self._profile)
        decisions, conflicts = self._sum(DECISIONS), self._sum(CONFLICTS)
        schedulers = tuple(self._figures(child, decisions) for child in self._schedulers)
        causes = sorted({cause for one in schedulers for cause in one.conflicts_by_cause})
        return ContentionResult(
            nodes=len(self._load.nodes),
            pods=len(self._load.pods),
            pods_apart=self._load.apart,
            seconds=round(to_bind, 3),
            pods_per_second_average=round(end.bound / to_bind, 1),
            seconds_to_rest=round(to_rest, 3),
            cpu_us_per_pod={
                name: round(seconds / len(self._load.pods) * 1e6, 1) for name, seconds in self._cpu.used().items()
            },
            decisions=decisions,
            conflicts=conflicts,
            conflict_rate=conflicts / max(1, decisions),
            conflicts_by_cause={
                cause: sum(one.conflicts_by_cause.get(cause, 0) for one in schedulers) for cause in causes
            },
            retries=sum(one.retries for one in schedulers),
            schedulers=schedulers,
            killed=tuple(self._killed),
            unexplained=await self._unexplained(),
            end=end,
        )

    def _figures(self, child: Child, all_decisions: int) -> SchedulerFigures:
        name = child.instance
        decisions, conflicts = self._tally.total(name, DECISIONS), self._tally.total(name, CONFLICTS)
        return SchedulerFigures(
            instance=name,
            starts=child.starts,
            decisions=decisions,
            share=decisions / max(1, all_decisions),
            conflicts=conflicts,
            conflict_rate=conflicts / max(1, decisions),
            conflicts_by_cause=self._tally.by(name, CONFLICTS, "cause"),
            retries=self._tally.total(name, RETRIES),
            given_up=self._tally.total(name, RESULTS, outcome="bindError"),
        )

    async def _unexplained(self) -> tuple[str, ...]:
        """Pods of the queue that are not parked, or nobody knows why."""
        request = codec.encode(QueueListRequest(limit=MOST_LISTED))
        reply = codec.decode(QueueListReply, (await self._bus.request(subjects.queue_verb("list"), request)).payload)
        return tuple(f"{pod.name} in {pod.pool}" for pod in reply.pods if pod.pool != PARKED or not pod.message)
