"""A scheduler service in this process, with a queue, a binder and a cluster that the test plays."""

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from podyard.bus import Bus, Request, Subscription
from podyard.objects import pod_requests
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.proto.decisions import AttemptRecord
from podyard.proto.placement import BoundPod, Release, Usage
from podyard.proto.queue_api import (
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.scheduler.service import SERVICE
from podyard.scheduler.settings import SchedulerSettings
from tests.support import cluster, objects
from tests.support.objects import Document, decoded
from tests.support.services import make_service, running
from tests.support.spans import KeptSpans
from tests.support.waiting import eventually

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"


def pod(name: str, cpu: str = "100m", **more: Any) -> Document:
    """A pod that asks for something."""
    return objects.pod(name, cpu=cpu, memory="64Mi", **more)


class Cluster(cluster.Cluster):
    """One that knows what its binder has bound, and what its pods take of a node."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus)
        self.bound: dict[str, BoundPod] = {}
        self.usage: dict[str, Usage] = {}
        """By uid: what bindings tell."""

    async def pods(self, *documents: Document) -> None:
        self.usage |= {one["metadata"]["uid"]: pod_requests.usage(decoded("pods", one)) for one in documents}
        await self.create("pods", documents)

    async def nodes(self, number: int) -> None:
        """Nodes n0000, n0001 and so on."""
        await self.create("nodes", [objects.node(f"n{at:04}") for at in range(number)])

    async def commit(
        self, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = (), *, skip: int = 0
    ) -> int:
        sequence = await super().commit(bindings, releases, skip=skip)
        self.bound |= {one.uid: one for one in bindings}
        return sequence

    async def last_sequence(self) -> int:
        return await self.bus.last_sequence(streams.CLUSTER.name)


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
        self.heard: list[str] = []
        """Verbs of what it was told, in the order in which that came."""

    async def serve(self) -> list[Subscription]:
        verbs = {"pop": self._pop, "done": self._done, "heartbeat": self._heartbeat}
        return [await self._bus.serve(subjects.queue_verb(verb), handler) for verb, handler in verbs.items()]

    async def offer(self, *names: str, sampled: bool = False) -> None:
        """Pods to schedule, as of the stream's position now."""
        self.position = await self._cluster.last_sequence()
        self.hand_out(*names, sampled=sampled)

    def hand_out(self, *names: str, sampled: bool = False) -> None:
        """The same, as of `position`."""
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
        self.heard.append("done")
        self.done_requests += 1
        self.results += message.results
        return codec.encode(QueueReply(epoch=self.epoch if self.done_epoch is None else self.done_epoch))

    async def _heartbeat(self, request: Request) -> bytes:
        message = codec.decode(SessionHeartbeat, request.payload)
        self.heard.append("heartbeat")
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
        reply = BindReply(epoch=1, position=await self._cluster.last_sequence(), answers=tuple(answers))
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
        self.spans = KeptSpans()
        settings = SchedulerSettings(heartbeat_s=0.1, pop_wait_s=0.2)
        self.service = make_service(SERVICE, bus, settings, spans=self.spans)
        self.bus = others

    @asynccontextmanager
    async def running(self, *, queue: bool = True, binder: bool = True) -> AsyncIterator[None]:
        """The scheduler runs inside the block; queue and binder serve if asked for."""
        if queue:
            await self.queue.serve()
        if binder:
            await self.binder.serve()
        async with running(self.service):
            yield

    async def record(self, name: str) -> AttemptRecord:
        """The last record of a pod's attempt that did not bind, once it is stored."""

        async def probe() -> AttemptRecord | None:
            found = await self.bus.get(streams.DECISIONS.name, subjects.decisions("default", name, f"uid-{name}"))
            return None if found is None else codec.decode(AttemptRecord, found.payload)

        return await eventually(f"a record of {name}", probe)
