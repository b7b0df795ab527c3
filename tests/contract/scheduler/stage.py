"""A scheduler service in this process, with a queue, a binder and a cluster that the test plays."""

import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import msgspec
import prometheus_client
import structlog

from podyard.bus import Ack, Bus, Outgoing, Request, Subscription
from podyard.objects import decoding, pod_requests
from podyard.objects.core import Pod
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone, Usage
from podyard.proto.queue_api import (
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.scheduler import service as scheduler_service
from podyard.scheduler.settings import SchedulerSettings
from podyard.telemetry.tracing import SpanRecord, Spans

WITHIN_S = 15.0
T = TypeVar("T")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"


class SpanList:
    """A span sink that keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def accept(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def sampled(self, trace_id: int, name: str) -> bool:
        del trace_id, name
        return False


class Cluster:
    """Writes nodes, pods and placements."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.bound: dict[str, BoundPod] = {}
        self.usage: dict[str, Usage] = {}
        """By uid: what pods take of a node, as their bindings tell."""
        self._commits = 0

    async def put(self, resource: str, *documents: dict[str, Any]) -> None:
        if resource == subjects.PODS:
            for document in documents:
                made: Pod = decoding.decode(resource, msgspec.json.encode(document))
                self.usage[made.metadata.uid] = pod_requests.usage(made)
        answers = await self.bus.publish_many([_event(resource, document) for document in documents])
        assert all(isinstance(answer, Ack) for answer in answers), answers

    async def nodes(self, number: int, cpu: str = "4", **spec: Any) -> None:
        await self.put("nodes", *[node(f"n{at:04}", cpu, **spec) for at in range(number)])

    async def commit(self, bindings: list[BoundPod], releases: tuple[Release, ...] = ()) -> int:
        self._commits += 1
        n = self._commits
        messages = [
            Outgoing(
                subjects.binding(one.namespace, one.name, one.uid),
                codec.encode(Binding(**{field: getattr(one, field) for field in BoundPod.__struct_fields__})),
                expect=0,
            )
            for one in bindings
        ]
        for one in releases:
            end = Tombstone(namespace=one.namespace, name=one.name, uid=one.uid, node=one.node, reason=one.reason)
            messages.append(Outgoing(subjects.binding(one.namespace, one.name, one.uid), codec.encode(end)))
        record = CommitRecord(n=n, epoch=1, batch=f"b{n}", bindings=tuple(bindings), releases=releases)
        messages.append(Outgoing(subjects.commit(n), codec.encode(record), ttl_s=600))
        messages.append(Outgoing(subjects.FENCE, codec.encode(Fence(epoch=1, n=n, batch=f"b{n}"))))
        ack = await self.bus.publish_batch(messages)
        self.bound |= {one.uid: one for one in bindings}
        return ack.sequence

    async def position(self) -> int:
        return await self.bus.last_sequence(streams.CLUSTER.name)


def node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    """A node."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """A pod."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [container], **spec},
    }


def _event(resource: str, document: dict[str, Any]) -> Outgoing:
    meta = document["metadata"]
    event = ClusterEvent(
        resource=resource,
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        uid=meta["uid"],
        who="test",
        object=msgspec.Raw(json.dumps(document).encode()),
    )
    return Outgoing(subjects.object_(resource, event.namespace, event.name), codec.encode(event), expect=0)


class Queue:
    """Hands out what the test offers, keeps what it is told."""

    def __init__(self, bus: Bus, cluster: Cluster) -> None:
        self._bus = bus
        self._cluster = cluster
        self._offered: deque[PoppedPod] = deque()
        self._more = anyio.Event()
        self._attempts = 0
        self.epoch = 1
        self.done_epoch: int | None = None
        """Of answers to `done`, if another leader gives them."""
        self.position = 0
        self.refuse: set[str] = set()
        """Sessions that are refused."""
        self.pops: list[PopRequest] = []
        self.beats: list[SessionHeartbeat] = []
        self.results: list[AttemptResult] = []
        self.done_requests = 0

    async def serve(self) -> list[Subscription]:
        verbs = {"pop": self._pop, "done": self._done, "heartbeat": self._heartbeat}
        return [await self._bus.serve(subjects.queue_verb(verb), handler) for verb, handler in verbs.items()]

    async def offer(self, *names: str, sampled: bool = False) -> None:
        """Pods to schedule, as of the stream's position now."""
        self.position = await self._cluster.position()
        for name in names:
            self._attempts += 1
            self._offered.append(
                PoppedPod(
                    namespace="default",
                    name=name,
                    uid=f"uid-{name}",
                    attempt=f"{self.epoch}-{self._attempts}",
                    queued_at=time.time(),
                    trace=TRACE + ("01" if sampled else "00"),
                )
            )
        self._more.set()

    async def _pop(self, request: Request) -> bytes:
        message = codec.decode(PopRequest, request.payload)
        self.pops.append(message)
        if message.session in self.refuse:
            return codec.encode(PopReply(epoch=self.epoch, refused="that session is dead"))
        if not self._offered:
            self._more = anyio.Event()
            with anyio.move_on_after(min(message.wait_s, 0.2)):
                await self._more.wait()
        pods = tuple(self._offered.popleft() for _ in range(min(message.max_pods, len(self._offered))))
        return codec.encode(PopReply(epoch=self.epoch, position=self.position, pods=pods))

    async def _done(self, request: Request) -> bytes:
        message = codec.decode(DoneRequest, request.payload)
        self.done_requests += 1
        self.results += message.results
        return codec.encode(QueueReply(epoch=self.epoch if self.done_epoch is None else self.done_epoch))

    async def _heartbeat(self, request: Request) -> bytes:
        message = codec.decode(SessionHeartbeat, request.payload)
        self.beats.append(message)
        refused = "that session is dead" if message.session in self.refuse else ""
        return codec.encode(QueueReply(epoch=self.epoch, refused=refused))

    def of(self, name: str) -> list[AttemptResult]:
        """Results about a pod, in the order in which they came."""
        return [result for result in self.results if result.name == name]


