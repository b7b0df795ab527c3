"""`bench basic`: plain pods on plain nodes, from the first create to the last durable commit."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec

from podyard.bench import load, meters
from podyard.bench.commits import CommitCounter
from podyard.bus import Bus
from podyard.proto import streams
from podyard.runtime import clock

NAMESPACE: Final = "default"
WARM_UP_NAMESPACE: Final = "kube-system"
WARM_UP_PODS: Final = 64
WARM_UP_WITHIN_S: Final = 120.0
STALLED_AFTER_S: Final = 60.0
"""No pod bound for so long: the run has failed, and says how far it came."""


class StalledError(Exception):
    """Binding stopped before all pods were bound."""

    def __init__(self, bound: int, wanted: int) -> None:
        self.bound = bound
        self.wanted = wanted
        super().__init__(f"{bound} of {wanted} pods were bound, then none for {STALLED_AFTER_S:.0f} s")


class BasicResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run. CPU seconds and messages are of the measured part only."""

    nodes: int
    pods: int
    pods_bound: int
    seconds: float
    pods_per_second_average: float
    seconds_to_create: float
    commits: int
    pods_per_commit: float
    cpu_seconds: dict[str, float]
    cpu_us_per_pod: dict[str, float]
    memory_mib: dict[str, float]
    messages_stored_per_pod: float
    messages_to_server_per_pod: float
    messages_from_server_per_pod: float
    bound_in_second: tuple[int, ...]


class Readings(msgspec.Struct, frozen=True):
    """All meters at one moment."""

    cpu: dict[str, float]
    server: meters.ServerCounts
    stored: int


async def run(bus: Bus, pids: Mapping[str, int], monitor_port: int, nodes: int, pods: int) -> BasicResult:
    """One run over running services.

    :param pids: processes to account for, by name, the NATS server and the benchmark itself among them
    :raises StalledError: if not all pods get bound
    """
    async with _counter(bus, WARM_UP_NAMESPACE) as warm_up:
        await load.create(bus, load.requests(load.node(number) for number in range(nodes)))
        await load.create(bus, load.requests(load.pod(number, WARM_UP_NAMESPACE) for number in range(WARM_UP_PODS)))
        with anyio.fail_after(WARM_UP_WITHIN_S):
            await warm_up.until(WARM_UP_PODS)
    payloads = load.requests(load.pod(number, NAMESPACE) for number in range(pods))
    async with _counter(bus, NAMESPACE) as counter:
        before = await _read(bus, pids, monitor_port)
        created_at: list[float] = []
        started = clock.now()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_create, bus, payloads, created_at)
            await _all_bound(counter, pods)
        after = await _read(bus, pids, monitor_port)
        seconds = counter.last_commit_at - started, created_at[0] - started
        return _result(nodes, pods, counter, seconds, before, after, meters.memory_mib(pids))


async def _create(bus: Bus, payloads: list[bytes], created_at: list[float]) -> None:
    await load.create(bus, payloads)
    created_at.append(clock.now())


@asynccontextmanager
async def _counter(bus: Bus, namespace: str) -> AsyncGenerator[CommitCounter]:
    counter = CommitCounter(bus, namespace)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counter.run)
        yield counter
        tasks.cancel_scope.cancel()


async def _all_bound(counter: CommitCounter, wanted: int) -> None:
    while counter.bound < wanted:
        before = counter.bound
        with anyio.move_on_after(STALLED_AFTER_S):
            await counter.until(min(wanted, before + streams.MAX_BATCH * 4))
        if counter.bound == before:
            raise StalledError(before, wanted)


async def _read(bus: Bus, pids: Mapping[str, int], monitor_port: int) -> Readings:
    counts = await anyio.to_thread.run_sync(meters.server_counts, monitor_port)
    stored = await bus.last_sequence(streams.CLUSTER.name)
    return Readings(meters.cpu_seconds(pids), counts, stored)


def _result(
    nodes: int,
    pods: int,
    counter: CommitCounter,
    seconds: tuple[float, float],
    before: Readings,
    after: Readings,
    memory: dict[str, float],
) -> BasicResult:
    cpu = meters.difference(after.cpu, before.cpu)
    to_bind, to_create = seconds
    first = min(counter.per_second)
    return BasicResult(
        nodes=nodes,
        pods=pods,
        pods_bound=counter.bound,
        seconds=round(to_bind, 3),
        pods_per_second_average=round(counter.bound / to_bind, 1),
        seconds_to_create=round(to_create, 3),
        commits=counter.commits,
        pods_per_commit=round(counter.bound / counter.commits, 1),
        cpu_seconds={name: round(used, 2) for name, used in cpu.items()},
        cpu_us_per_pod={name: round(used / counter.bound * 1e6, 1) for name, used in cpu.items()},
        memory_mib={name: round(size, 1) for name, size in memory.items()},
        messages_stored_per_pod=round((after.stored - before.stored) / counter.bound, 3),
        messages_to_server_per_pod=round((after.server.in_msgs - before.server.in_msgs) / counter.bound, 3),
        messages_from_server_per_pod=round((after.server.out_msgs - before.server.out_msgs) / counter.bound, 3),
        bound_in_second=tuple(counter.per_second.get(first + i, 0) for i in range(max(counter.per_second) - first + 1)),
    )
