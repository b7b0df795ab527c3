"""What the contract tests of the queue are made of: the service in this process, a cluster to write into, a scheduler to play."""

import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import msgspec
import prometheus_client
import structlog

from podyard.bus import Ack, Bus, Outgoing, RequestTimeout, TemporaryError
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent, ClusterEvent
from podyard.proto.facts import Nomination
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone
from podyard.proto.queue_api import (
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    QueuedPodInfo,
    QueueListReply,
    QueueListRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.proto.requeues import RequeueRecord
from podyard.queue import service as queue_service
from podyard.queue.settings import QueueSettings
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans

WITHIN_S = 10.0
T = TypeVar("T")
DIGESTS = {"default-scheduler": default_profile().digest}


def make_service(
    bus: Bus, settings: QueueSettings, instance: str, spans: Spans | None = None
) -> Service[QueueSettings]:
    """The queue's Service as `podyard run queue` would make it."""
    registry = prometheus_client.CollectorRegistry()
    session = f"{instance}-{time.monotonic_ns()}"
    return Service(
        queue_service.SERVICE,
        process=ServiceSettings(instance=instance),
        settings=settings,
        bus=bus,
        health=Health(stall_limit_s=10, registry=registry),
        spans=spans or Spans(),
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name="podyard-queue", identity=session, version="0", description="test"),
        session=session,
    )


@asynccontextmanager
async def running(service: Service[QueueSettings]) -> AsyncIterator[None]:
    """The service runs inside the block, and has ended in order after it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue_service.main, service)
        yield
        tasks.cancel_scope.cancel()


async def eventually(what: str, probe: Callable[[], Awaitable[T | None]], within_s: float = WITHIN_S) -> T:
    """What `probe` gives as soon as it is true; fails with `what` after a while."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = await probe()
        if found:
            return found
        await anyio.sleep(0.02)
    raise AssertionError(f"not seen within {within_s:g} s: {what}")


def pod_document(name: str, **spec: Any) -> dict[str, Any]:
    """A pod that asks for 100m cpu unless `containers` says otherwise."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": spec.pop("cpu", "100m")}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {}},
        "spec": {"containers": [container], "schedulerName": "default-scheduler", **spec},
    }


def node_document(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    """A node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


