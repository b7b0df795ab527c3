"""Pods and nodes to create, and creating them: full requests, a few in flight."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import anyio
import msgspec

from podyard.bus import Bus
from podyard.proto import codec, streams, subjects
from podyard.proto.objects_api import ApplyRequest, ObjectsReply

IN_FLIGHT: Final = 4
"""Requests under way: enough to keep the api busy, few enough that it answers each within a second."""

REQUEST_TIMEOUT_S: Final = 30.0
ZONES: Final = ("zone-a", "zone-b", "zone-c")


class LoadError(Exception):
    """The api did not take what the benchmark wants to create."""


def node(number: int) -> dict[str, Any]:
    """A plain node: 32 CPUs, 256 GiB, 110 pods (the reference's node-default.yaml has 4 CPUs, 32Gi, 110)."""
    size = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": ZONES[number % len(ZONES)]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": size, "allocatable": size},
    }


def pod(number: int, namespace: str) -> dict[str, Any]:
    """A plain pod, as the reference's pod-default.yaml: 100m CPU, 500Mi."""
    container = {
        "name": "pause",
        "image": "pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:06}", "namespace": namespace},
        "spec": {"containers": [container]},
    }


def requests(documents: Iterable[dict[str, Any]]) -> list[bytes]:
    """`documents` as encoded requests of at most 256 objects, in order."""
    raws = [msgspec.Raw(msgspec.json.encode(document)) for document in documents]
    return [
        codec.encode(ApplyRequest(objects=tuple(raws[i : i + streams.MAX_BATCH]), who="bench", create_only=True))
        for i in range(0, len(raws), streams.MAX_BATCH)
    ]


async def create(bus: Bus, payloads: Sequence[bytes]) -> None:
    """Send encoded requests in order, `IN_FLIGHT` at a time, until all are answered.

    :raises LoadError: if the api refuses an object
    """
    pending = iter(payloads)

    async def worker() -> None:
        for payload in pending:
            answer = await bus.request(subjects.OBJECTS_APPLY, payload, timeout_s=REQUEST_TIMEOUT_S)
            _check(codec.decode(ObjectsReply, answer.payload))

    async with anyio.create_task_group() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.start_soon(worker)


def _check(reply: ObjectsReply) -> None:
    if reply.refused:
        raise LoadError(reply.refused)
    for result in reply.results:
        if result.outcome != "created":
            raise LoadError(f"{result.resource} {result.name}: {result.outcome} {result.reason}")
