"""`bench events`, second part: how long pops take while a thousand nodes a second change, through a queue
service on a NATS server.

This process plays the scheduler: it pops the pods and parks them as rejected. Then it pops others, one every
few milliseconds whether the last one was answered or not, first in peace and then while nodes grow a little,
which concerns nobody's pods but has to be judged.
"""

import gc
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles
from typing import Any, Final

import anyio
import msgspec

from podyard.bench import event_kinds, load, meters, parked
from podyard.bench.parked import Document
from podyard.bench.versions import version
from podyard.bus import Ack, Bus, Outgoing
from podyard.framework.profile import Profile
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.queue_api import (
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    QueueListReply,
    QueueListRequest,
    QueueReply,
)

SESSION: Final = "bench"
NODES: Final = 500
POPS_PER_S: Final = 100
IN_PEACE_S: Final = 5
IN_STORM_S: Final = 10
TICK_S: Final = 0.01
REQUEST_TIMEOUT_S: Final = 30.0
PARKED_WITHIN_S: Final = 300.0
CAUGHT_UP_WITHIN_S: Final = 60.0
PROBE_REJECTOR: Final = "NodeName"
"""Of the pods that are popped to measure: no change of a node that is there helps them."""


class StormError(Exception):
    """The storm did not go as it must for the figures to mean anything."""


class StormResult(msgspec.Struct, frozen=True, kw_only=True):
    """Round trips of pops. Milliseconds."""

    parked: int
    updates_per_s: float
    """Node updates that were stored."""
    idle_pop_p50_ms: float
    idle_pop_p99_ms: float
    storm_pop_p50_ms: float
    storm_pop_p99_ms: float
    storm_pop_max_ms: float
    behind_ms: float
    """How much longer the queue took to read all updates than the server to store them."""
    moved: int
    """Parked pods that the storm moved."""
    cpu_cores: dict[str, float]
    """CPU seconds a second of the storm, by process."""


class Storm:
    """One run over running services.

    :param pids: processes to account for, by name
    """

    def __init__(self, bus: Bus, profile: Profile, pids: Mapping[str, int]) -> None:
        self._bus = bus
        self._pids = pids
        self._digests = {profile.name: profile.digest}
        self._pops = 0
        self._rejectors: dict[str, tuple[str, ...]] = {}

    async def run(self, pods: int, updates_per_s: int) -> StormResult:
        """Park `pods`, then measure.

        :raises StormError: if the pods cannot be parked, updates are refused, or the queue does not catch up
        """
        await load.create(self._bus, load.requests(map(_unnamed, map(event_kinds.node, range(NODES)))))
        await self._park(pods)
        probes = POPS_PER_S * (IN_PEACE_S + IN_STORM_S)
        await load.create(self._bus, load.requests(map(_probe, range(probes))))
        await self._until_listed("activeQ", probes)
        gc.collect()
        gc.freeze()  # a full collection in this process would count as a slow pop
        in_peace = await self._pop_for(IN_PEACE_S)
        updates = Updates(self._bus, await self._node_sequences())
        before = meters.cpu_seconds(self._pids)
        begun = time.perf_counter()
        in_storm: list[float] = []

        async def pop() -> None:
            in_storm.extend(await self._pop_for(IN_STORM_S))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pop)
            await updates.send(updates_per_s, IN_STORM_S)
        gc.unfreeze()
        cpu = meters.difference(meters.cpu_seconds(self._pids), before)
        taken = time.perf_counter() - begun
        behind = await self._behind(updates.last_sequence, updates.stored_at)
        counts = (await self._list()).counts
        return StormResult(
            parked=pods,
            updates_per_s=round(updates.stored / (updates.stored_at - begun), 1),
            idle_pop_p50_ms=_percentile(in_peace, 50),
            idle_pop_p99_ms=_percentile(in_peace, 99),
            storm_pop_p50_ms=_percentile(in_storm, 50),
            storm_pop_p99_ms=_percentile(in_storm, 99),
            storm_pop_max_ms=round(max(in_storm) * 1e3, 1),
            behind_ms=round(behind * 1e3, 1),
            moved=pods + probes - counts.get("unschedulable", 0),
            cpu_cores={name: round(seconds / taken, 2) for name, seconds in cpu.items()},
        )

    async def _park(self, pods: int) -> None:
        documents: list[Document] = []
        for number in range(pods):
            one = parked.plain(number)
            self._rejectors[one.document["metadata"]["name"]] = one.rejectors
            documents.append(_unnamed(one.document))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load.create, self._bus, load.requests(documents))
            done = 0
            with anyio.move_on_after(PARKED_WITHIN_S) as limit:
                while done < pods:
                    popped = await self._pop(256)
                    done += len(popped)
                    await self._reject(popped)
            if limit.cancelled_caught:
                raise StormError(f"{done} of {pods} pods were popped in {PARKED_WITHIN_S:.0f} s")
        await self._until_listed("unschedulable", pods)

    async def _pop(self, most: int) -> tuple[PoppedPod, ...]:
        self._pops += 1
        request = PopRequest(session=SESSION, pop_id=str(self._pops), digests=self._digests, max_pods=most)
        reply = codec.decode(PopReply, await self._request("pop", codec.encode(request)))
        if reply.refused:
            raise StormError(f"the queue refused a pop: {reply.refused}")
        return reply.pods

    async def _reject(self, pods: Sequence[PoppedPod]) -> None:
        if not pods:
            return
        results = tuple(parked.rejected(pod, self._rejectors.get(pod.name, (PROBE_REJECTOR,))) for pod in pods)
        payload = await self._request("done", codec.encode(DoneRequest(session=SESSION, results=results)))
        reply = codec.decode(QueueReply, payload)
        if reply.refused or reply.unknown:
            raise StormError(f"the queue refused results: {reply.refused or reply.unknown}")

    async def _list(self) -> QueueListReply:
        return codec.decode(QueueListReply, await self._request("list", codec.encode(QueueListRequest(limit=0))))

    async def _request(self, verb: str, payload: bytes) -> bytes:
        return (await self._bus.request(subjects.queue_verb(verb), payload, timeout_s=REQUEST_TIMEOUT_S)).payload

    async def _until_listed(self, pool: str, pods: int) -> None:
        """Wait until a pool has so many pods."""
        found = 0
        with anyio.move_on_after(PARKED_WITHIN_S):
            while (found := (await self._list()).counts.get(pool, 0)) < pods:  # noqa: ASYNC110  # the queue tells it only when asked
                await anyio.sleep(TICK_S * 10)
            return
        raise StormError(f"{found} pods are in {pool} after {PARKED_WITHIN_S:.0f} s, not {pods}")

    async def _pop_for(self, seconds: int) -> list[float]:
        """Seconds that each pop took, from when it was due: one that waits behind another has waited."""
        times: list[float] = []

        async def one(due: float) -> None:
            pods = await self._pop(1)
            times.append(time.perf_counter() - due)
            await self._reject(pods)

        begun = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(seconds * POPS_PER_S):
                due = begun + number / POPS_PER_S
                await anyio.sleep(max(0.0, due - time.perf_counter()))
                tasks.start_soon(one, due)
        return times

    async def _node_sequences(self) -> list["StoredNode"]:
        """The nodes as they are stored, whose updates have to name the version that they follow."""
        found: list[StoredNode] = []
        for number in range(NODES):
            document = event_kinds.node(number)
            subject = subjects.object_(subjects.NODES, "", document["metadata"]["name"])
            delivery = await self._bus.get(streams.CLUSTER.name, subject)
            if delivery is None:
                raise StormError(f"{subject} is not stored")
            stored = codec.decode(ClusterEvent, delivery.payload)
            found.append(StoredNode(subject, number, stored.uid, delivery.sequence))
        return found

    async def _behind(self, sequence: int, stored_at: float) -> float:
        """Seconds after `stored_at` (perf_counter) when the queue has read that far."""
        with anyio.move_on_after(CAUGHT_UP_WITHIN_S):
            while (await self._list()).position < sequence:  # noqa: ASYNC110  # the queue tells it only when asked
                await anyio.sleep(TICK_S)
            return max(0.0, time.perf_counter() - stored_at)
        raise StormError(f"the queue has not read all updates within {CAUGHT_UP_WITHIN_S:.0f} s")


