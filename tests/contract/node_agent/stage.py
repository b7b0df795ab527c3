"""A cluster without its other services: the test writes what api and binder would, and watches the agent."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.node_agent.service import SERVICE
from podyard.node_agent.settings import NodeAgentSettings
from podyard.objects import times
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.operations import K8sEvent
from podyard.runtime.service import Service
from tests.support import objects
from tests.support.cluster import Cluster, bound, released
from tests.support.objects import Document
from tests.support.services import make_service, running
from tests.support.spans import KeptSpans
from tests.support.waiting import eventually

FAST = {"start_delay_s": 0.02, "stop_delay_s": 0.02, "heartbeat_interval_s": 0.2, "monitoring_interval_s": 0.1}

M = TypeVar("M")


class Stage:
    """Writes objects and commits; keeps the last fact of every subject, and all that came.

    Pods are documents with their node; what is stored of them has none: that is the binder's to say.
    """

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.facts: dict[str, bytes] = {}
        self.history: list[Delivery] = []
        self.news: list[K8sEvent] = []
        self.spans = KeptSpans(sampled=True)
        self._cluster = Cluster(bus)

    # the reader's side, called by the watch

    def listing(self, target: int, reason: str) -> None:
        del target, reason

    def deliver(self, delivery: Delivery) -> None:
        self.history.append(delivery)
        if delivery.deleted:
            self.facts.pop(delivery.subject, None)
        else:
            self.facts[delivery.subject] = delivery.payload

    def synced(self, position: int) -> None:
        del position

    def advanced(self, position: int) -> None:
        del position

    def contact(self, fresh: bool) -> None:
        del fresh

    def on_news(self, subject: str, payload: bytes, trace: str) -> None:
        del subject, trace
        event = codec.decode(K8sEvent, payload)
        if event not in self.news:  # a try that was cut off is sent once more; a repetition changes nothing
            self.news.append(event)

    async def collect(self, subject: str, message_type: type[M]) -> list[M]:
        """What is published on `subject` from now on."""
        found: list[M] = []

        def take(_subject: str, payload: bytes, _trace: str) -> None:
            found.append(codec.decode(message_type, payload))

        await self.bus.subscribe(subject, take)
        return found

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

        def fact() -> PodStatusFact | None:
            found = self.pod_fact(pod)
            return found if found is not None and found.phase == phase else None

        return await eventually(f"{pod['metadata']['name']} is {phase}", fact)

    # what api and binder write

    async def node(self, name: str, **more: Any) -> Document:
        document = objects.node(name, cpu="64", memory="256Gi", pods="500", **more)
        await self.write("nodes", document)
        return document

    async def pod(self, name: str, node: str, **more: Any) -> Document:
        """A pod that is written and bound to `node`."""
        document = objects.pod(name, node=node, **more)
        await self.write("pods", document)
        await self.bind(document)
        return document

    async def write(self, resource: str, document: Document) -> None:
        spec = {key: value for key, value in document["spec"].items() if key != "nodeName"}
        await self._cluster.put(resource, {**document, "spec": spec})

    async def delete(self, pod: Document, grace_s: int = 30) -> None:
        """Ask for the pod's end, as api does."""
        pod["metadata"]["deletionTimestamp"] = times.rfc3339(time.time() + grace_s)
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        await self.write("pods", pod)

    async def remove(self, resource: str, document: Document) -> None:
        """Put a marker in the object's place."""
        await self._cluster.remove(resource, document)

    async def status(self, fact: PodStatusFact) -> None:
        """Say something about a pod in its agent's place."""
        await self._cluster.status(fact)

    async def bind(self, *pods: Document, trace: str = "") -> None:
        await self._cluster.commit([bound(*_placed(pod), uid=pod["metadata"]["uid"], trace=trace) for pod in pods])

    async def release(self, pod: Document) -> None:
        await self._cluster.commit(releases=[released(*_placed(pod), uid=pod["metadata"]["uid"])])


def _placed(pod: Document) -> tuple[str, str]:
    return pod["metadata"]["name"], pod["spec"]["nodeName"]


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
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def agent(bus: Bus, stage: Stage, *, instance: str = "agent-1", **settings: object) -> AsyncIterator[Service]:
    """The agent, running in this process on a connection of its own."""
    chosen = msgspec.convert({**FAST, **settings}, NodeAgentSettings)
    service = make_service(SERVICE, bus, chosen, instance=instance, spans=stage.spans)
    async with running(service):
        yield service
