"""CLUSTER on a bus, written and read as those do whose services are not there: api, node agents, the binder.

cluster = Cluster(bus)
await cluster.node("n1", cpu="8")
await cluster.pod("web", labels={"app": "web"})
await cluster.commit([bound("web", "n1")])
await cluster.commit(releases=[released("web", "n1")])
"""

from collections.abc import Iterable, Sequence
from typing import Any

import anyio

from podyard.bus import Ack, Bus, Delivery, Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import BoundPod, CommitRecord, Fence, Placement, Release
from tests.support import objects, stored
from tests.support.objects import Document


def bound(name: str, node: str = "n1", *, namespace: str = "default", uid: str = "", **more: Any) -> BoundPod:
    """A pod on a node; `more` are fields of BoundPod."""
    return BoundPod(namespace=namespace, name=name, uid=uid or f"uid-{name}", node=node, **more)


def released(name: str, node: str = "n1", *, namespace: str = "default", uid: str = "") -> Release:
    """A pod's end on a node."""
    return Release(namespace=namespace, name=name, uid=uid or f"uid-{name}", node=node, reason="terminated")


class Cluster:
    """Every write is a compare-and-set on what lies there.

    :param why: what objects' versions say of it
    """

    def __init__(self, bus: Bus, *, why: str = "") -> None:
        self.bus = bus
        self.position = 0
        """Of the last write from here."""
        self._why = why
        self._commits = 0
        self._committing = anyio.Lock()

    # what api writes, and node agents

    async def put(self, resource: str, document: Document, *, trace: str = "") -> int:
        """A version of an object, whether there is one or not."""
        return await self.write(stored.version(resource, document, why=self._why).but(trace=trace))

    async def create(self, resource: str, documents: Iterable[Document]) -> None:
        """Objects that are not there yet, all at once."""
        messages = [stored.version(resource, one, why=self._why).but(expect=0) for one in documents]
        answers = await self.bus.publish_many(messages)
        acks = [one for one in answers if isinstance(one, Ack)]
        assert len(acks) == len(messages), answers
        self.position = max([self.position, *(one.sequence for one in acks)])

    async def remove(self, resource: str, document: Document, *, trace: str = "") -> int:
        """A marker in the object's place."""
        return await self.write(stored.marker(resource, document).but(trace=trace))

    async def pod(self, name: str, *, cpu: str = "100m", **more: Any) -> int:
        """A pod, see `objects.pod`; it asks for something unless told."""
        return await self.put("pods", objects.pod(name, cpu=cpu, **more))

    async def node(self, name: str = "n1", **more: Any) -> int:
        """A node, see `objects.node`."""
        return await self.put("nodes", objects.node(name, **more))

    async def status(self, fact: PodStatusFact) -> int:
        """What an agent says about a pod."""
        return await self.write(stored.pod_status(fact))

    async def write(self, message: Outgoing) -> int:
        """A message in the place of what lies on its subject; returns its sequence."""
        ack = await self.bus.publish(await self._expecting(message))
        self.position = ack.sequence
        return ack.sequence

    # what the binder writes

    async def commit(
        self, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = (), *, skip: int = 0
    ) -> int:
        """A commit as one batch, fenced; returns the sequence of the fence.

        :param skip: how many numbers of commits are left out before it
        """
        async with self._committing:
            self._commits += 1 + skip
            n = self._commits
            *placements, record, fence = stored.commit(n, bindings=bindings, releases=releases, batch=f"b{n}")
            tombstones = [await self._expecting(one) for one in placements[len(bindings) :]]
            new = [one.but(expect=0) for one in (*placements[: len(bindings)], record)]
            batch = [*new[:-1], *tombstones, new[-1], await self._expecting(fence)]
            self.position = (await self.bus.publish_batch(batch)).sequence
            return self.position

    # what lies there

    async def last(self, subject: str) -> Delivery | None:
        """The last message on a subject, markers too."""
        return await self.bus.get(streams.CLUSTER.name, subject)

    async def document(self, resource: str, name: str, namespace: str = "default") -> Document:
        """An object's last version."""
        found = await self.last(subjects.object_(resource, namespace, name))
        assert found is not None, f"there is no {name} among {resource}"
        return stored.document(found)

    async def placement(self, name: str) -> Placement | None:
        """A pod's binding, or its tombstone."""
        found = await self.last(subjects.binding("default", name, f"uid-{name}"))
        return None if found is None else codec.decoder(Placement).decode(found.payload)

    async def fence(self) -> Fence:
        """It is there."""
        found = await self.last(subjects.FENCE)
        assert found is not None, "there is no fence"
        return codec.decode(Fence, found.payload)

    async def commits(self) -> list[CommitRecord]:
        """All commit records so far; fails if one is missing."""
        records: list[CommitRecord] = []
        for n in range(1, (await self.fence()).n + 1):
            found = await self.last(subjects.commit(n))
            assert found is not None, f"commit {n} is missing"
            records.append(codec.decode(CommitRecord, found.payload))
        return records

    async def _expecting(self, message: Outgoing) -> Outgoing:
        there = await self.last(message.subject)
        return message.but(expect=0 if there is None else there.sequence)
