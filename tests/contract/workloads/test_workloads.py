"""Workloads: batches, fail-over, lost acknowledgements, replacements, the end of a pod."""

import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from podyard.bus import Ack, Bus, Outgoing, Unclear, WatchSpec
from podyard.objects import admission
from podyard.proto import codec, subjects
from podyard.proto.events import ClusterEvent
from podyard.workloads.service import SERVICE
from tests.support import cluster
from tests.support.cluster import bound, released
from tests.support.objects import Document
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.unit.workloads.stage import budget, replica_set


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


class Cluster(cluster.Cluster):
    """One into which manifests of people come as well."""

    async def apply(self, document: Document) -> None:
        """A manifest, completed as the api does it."""
        admitted = admission.admit(
            document, NoObjects(), old=None, now=time.time(), new_uid=lambda: str(uuid.uuid4()), random=random.Random()
        )
        await self.put(admission.kind_of(document).resource, admitted)


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


async def test_300_pods_come_in_batches_of_256(cluster: Cluster, watched: PodWatcher, connect_bus):
    lossy = LossyBus(await connect_bus("workloads"))
    await cluster.apply(replica_set(300))
    async with running(make_service(SERVICE, lossy)):
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
    async with running(make_service(SERVICE, lossy)):
        await eventually("its status", lambda: has_replicas(cluster, 60))
    assert len(watched.ever) == 60


async def test_a_standby_takes_over_and_nothing_is_made_twice(cluster: Cluster, watched: PodWatcher, connect_bus):
    await cluster.apply(replica_set(40))
    first, second = await connect_bus("a"), await connect_bus("b")
    async with running(make_service(SERVICE, first, instance="workloads-a")) as leader:
        await eventually("40 pods", lambda: len(watched.living) == 40)
        async with running(make_service(SERVICE, second, instance="workloads-b")):
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
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        names = await eventually("two pods", lambda: sorted(watched.living) if len(watched.living) == 2 else [])
        uids = {name: watched.living[name].uid for name in names}
        await cluster.commit([bound(name, uid=uids[name]) for name in names])
        document = await cluster.document("pods", names[0])
        document["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        await cluster.put("pods", document, trace=trace)
        (new,) = await eventually("a replacement", lambda: set(watched.active()) - set(names))
        assert watched.living[new].causes == (trace,)
        assert names[0] in watched.living  # its agent still ends it
        await cluster.commit(releases=[released(names[0], uid=uids[names[0]])])
        await eventually("the marker", lambda: names[0] not in watched.living)
        await eventually("the budget's status", lambda: expects(cluster, 2))


async def expects(cluster: Cluster, pods: int) -> bool:
    return (await cluster.document("poddisruptionbudgets", "web")).get("status", {}).get("expectedPods") == pods