class Cluster:
    """Writes objects and placements as api and binder would."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._versions: dict[str, int] = {}
        self._commits = 0

    def message(self, resource: str, document: dict[str, Any], *, delete: bool = False, trace: str = "") -> Outgoing:
        meta = document["metadata"]
        event = ClusterEvent(
            resource=resource,
            name=meta["name"],
            namespace=meta.get("namespace", ""),
            uid=meta["uid"],
            op="delete" if delete else "put",
            who="test",
            why="a test wants it",
            object=msgspec.Raw(json.dumps(document).encode()),
        )
        subject = subjects.object_(resource, event.namespace, event.name)
        return Outgoing(
            subject,
            codec.encode(event),
            expect=self._versions.get(subject, 0),
            ttl_s=600 if delete else None,
            deleted=delete,
            trace=trace,
        )

    async def put(self, resource: str, document: dict[str, Any], *, delete: bool = False, trace: str = "") -> int:
        message = self.message(resource, document, delete=delete, trace=trace)
        ack = await self.bus.publish(message)
        self._versions[message.subject] = ack.sequence
        return ack.sequence

    async def pod(self, name: str, **spec: Any) -> int:
        return await self.put("pods", pod_document(name, **spec))

    async def node(self, name: str, cpu: str = "4", **spec: Any) -> int:
        return await self.put("nodes", node_document(name, cpu, **spec))

    async def pods(self, documents: list[dict[str, Any]]) -> None:
        for answer in await self.bus.publish_many([self.message("pods", one) for one in documents]):
            assert isinstance(answer, Ack), answer

    async def commit(self, bindings: list[BoundPod] = [], releases: list[Release] = []) -> None:  # noqa: B006 - not changed
        self._commits += 1
        n = self._commits
        messages = [
            Outgoing(
                subjects.binding(one.namespace, one.name, one.uid),
                codec.encode(Binding(**{f: getattr(one, f) for f in BoundPod.__struct_fields__})),
                expect=0,
            )
            for one in bindings
        ]
        messages += [
            Outgoing(
                subjects.binding(one.namespace, one.name, one.uid),
                codec.encode(
                    Tombstone(namespace=one.namespace, name=one.name, uid=one.uid, node=one.node, reason=one.reason)
                ),
            )
            for one in releases
        ]
        record = CommitRecord(n=n, epoch=1, batch=f"b{n}", bindings=tuple(bindings), releases=tuple(releases))
        messages.append(Outgoing(subjects.commit(n), codec.encode(record), ttl_s=600))
        messages.append(Outgoing(subjects.FENCE, codec.encode(Fence(epoch=1, n=n, batch=f"b{n}"))))
        await self.bus.publish_batch(messages)

    async def bind(self, pod: PoppedPod, node: str) -> None:
        await self.commit(
            [BoundPod(namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, attempt=pod.attempt)]
        )

    async def release(self, name: str, node: str) -> None:
        await self.commit(
            releases=[Release(namespace="default", name=name, uid=f"uid-{name}", node=node, reason="terminated")]
        )

    async def bare(self, resource: str, *actions: str, id: str, old: Any = None, new: Any = None) -> None:  # noqa: A002
        event = BareEvent(
            id=id,
            resource=resource,
            actions=actions,
            who="test",
            old=msgspec.Raw(json.dumps(old).encode()),
            new=msgspec.Raw(json.dumps(new).encode()),
        )
        self.bus.send(subjects.bare_event(resource, actions[0]), codec.encode(event))


class Scheduler:
    """Plays a scheduler session."""

    def __init__(self, bus: Bus, session: str = "s1") -> None:
        self.bus = bus
        self.session = session
        self._pops = itertools.count(1)

    async def pop(
        self,
        *,
        pop_id: str = "",
        wait_s: float = 5.0,
        max_pods: int = 256,
        digests: dict[str, str] | None = None,
    ) -> PopReply:
        request = PopRequest(
            session=self.session,
            pop_id=pop_id or f"{self.session}-{next(self._pops)}",
            digests=DIGESTS if digests is None else digests,
            max_pods=max_pods,
            wait_s=wait_s,
        )
        answer = await self.bus.request(subjects.queue_verb("pop"), codec.encode(request), timeout_s=wait_s + 5)
        return codec.decode(PopReply, answer.payload)

    async def led(self) -> QueueListReply:
        """Wait until a leader answers."""

        async def probe() -> QueueListReply | None:
            try:
                return await self.list()
            except (TemporaryError, RequestTimeout):
                return None

        return await eventually("a leader of the queue", probe)

    async def take(self, *, wait_s: float = 5.0) -> PoppedPod:
        """One pod."""
        reply = await self.pop(max_pods=1, wait_s=wait_s)
        assert reply.pods, f"no pod within {wait_s} s"
        return reply.pods[0]

    async def ask(self, verb: str, request: msgspec.Struct) -> QueueReply:
        answer = await self.bus.request(subjects.queue_verb(verb), codec.encode(request))
        return codec.decode(QueueReply, answer.payload)

    async def done(self, pod: PoppedPod, outcome: str, **more: Any) -> QueueReply:
        result = AttemptResult(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            attempt=pod.attempt,
            outcome=outcome,  # pyright: ignore[reportArgumentType]
            trace=pod.trace,
            **more,
        )
        return await self.ask("done", DoneRequest(session=self.session, results=(result,)))

    async def reject(self, pod: PoppedPod, *plugins: str, **more: Any) -> QueueReply:
        return await self.done(pod, "unschedulable", unschedulable_plugins=plugins, **more)

    async def heartbeat(self, *attempts: str, last_pop: str = "") -> QueueReply:
        return await self.ask("heartbeat", SessionHeartbeat(session=self.session, attempts=attempts, last_pop=last_pop))

    async def list(self, **filters: Any) -> QueueListReply:
        answer = await self.bus.request(subjects.queue_verb("list"), codec.encode(QueueListRequest(**filters)))
        return codec.decode(QueueListReply, answer.payload)

    async def where(self, name: str) -> QueuedPodInfo | None:
        reply = await self.list(name=name)
        return reply.pods[0] if reply.pods else None

    async def sees(self, name: str, pool: str, within_s: float = WITHIN_S) -> QueuedPodInfo:
        """Wait until the pod is in that pool."""

        async def probe() -> QueuedPodInfo | None:
            info = await self.where(name)
            return info if info is not None and info.pool == pool else None

        return await eventually(f"{name} in {pool}", probe, within_s)

    async def misses(self, name: str) -> None:
        """Wait until the pod is in no pool."""

        async def probe() -> bool:
            return await self.where(name) is None

        await eventually(f"{name} has left the queue", probe)


async def requeue_record(bus: Bus, event_id: str) -> RequeueRecord:
    """The record of an event, once it is stored."""

    async def probe() -> RequeueRecord | None:
        found = await bus.get("REQUEUES", subjects.requeue(event_id))
        return None if found is None else codec.decode(RequeueRecord, found.payload)

    return await eventually(f"the record of event {event_id}", probe)


async def nomination(bus: Bus, name: str) -> Nomination | None:
    """The nomination fact of a pod; None if there is none or it has a marker."""
    found = await bus.get("CLUSTER", subjects.nomination("default", name, f"uid-{name}"))
    return None if found is None or found.deleted else codec.decode(Nomination, found.payload)


async def last_attempt(bus: Bus, name: str) -> AttemptRecord | None:
    """The last record of a pod in DECISIONS."""
    found = await bus.get("DECISIONS", subjects.decisions("default", name, f"uid-{name}"))
    return None if found is None else codec.decode(AttemptRecord, found.payload)
