"""Workloads on a real server: batches, fail-over, lost acknowledgements, replacements, the end of a pod."""

import json
import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import prometheus_client
import pytest
import structlog

from podyard.bus import Ack, Bus, Outgoing, Unclear
from podyard.objects import admission
from podyard.proto import codec, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import BoundPod, CommitRecord, Fence, Release
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans
from podyard.workloads.service import SERVICE, main
from podyard.workloads.settings import WorkloadsSettings
from tests.unit.workloads.stage import budget, replica_set

WITHIN_S = 15.0


class NoObjects:
    """A cluster without anything, for admission."""

    def get(self, resource: str, namespace: str, name: str) -> None:
        return None

    def list(self, resource: str) -> list[Any]:
        return []


class LossyBus:
    """A bus that loses acknowledgements of writes on demand: they are stored, and nobody hears of it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.faults: deque[str] = deque()
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish_batch(self, messages: Sequence[Outgoing], **more: Any) -> Ack:
        self.batches.append(len(messages))
        fault = self.faults.popleft() if self.faults else "ok"
        if fault == "lost":
            raise Unclear("batch", "lost by the test")
        ack = await self._bus.publish_batch(messages, **more)
        if fault == "lost ack":
            raise Unclear("batch", "its answer was lost by the test")
        return ack


class Cluster:
    """Writes objects as the api would, placements as the binder would."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._commits = 0

    async def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        admitted = admission.admit(
            document, NoObjects(), old=None, now=time.time(), new_uid=lambda: str(uuid.uuid4()), random=random.Random()
        )
        await self.put(admission.kind_of(document).resource, admitted)
        return admitted

    async def put(self, resource: str, document: dict[str, Any], trace: str = "") -> None:
        metadata = document["metadata"]
        event = ClusterEvent(
            resource=resource,
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            who="test",
            object=msgspec.Raw(json.dumps(document).encode()),
        )
        subject = subjects.object_(resource, event.namespace, event.name)
        there = await self.bus.get("CLUSTER", subject)
        await self.bus.publish(
            Outgoing(subject, codec.encode(event), expect=there.sequence if there else 0, trace=trace)
        )

    async def event(self, resource: str, name: str) -> ClusterEvent | None:
        found = await self.bus.get("CLUSTER", subjects.object_(resource, "default", name))
        return None if found is None else codec.decode(ClusterEvent, found.payload)

    async def document(self, resource: str, name: str) -> dict[str, Any]:
        event = await self.event(resource, name)
        assert event is not None
        return msgspec.json.decode(event.object)

    async def commit(self, bound: Sequence[BoundPod] = (), releases: Sequence[Release] = ()) -> None:
        self._commits += 1
        n = self._commits
        record = CommitRecord(n=n, epoch=1, batch=f"b{n}", bindings=tuple(bound), releases=tuple(releases))
        await self.bus.publish_batch(
            [
                Outgoing(subjects.commit(n), codec.encode(record), expect=0, ttl_s=600),
                Outgoing(subjects.FENCE, codec.encode(Fence(epoch=1, n=n, batch=f"b{n}"))),
            ]
        )


class PodWatcher:
    """All pods that ever lived, and those that live."""

    def __init__(self) -> None:
        self.ever: set[str] = set()
        self.living: dict[str, ClusterEvent] = {}

    def listing(self, target: int, reason: str) -> None:
        self.living.clear()

    def deliver(self, delivery: Any) -> None:
        event = codec.decode(ClusterEvent, delivery.payload)
        self.ever.add(event.name)
        if delivery.deleted:
            self.living.pop(event.name, None)
        else:
            self.living[event.name] = event

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...

    def active(self) -> list[str]:
        return [
            name
            for name, event in self.living.items()
            if "deletionTimestamp" not in msgspec.json.decode(event.object)["metadata"]
        ]


@pytest.fixture
async def cluster(bus: Bus) -> Cluster:
    return Cluster(bus)


@pytest.fixture
async def watched(bus: Bus, hold: Any) -> PodWatcher:
    from podyard.bus import WatchSpec

    watcher = PodWatcher()
    pods = (subjects.objects("pods"),)
    watch = bus.watch(WatchSpec(stream="CLUSTER", list_subjects=pods, follow_subjects=pods), watcher)

    @asynccontextmanager
    async def watching() -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.run)
            yield
            tasks.cancel_scope.cancel()

    await hold(watching())
    return watcher