Answer = Callable[[Decision], BindAnswer | None]
"""What the binder says about a decision; None: bind it."""


class Binder:
    """Commits what it is sent, unless the test says otherwise."""

    def __init__(self, bus: Bus, cluster: Cluster) -> None:
        self._bus = bus
        self._cluster = cluster
        self.requests: list[BindRequest] = []
        self.answer: Answer = _bind
        self.most = 256
        """Decisions of a request that are answered; the rest is not."""
        self.before: Callable[[BindRequest], Awaitable[None]] | None = None

    async def serve(self) -> Subscription:
        return await self._bus.serve(subjects.BINDER_BIND, self._handle)

    async def _handle(self, request: Request) -> bytes:
        message = codec.decode(BindRequest, request.payload)
        self.requests.append(message)
        if self.before is not None:
            await self.before(message)
        taken = message.decisions[: self.most]
        answers = [self.answer(decision) or _bound(decision) for decision in taken]
        bound = [
            _placed(decision, self._cluster.usage[decision.uid])
            for decision, answer in zip(taken, answers, strict=True)
            if answer.result == "bound" and decision.uid not in self._cluster.bound
        ]
        if bound:
            await self._cluster.commit(bound)
        reply = BindReply(epoch=1, position=await self._cluster.position(), answers=tuple(answers))
        return codec.encode(reply)

    def decisions(self) -> list[Decision]:
        """All decisions, in the order in which they came; repeats included."""
        return [decision for request in self.requests for decision in request.decisions]


def _bind(decision: Decision) -> BindAnswer | None:
    del decision
    return None


def _bound(decision: Decision) -> BindAnswer:
    return BindAnswer(attempt=decision.attempt, uid=decision.uid, result="bound", node=decision.node)


def _placed(decision: Decision, usage: Usage) -> BoundPod:
    return BoundPod(
        namespace=decision.namespace,
        name=decision.name,
        uid=decision.uid,
        node=decision.node,
        attempt=decision.attempt,
        decided_at=decision.position,
        usage=usage,
    )


class Stage:
    """All of it."""

    def __init__(self, bus: Bus, others: Bus) -> None:
        self.cluster = Cluster(others)
        self.queue = Queue(others, self.cluster)
        self.binder = Binder(others, self.cluster)
        self.spans = SpanList()
        self.service = _service(bus, Spans(self.spans))
        self.bus = others

    @asynccontextmanager
    async def running(self, *, queue: bool = True, binder: bool = True) -> AsyncIterator[None]:
        """The scheduler runs inside the block; queue and binder serve if asked for."""
        if queue:
            await self.queue.serve()
        if binder:
            await self.binder.serve()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scheduler_service.main, self.service)
            yield
            tasks.cancel_scope.cancel()

    async def record(self, name: str) -> AttemptRecord:
        """The last record of a pod's attempt that did not bind, once it is stored."""

        async def probe() -> AttemptRecord | None:
            found = await self.bus.get(streams.DECISIONS.name, subjects.decisions("default", name, f"uid-{name}"))
            return None if found is None else codec.decode(AttemptRecord, found.payload)

        return await eventually(f"a record of {name}", probe)


def _service(bus: Bus, spans: Spans) -> Service[SchedulerSettings]:
    """The scheduler's Service as `podyard run scheduler` would make it."""
    registry = prometheus_client.CollectorRegistry()
    session = f"s-{time.monotonic_ns()}"
    return Service(
        scheduler_service.SERVICE,
        process=ServiceSettings(instance="s"),
        settings=SchedulerSettings(heartbeat_s=0.1, pop_wait_s=0.2),
        bus=bus,
        health=Health(stall_limit_s=10, registry=registry),
        spans=spans,
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name="podyard-scheduler", identity=session, version="0", description="test"),
        session=session,
    )


async def eventually(what: str, probe: Callable[[], Awaitable[T | None]], within_s: float = WITHIN_S) -> T:
    """What `probe` gives as soon as it is true; fails with `what` after a while."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = await probe()
        if found:
            return found
        await anyio.sleep(0.01)
    raise AssertionError(f"not seen within {within_s:g} s: {what}")


async def until(what: str, condition: Callable[[], Any]) -> None:
    """Wait until `condition` holds."""

    async def probe() -> bool:
        return bool(condition())

    await eventually(what, probe)