class StoredNode:
    """A node, and the sequence of its last version."""

    __slots__ = ("grown", "number", "sequence", "subject", "uid")

    def __init__(self, subject: str, number: int, uid: str, sequence: int) -> None:
        self.subject = subject
        self.number = number
        self.uid = uid
        self.sequence = sequence
        self.grown = 0

    def update(self) -> Outgoing:
        """One memory unit more than before: too little for all that want room."""
        self.grown += 1
        document: dict[str, Any] = event_kinds.node(self.number)
        document["metadata"]["uid"] = self.uid
        document["status"]["allocatable"] = dict(document["status"]["allocatable"], memory=f"{65_536 + self.grown}Mi")
        return version(subjects.NODES, document, self.sequence)


class Updates:
    """Publishes updates of nodes at a pace."""

    def __init__(self, bus: Bus, nodes: Sequence[StoredNode]) -> None:
        self._bus = bus
        self._nodes = nodes
        self._next = 0
        self.stored = 0
        self.last_sequence = 0
        self.stored_at = 0.0
        """When the last one was, perf_counter."""

    async def send(self, per_second: int, seconds: int) -> None:
        """So many a second.

        :raises StormError: if the server refuses one
        """
        begun = time.perf_counter()
        wanted = per_second * seconds
        while self.stored < wanted:
            due = min(wanted, int((time.perf_counter() - begun) * per_second) + 1) - self.stored
            if due > 0:
                await self._publish(min(due, len(self._nodes)))
            else:
                await anyio.sleep(TICK_S)

    async def _publish(self, count: int) -> None:
        chosen = [self._nodes[(self._next + number) % len(self._nodes)] for number in range(count)]
        self._next += count
        for one, answer in zip(chosen, await self._bus.publish_many([one.update() for one in chosen]), strict=True):
            if not isinstance(answer, Ack):
                raise StormError(f"an update of {one.subject} was refused: {answer}")
            one.sequence = answer.sequence
            self.last_sequence = max(self.last_sequence, answer.sequence)
        self.stored += count
        self.stored_at = time.perf_counter()


def _unnamed(document: Document) -> Document:
    """Without its uid, which the api gives."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "uid"}
    return {**document, "metadata": metadata}


def _probe(number: int) -> Document:
    return load.pod(number, parked.NAMESPACE)


def _percentile(seconds: Iterable[float], percent: int) -> float:
    return round(quantiles(seconds, n=100)[percent - 1] * 1e3, 1)
