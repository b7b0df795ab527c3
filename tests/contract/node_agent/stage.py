"""A cluster without its other services: the test writes what api and binder would, and watches what the agent says."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
import prometheus_client
import structlog

from podyard.bus import Bus, Delivery, Outgoing, WatchSpec
from podyard.cluster import timestamps
from podyard.node_agent.service import SERVICE
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import SpanRecord, Spans

LIMIT_S = 15.0
FAST = {"start_delay_s": 0.02, "stop_delay_s": 0.02, "heartbeat_interval_s": 0.2, "monitoring_interval_s": 0.1}


M = TypeVar("M")


class SpanList:
    """A span sink that keeps what it gets and samples every trace."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.spans: list[SpanRecord] = []
        self._changed = changed

    def accept(self, span: SpanRecord) -> None:
        self.spans.append(span)
        self._changed()

    def sampled(self, trace_id: int, name: str) -> bool:
        del trace_id, name
        return True

    def named(self, name: str) -> list[SpanRecord]:
        return [span for span in self.spans if span.name == name]


class Stage:
    """Writes objects and commits; keeps the last fact of every subject, and all that came."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.facts: dict[str, bytes] = {}
        self.versions: dict[str, int] = {}
        self.history: list[Delivery] = []
        self.news: list[K8sEvent] = []
        self._fence = 0
        self._n = 0
        self._changed = asyncio.Event()
        self.spans = SpanList(self._changed.set)

    # the reader's side, called by the watch

    def listing(self, target: int, reason: str) -> None:
        del target, reason

    def deliver(self, delivery: Delivery) -> None:
        self.history.append(delivery)
        if delivery.deleted:
            self.facts.pop(delivery.subject, None)
        else:
            self.facts[delivery.subject] = delivery.payload
        self._changed.set()

    def synced(self, position: int) -> None:
        del position
        self._changed.set()

    def advanced(self, position: int) -> None:
        del position

    def contact(self, fresh: bool) -> None:
        del fresh

    def on_news(self, subject: str, payload: bytes, trace: str) -> None:
        del subject, trace
        self.news.append(codec.decode(K8sEvent, payload))
        self._changed.set()

    async def collect(self, subject: str, message_type: type[M]) -> list[M]:
        """What is published on `subject` from now on."""
        found: list[M] = []

        def take(_subject: str, payload: bytes, _trace: str) -> None:
            found.append(codec.decode(message_type, payload))
            self._changed.set()

        await self.bus.subscribe(subject, take)
        return found

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for `condition`, looked at after every message."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # what is stored

    def pod_fact(self, pod: dict) -> PodStatusFact | None:
        payload = self.facts.get(self.status_subject(pod))
        return None if payload is None else codec.decode(PodStatusFact, payload)

    def node_fact(self, name: str) -> NodeStatusFact | None:
        payload = self.facts.get(subjects.node_status(name))
        return None if payload is None else codec.decode(NodeStatusFact, payload)

    def told(self, pod: dict) -> list[Delivery]:
        """All versions of the fact about a pod, markers included."""
        return [one for one in self.history if one.subject == self.status_subject(pod)]

    @staticmethod
    def status_subject(pod: dict) -> str:
        metadata = pod["metadata"]
        return subjects.pod_status(pod["spec"]["nodeName"], metadata["namespace"], metadata["name"], metadata["uid"])

    async def phase(self, pod: dict, phase: str) -> PodStatusFact:
        """The fact about the pod, once it has this phase."""
        await self.until(lambda: (fact := self.pod_fact(pod)) is not None and fact.phase == phase)
        found = self.pod_fact(pod)
        assert found is not None
        return found

    # what api and binder write

    async def node(self, name: str, **metadata: object) -> dict:
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": uuid.uuid4().hex, **metadata},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"}},
        }
        await self.write("nodes", document)
        return document

    async def pod(self, name: str, node: str, *, containers: list[dict] | None = None, **metadata: object) -> dict:
        """A pod that is written and bound to `node`."""
        document = pod_document(name, node, containers=containers, **metadata)
        await self.write("pods", document)
        await self.bind(document)
        return document

    async def write(self, resource: str, document: dict) -> None:
        event = _event(resource, document)
        subject = subjects.object_(resource, event.namespace, event.name)
        message = Outgoing(subject, codec.encode(event), expect=self.versions.get(subject, 0))
        self.versions[subject] = (await self.bus.publish(message)).sequence

    async def delete(self, pod: dict, grace_s: int = 30) -> None:
        """Ask for the pod's end, as api does."""
        pod["metadata"]["deletionTimestamp"] = timestamps.text_of(time.time() + grace_s)
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        await self.write("pods", pod)

    async def remove(self, resource: str, document: dict) -> None:
        """Put a marker in the object's place."""
        event = msgspec.structs.replace(_event(resource, document), op="delete")
        subject = subjects.object_(resource, event.namespace, event.name)
        message = Outgoing(
            subject, codec.encode(event), expect=self.versions.pop(subject), ttl_s=streams.MARKER_TTL_S, deleted=True
        )
        await self.bus.publish(message)

    async def bind(self, *pods: dict, trace: str = "") -> None:
        bindings = [_binding(pod, trace) for pod in pods]
        messages = [
            Outgoing(subjects.binding(one.namespace, one.name, one.uid), codec.encode(one), expect=0)
            for one in bindings
        ]
        await self._commit(messages, bindings=tuple(_bound(one) for one in bindings))

    async def release(self, pod: dict) -> None:
        metadata = pod["metadata"]
        release = Release(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            node=pod["spec"]["nodeName"],
            reason="terminated",
        )
        await self._commit([], releases=(release,))

    async def _commit(self, messages: list[Outgoing], **content: object) -> None:
        self._n += 1
        record = CommitRecord(n=self._n, epoch=1, batch=str(self._n), at=time.time(), **content)  # type: ignore[arg-type]
        fence = Fence(epoch=1, n=self._n)
        messages.append(Outgoing(subjects.commit(self._n), codec.encode(record), expect=0))
        messages.append(Outgoing(subjects.FENCE, codec.encode(fence), expect=self._fence))
        self._fence = (await self.bus.publish_batch(messages)).sequence


