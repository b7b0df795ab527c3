"""Writing what the benchmark makes: into the stream, as the api would, or by the api."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import anyio

from podyard.bench.scheduler_perf import moulds
from podyard.bench.scheduler_perf.following import Follower, Wanted
from podyard.bench.scheduler_perf.through_api import RefusedError, ThroughApi
from podyard.bench.scheduler_perf.written import Document, Written
from podyard.bench.versions import AUTHOR
from podyard.bus import Ack, Bus, Outgoing
from podyard.bus.errors import BusError
from podyard.cluster import intents
from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Intent, Keep, Put, Step, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects.documents import mapping
from podyard.proto import streams, subjects
from podyard.runtime import clock
from podyard.shell import writes

IN_FLIGHT: Final = 4
"""Batches under way at once."""
BATCH_BYTES: Final = 4 * 1024**2
REQUEST_BYTES: Final = 3 * 1024**2
"""Of objects in one request to the api, which has to fit a message."""
PODS: Final = subjects.PODS
WRITE_WITHIN_S: Final = 60.0


class Cluster(Written):
    """The same on a bus.

    :param follower: who knows which pods are bound
    :param api: by which it is written; None: past it
    """

    def __init__(self, bus: Bus, follower: Follower, api: ThroughApi | None = None) -> None:
        super().__init__(clock.now, by_api=api is not None)
        self._bus = bus
        self._follower = follower
        self._api = api
        self.position = 0
        """Of the last write."""
        self.deleted = 0
        self.updated = 0

    async def create(self, messages: Iterable[Outgoing]) -> None:
        """Store messages, in batches that are whole or absent, some of them under way at once.

        :raises RefusedError: the server refuses one
        """
        batches = _batches(messages, BATCH_BYTES if self._api is None else REQUEST_BYTES)

        async def worker() -> None:
            for batch in batches:
                await self._store(batch)

        async with anyio.create_task_group() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.start_soon(worker)

    async def _store(self, batch: Sequence[Outgoing]) -> None:
        if self._api is not None:
            self.position = max(self.position, await self._api.create(batch))
            return
        try:
            if len(batch) >= writes.BATCH_FROM:
                ack = await self._bus.publish_batch(batch, timeout_s=WRITE_WITHIN_S)
                self.position = max(self.position, ack.sequence)
                return
            answers = await self._bus.publish_many(batch, timeout_s=WRITE_WITHIN_S)
        except BusError as error:
            raise RefusedError(f"{batch[0].subject} and {len(batch) - 1} more were not stored: {error}") from error
        for message, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, Ack):
                raise RefusedError(f"{message.subject} was not stored: {answer}")
            self.position = max(self.position, answer.sequence)

    async def delete(self, keys: Sequence[ObjectKey], grace_s: int | None = None) -> int:
        """Delete objects as a client does; those that others removed before are passed over.

        :return: how many were deleted
        :raises RefusedError: the server refuses one
        """
        for key in keys:
            if key.resource == PODS:
                self.pods.get(key.namespace, {}).pop(key.name, None)
        if self._api is not None:
            done, position = await self._api.delete(keys, grace_s)
            self.position = max(self.position, position)
            self.deleted += done
            return done
        plans = [
            Intent(key, intents.deletion(key, now=clock.now(), occupies=self._occupies, grace_s=grace_s))
            for key in keys
        ]
        done = 0
        for key, result in zip(keys, await writes.carry_out(self._bus, plans, AUTHOR), strict=True):
            if isinstance(result, ObjectMissing):
                continue
            if isinstance(result, Exception):
                raise RefusedError(f"{key.resource} {key.name} was not deleted: {result}")
            self.position = max(self.position, result.sequence)
            done += not isinstance(result.step, Keep)
        self.deleted += done
        return done

    async def update(self, key: ObjectKey, document: Document, *, resize: bool = False) -> None:
        """Put a document in the place of a stored one.

        :param resize: take from it what containers request and may use at most, and nothing else

        :raises InputError: the API server would refuse it
        :raises RefusedError: there is no such object, or the server refuses it
        """
        if self._api is not None:
            await self._update_by(self._api, key, document, resize=resize)
            return

        def plan(stored: Stored | None) -> Step:
            there = intents.living(stored)
            if there is None:
                raise ObjectMissing(key)
            old = there.document()
            wanted = moulds.resized(old, document) if resize else self._without_place(key, document)
            new = self.admitter.changed(wanted, old)
            return Keep() if new == old else Put(new)

        result = (await writes.carry_out(self._bus, [Intent(key, plan)], AUTHOR))[0]
        if isinstance(result, Exception):
            raise RefusedError(f"{key.resource} {key.name} was not updated: {result}")
        self.position = max(self.position, result.sequence)
        self.updated += 1
        if isinstance(result.step, Put):
            self._labelled(key, result.step.document)

    async def _update_by(self, api: ThroughApi, key: ObjectKey, document: Document, *, resize: bool) -> None:
        found = await self._bus.get(streams.CLUSTER.name, subjects.object_(*key))
        if found is None or found.deleted:
            raise RefusedError(f"{key.resource} {key.name} was not updated: it is not there")
        old = Stored(found.sequence, found.payload, found.deleted).document()
        wanted = moulds.resized(old, document) if resize else moulds.with_class(self._without_place(key, document))
        wanted["metadata"]["namespace"] = key.namespace
        self.position = max(self.position, await api.replace(wanted))
        self.updated += 1
        self._labelled(key, document)

    def _labelled(self, key: ObjectKey, document: Document) -> None:
        if key.resource == PODS:
            self.pods.setdefault(key.namespace, {})[key.name] = document["metadata"].get("labels") or {}

    def _without_place(self, key: ObjectKey, document: Document) -> Document:
        """A pod's node is no part of the stored object: who names the one that it is on changes nothing."""
        node = mapping(document, "spec").get("nodeName") if key.resource == PODS else None
        if node is None or node != self._follower.nodes.get((key.namespace, key.name)):
            return document
        return {**document, "spec": {name: one for name, one in document["spec"].items() if name != "nodeName"}}

    def chosen(self, wanted: Wanted) -> Iterator[ObjectKey]:
        """Pods from here that are still there, as far as is known."""
        for namespace in sorted(wanted.namespaces or self.pods):
            for name, labels in self.pods.get(namespace, {}).items():
                if wanted.has(namespace, labels):
                    yield ObjectKey(PODS, namespace, name)

    def _occupies(self, uid: str) -> bool:
        return uid in self._follower.live


def _batches(messages: Iterable[Outgoing], most_bytes: int) -> Iterator[list[Outgoing]]:
    batch: list[Outgoing] = []
    size = 0
    for message in messages:
        if batch and (len(batch) == streams.MAX_BATCH or size + len(message.payload) > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message.payload)
    if batch:
        yield batch