@asynccontextmanager
async def running(bus: Any, instance: str = "workloads-a") -> AsyncIterator[anyio.CancelScope]:
    """The service in this process; cancel what is given to end it in order."""
    registry = prometheus_client.CollectorRegistry()
    session = f"{instance}-{time.monotonic_ns()}"
    service = Service(
        SERVICE,
        process=ServiceSettings(instance=instance),
        settings=WorkloadsSettings(),
        bus=bus,
        health=Health(stall_limit_s=10, registry=registry),
        spans=Spans(),
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name="podyard-workloads", identity=session, version="0", description="test"),
        session=session,
    )
    leading = anyio.CancelScope()

    async def lead() -> None:
        with leading:
            await main(service)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        yield leading
        leading.cancel()


async def eventually(what: str, probe: Callable[[], Awaitable[Any] | Any]) -> Any:
    with anyio.move_on_after(WITHIN_S):
        while True:
            found = probe()
            found = await found if isinstance(found, Awaitable) else found
            if found:
                return found
            await anyio.sleep(0.02)
    raise AssertionError(f"not seen within {WITHIN_S:g} s: {what}")


async def test_300_pods_come_in_batches_of_256(cluster: Cluster, watched: PodWatcher, connect_bus):
    lossy = LossyBus(await connect_bus("workloads"))
    await cluster.apply(replica_set(300))
    async with running(lossy):
        await eventually("300 pods", lambda: len(watched.living) == 300)
        await eventually("its status", lambda: has_replicas(cluster, 300))
    assert 256 in lossy.batches
    assert len(watched.ever) == 300


async def has_replicas(cluster: Cluster, count: int) -> bool:
    return (await cluster.document("replicasets", "web")).get("status", {}).get("replicas") == count


@pytest.mark.parametrize("faults", [["lost ack"], ["lost"], ["lost ack", "lost", "lost ack"]])
async def test_lost_acknowledgements_make_no_duplicates(cluster: Cluster, watched: PodWatcher, connect_bus, faults):
    lossy = LossyBus(await connect_bus("workloads"))
    lossy.faults.extend(faults)
    await cluster.apply(replica_set(60))
    async with running(lossy):
        await eventually("its status", lambda: has_replicas(cluster, 60))
    assert len(watched.ever) == 60


async def test_a_standby_takes_over_and_nothing_is_made_twice(cluster: Cluster, watched: PodWatcher, connect_bus):
    await cluster.apply(replica_set(40))
    first, second = await connect_bus("a"), await connect_bus("b")
    async with running(first, "workloads-a") as leader:
        await eventually("40 pods", lambda: len(watched.living) == 40)
        async with running(second, "workloads-b"):
            leader.cancel()
            document = await cluster.document("replicasets", "web")
            document["spec"]["replicas"] = 45
            await cluster.put("replicasets", document)
            await eventually("45 pods", lambda: len(watched.living) == 45)
            await eventually("its status", lambda: has_replicas(cluster, 45))
    assert len(watched.ever) == 45


async def test_an_evicted_pod_is_replaced_with_its_cause_and_goes_when_it_is_released(
    cluster: Cluster, watched: PodWatcher, connect_bus
):
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    await cluster.apply(replica_set(2))
    await cluster.apply(budget(minAvailable=1))
    async with running(await connect_bus("workloads")):
        names = await eventually("two pods", lambda: sorted(watched.living) if len(watched.living) == 2 else [])
        uids = {name: watched.living[name].uid for name in names}
        await cluster.commit([BoundPod(namespace="default", name=name, uid=uids[name], node="n1") for name in names])
        document = await cluster.document("pods", names[0])
        document["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        await cluster.put("pods", document, trace=trace)
        (new,) = await eventually("a replacement", lambda: set(watched.active()) - set(names))
        assert watched.living[new].causes == (trace,)
        assert names[0] in watched.living  # its agent still ends it
        await cluster.commit(
            releases=[Release(namespace="default", name=names[0], uid=uids[names[0]], node="n1", reason="terminated")]
        )
        await eventually("the marker", lambda: names[0] not in watched.living)
        await eventually("the budget's status", lambda: expects(cluster, 2))


async def expects(cluster: Cluster, pods: int) -> bool:
    return (await cluster.document("poddisruptionbudgets", "web")).get("status", {}).get("expectedPods") == pods