def pod_document(name: str, node: str, *, containers: list[dict] | None = None, **metadata: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uuid.uuid4().hex, **metadata},
        "spec": {"containers": containers or [{"name": "main"}], "nodeName": node},
    }


def _event(resource: str, document: dict) -> ClusterEvent:
    metadata = document["metadata"]
    stored = document
    if resource == "pods":
        # the node is the binder's to say, not the creator's
        stored = {**document, "spec": {key: value for key, value in document["spec"].items() if key != "nodeName"}}
    return ClusterEvent(
        resource=resource,
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=metadata["uid"],
        who="test",
        object=msgspec.Raw(msgspec.json.encode(stored)),
    )


def _binding(pod: dict, trace: str) -> Binding:
    metadata = pod["metadata"]
    return Binding(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        node=pod["spec"]["nodeName"],
        trace=trace,
        bound_at=time.time(),
    )


def _bound(binding: Binding) -> BoundPod:
    return BoundPod(
        namespace=binding.namespace, name=binding.name, uid=binding.uid, node=binding.node, trace=binding.trace
    )


@asynccontextmanager
async def staged(bus: Bus) -> AsyncIterator[Stage]:
    """A stage that watches the facts."""
    stage = Stage(bus)
    watched = (subjects.ALL_POD_STATUS, subjects.ALL_NODE_STATUS)
    watch = bus.watch(
        WatchSpec(stream=streams.CLUSTER.name, list_subjects=watched, follow_subjects=watched, heartbeat_s=0.1), stage
    )
    news = await bus.subscribe(subjects.ALL_K8SEVENTS, stage.on_news)
    task = asyncio.create_task(watch.run())
    try:
        yield stage
    finally:
        await news.close()
        await _end(task)


@asynccontextmanager
async def agent(bus: Bus, stage: Stage, *, instance: str = "agent-1", **settings: object) -> AsyncIterator[Service]:
    """The agent, running in this process on a connection of its own."""
    service = service_of(bus, stage.spans, instance, **settings)
    task = asyncio.create_task(SERVICE.main(service))
    try:
        yield service
    finally:
        await _end(task)


def service_of(bus: Bus, sink: SpanList, instance: str, **settings: object) -> Service:
    registry = prometheus_client.CollectorRegistry()
    session = f"{instance}-{uuid.uuid4().hex[:8]}"
    return Service(
        SERVICE,
        process=ServiceSettings(instance=instance),
        settings=msgspec.convert({**FAST, **settings}, NodeAgentSettings),
        bus=bus,
        health=Health(stall_limit_s=10, registry=registry),
        spans=Spans(sink),
        metrics=registry,
        log=structlog.stdlib.get_logger(),
        endpoints=Endpoints(bus, name="podyard-node_agent", identity=session, version="0", description=""),
        session=session,
    )


async def _end(task: asyncio.Task) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is not None:
        raise task.exception()  # type: ignore[misc]
