"""What the queue's contract tests are made of: a cluster to write into, a scheduler to play, what is
stored."""

import itertools
from typing import Any

import msgspec

from podyard.bus import Bus, RequestTimeout, TemporaryError
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent
from podyard.proto.facts import Nomination
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
from tests.support import cluster
from tests.support.cluster import bound
from tests.support.objects import Document
from tests.support.waiting import WITHIN_S, eventually

DIGESTS = {"default-scheduler": default_profile().digest}
WHY = "a test wants it"


class Cluster(cluster.Cluster):
    """One in which popped pods are bound and bare events happen."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, why=WHY)

    async def bind(self, pod: PoppedPod, node: str) -> None:
        await self.commit([bound(pod.name, node, uid=pod.uid, attempt=pod.attempt)])

    def bare(self, resource: str, action: str, *, id: str, old: Document, new: Document) -> None:  # noqa: A002
        """An event that no stored object tells of."""
        event = BareEvent(
            id=id,
            resource=resource,
            actions=(action,),
            who="test",
            old=msgspec.Raw(msgspec.json.encode(old)),
            new=msgspec.Raw(msgspec.json.encode(new)),
        )
        self.bus.send(subjects.bare_event(resource, action), codec.encode(event))


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
