"""What a person would do with `podyard apply`, `delete` and `publish`, repeated while the api is away."""

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, Final

import anyio

from podyard.bus import Bus, TemporaryError, Unclear
from podyard.cli import objects_client
from podyard.objects import manifests
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectResult
from podyard.proto.signals import NodeSignals, PodUsage, SignalValue
from podyard.runtime import clock
from podyard.telling import words

WHO: Final = "demo"
PATIENCE_S: Final = 30.0
ANSWER_S: Final = 5.0
"""Seconds for one answer. An api that dies with the request in hand never answers: its successor is asked
again."""

RETRY_S: Final = 0.2
GIBIBYTE: Final = 1024**3


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
        await self._ask(lambda: objects_client.apply(self._bus, documents, why=why, who=WHO, timeout_s=ANSWER_S))

    async def delete(self, resource: str, namespace: str, name: str, why: str) -> None:
        """Ask for the end of one object.

        :raises RefusedError: with the api's reasons
        """
        target = ObjectRef(resource=resource, namespace=namespace, name=name)
        await self._ask(lambda: objects_client.delete(self._bus, [target], why=why, who=WHO, timeout_s=ANSWER_S))

    def memory(self, node: str, available_bytes: int, capacity_bytes: int, usage: dict[tuple[str, str], int]) -> None:
        """Publish how much memory a node has left, and what its pods use (by namespace and name, bytes)."""
        pods = tuple(PodUsage(namespace=ns, name=name, memory_bytes=used) for (ns, name), used in usage.items())
        level = SignalValue(available=available_bytes, capacity=capacity_bytes)
        signals = NodeSignals(node=node, signals={"memory.available": level}, pods=pods, who=WHO, at=clock.now())
        self._bus.send(subjects.signals(node), codec.encode(signals))

    def idle(self, node: str) -> None:
        """Say that a node uses nothing any more."""
        self._bus.send(subjects.signals(node), codec.encode(NodeSignals(node=node, who=WHO, at=clock.now())))

    async def repeat(self, action: Callable[[], None], every_s: float) -> None:
        """Do something again and again, as a sensor does; ends when it is cancelled."""
        while True:
            action()
            await anyio.sleep(every_s)

    async def _ask(self, ask: Callable[[], Awaitable[list[ObjectResult]]]) -> None:
        """Ask until there is an answer; a write that was done already changes nothing the second time."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                try:
                    results = await ask()
                    break
                except (TemporaryError, Unclear):
                    await anyio.sleep(RETRY_S)
        faults = [_fault(result) for result in results if result.outcome not in objects_client.GOOD]
        if faults:
            raise RefusedError("\n".join(faults))


def _fault(result: ObjectResult) -> str:
    return f"{result.resource} {result.name}: {words.spoken(result.outcome)} {result.reason}"
