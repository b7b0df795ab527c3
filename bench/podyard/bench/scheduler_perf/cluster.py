"""What the benchmark has written, and writing: it is the only one that creates objects, without an api."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import anyio

from podyard.bench.scheduler_perf import moulds
from podyard.bench.scheduler_perf.following import Follower, Wanted
from podyard.bench.scheduler_perf.moulds import Admitter, Mould, Names, new_uid
from podyard.bench.versions import AUTHOR
from podyard.bus import Ack, Bus, Outgoing
from podyard.bus.errors import BusError
from podyard.cli.errors import CliError, InputError
from podyard.cluster import intents
from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Intent, Keep, Put, Step, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import admission
from podyard.objects.documents import mapping
from podyard.proto import streams, subjects
from podyard.runtime import clock
from podyard.shell import writes

Document: TypeAlias = dict[str, Any]

IN_FLIGHT: Final = 4
"""Batches under way at once."""
BATCH_BYTES: Final = 4 * 1024**2
PODS: Final = subjects.PODS
WRITE_WITHIN_S: Final = 60.0


class RefusedError(CliError):
    """The server did not take an object."""


class Cluster:
    """Objects by kind, as they were created; and the pods that are there.

    :param follower: who knows which pods are bound
    """

    def __init__(self, bus: Bus, follower: Follower) -> None:
        self._bus = bus
        self._follower = follower
        self._objects: dict[str, dict[tuple[str, str], Document]] = {}
        self.pods: dict[str, dict[str, Mapping[str, str]]] = {}
        """Labels of pods that were created and not deleted from here, by namespace and name."""
        self.namespaces: set[str] = set()
        self.position = 0
        """Of the last write."""
        self.names = Names()
        self.admitter = Admitter(self, clock.now)
        self.created = 0
        self.deleted = 0
        self.updated = 0

    # what admission asks

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """The object, None if there is none or it is a pod."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: str) -> Iterable[Any]:
        """All objects of a resource but pods and nodes, which admission does not ask for."""
        return self._objects.get(resource, {}).values()

    # writing

    def mould(self, document: Document, namespace: str = "") -> Mould:
        """A mould for objects like this, in a namespace if it is of a kind that has one.

        :raises InputError: nobody would take such an object
        """
        kind = admission.kind_of(document)
        if kind.resource == "secrets":
            raise InputError("Secret: the api seals them, and none runs: no Secret can be created")
        if kind.namespaced:
            if not namespace:
                raise InputError(f"{kind.kind}: the op names no namespace for it")
            document["metadata"]["namespace"] = namespace
        elif document["metadata"].get("namespace"):
            raise InputError(f"{kind.kind}: is in no namespace, but says one")
        return self.admitter.mould(document)

    def name_for(self, metadata: Mapping[str, Any]) -> str:
        """The name that an object says, or one that nobody has.

        :raises InputError: it says none
        """
        name: str = metadata.get("name", "")
        begins: str = metadata.get("generateName", "")
        if not name and not begins:
            raise InputError("an object has neither a name nor a generateName")
        return name or self.names.after(begins)

    def cast(self, mould: Mould, name: str, index: int = 0, uid: str = "") -> Outgoing:
        """The message that creates an object, which counts as there from now on."""
        message = mould.cast(name, uid or new_uid(), index)
        key = (mould.namespace, name)
        if mould.resource == PODS:
            self.pods.setdefault(mould.namespace, {})[name] = mould.document["metadata"].get("labels") or {}
        elif mould.resource == "namespaces":
            self.namespaces.add(name)
            self._objects.setdefault("namespaces", {})[key] = mould.document
        elif mould.resource != "nodes":
            self._objects.setdefault(mould.resource, {})[key] = mould.document
        self.created += 1
        return message

    async def create(self, messages: Iterable[Outgoing]) -> None:
        """Store messages, in batches that are whole or absent, some of them under way at once.

        :raises RefusedError: the server refuses one
        """
        batches = _batches(messages)

        async def worker() -> None:
            for batch in batches:
                await self._store(batch)

        async with anyio.create_task_group() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.start_soon(worker)

    async def _store(self, batch: Sequence[Outgoing]) -> None:
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
        plans = [
            Intent(key, intents.deletion(key, now=clock.now(), occupies=self._occupies, grace_s=grace_s))
            for key in keys
        ]
        done = 0
        for key in keys:
            if key.resource == PODS:
                self.pods.get(key.namespace, {}).pop(key.name, None)
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
        if key.resource == PODS and isinstance(result.step, Put):
            self.pods.setdefault(key.namespace, {})[key.name] = result.step.document["metadata"].get("labels") or {}

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


def _batches(messages: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    batch: list[Outgoing] = []
    size = 0
    for message in messages:
        if batch and (len(batch) == streams.MAX_BATCH or size + len(message.payload) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message.payload)
    if batch:
        yield batch
