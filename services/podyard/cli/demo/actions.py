"""What a person would do with `podyard apply`, `delete` and `publish`, repeated while the api is away."""

import time
from collections.abc import Callable
from importlib import resources
from typing import Any, Final, TypeVar

import anyio
import msgspec

from podyard.bus import Bus
from podyard.bus.errors import TemporaryError
from podyard.objects import manifests
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, ObjectsReply
from podyard.proto.signals import NodeSignals, PodUsage, SignalValue

WHO: Final = "demo"
PATIENCE_S: Final = 30.0
GIBIBYTE: Final = 1024**3
T = TypeVar("T")


class RefusedError(Exception):
    """The api refused what the demo asked for: a fault of the demo or of Podyard, never of the reader."""


def manifest(name: str) -> list[dict[str, Any]]:
    """Documents of one of the demo's manifest files."""
    text = (resources.files("podyard.cli.demo") / "manifests" / name).read_text(encoding="utf-8")
    return [one.document for one in manifests.load(name, text)]


class Actions:
    """A person at the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def apply(self, documents: list[dict[str, Any]], why: str) -> None:
        """Create or replace objects.

        :raises RefusedError: with the api's reasons
        """
        raws = tuple(msgspec.Raw(msgspec.json.encode(document)) for document in documents)
        await self._ask(subjects.OBJECTS_APPLY, ApplyRequest(objects=raws, who=WHO, why=why))

    async def delete(self, resource: str, namespace: str, name: str, why: str) -> None:
        """Ask for the end of one object."""
        target = ObjectRef(resource=resource, namespace=namespace, name=name)
        await self._ask(subjects.OBJECTS_DELETE, DeleteRequest(objects=(target,), who=WHO, why=why))

    def memory(self, node: str, available_bytes: int, capacity_bytes: int, usage: dict[tuple[str, str], int]) -> None:
        """Publish how much memory a node has left, and what its pods use (by namespace and name, bytes)."""
        pods = tuple(PodUsage(namespace=ns, name=name, memory_bytes=used) for (ns, name), used in usage.items())
        level = SignalValue(available=available_bytes, capacity=capacity_bytes)
        signals = NodeSignals(node=node, signals={"memory.available": level}, pods=pods, who=WHO, at=time.time())
        self._bus.send(subjects.signals(node), codec.encode(signals))

    async def repeat(self, action: Callable[[], None], every_s: float) -> None:
        """Do something again and again, as a sensor does; ends when it is cancelled."""
        while True:
            action()
            await anyio.sleep(every_s)

    async def _ask(self, subject: str, request: msgspec.Struct) -> None:
        with anyio.fail_after(PATIENCE_S):
            while True:
                try:
                    answer = await self._bus.request(subject, codec.encode(request))
                    break
                except TemporaryError:
                    await anyio.sleep(0.2)
        reply = codec.decode(ObjectsReply, answer.payload)
        faults = [reply.refused] if reply.refused else []
        faults += [
            f"{result.resource}/{result.name}: {result.message} {'; '.join(e.field + ': ' + e.detail for e in result.errors)}"
            for result in reply.results
            if result.outcome in ("refused", "not found", "blocked")
        ]
        if faults:
            raise RefusedError("\n".join(faults))
