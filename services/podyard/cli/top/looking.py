"""Asks every service process for its metrics, and the queue's leader for its counts."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import anyio
import httpx

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cli.errors import InputError
from podyard.cli.lab.state import LabState
from podyard.cli.services import NAMES
from podyard.cli.top import figures
from podyard.proto import codec, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest

ANSWER_S: Final = 1.0
"""Seconds that a process gets to answer: a person waits for the slowest."""


class Place(NamedTuple):
    """Where a service process serves /metrics."""

    service: str
    instance: str
    http: str


def in_lab(lab: LabState) -> list[Place]:
    """The processes of a lab, in its order."""
    return [Place(found.name, instance, found.http) for instance, found in lab.services.items()]


def named(texts: Sequence[str]) -> list[Place]:
    """Processes as they were typed, `scheduler-2=10.0.0.5:9100`: the service is what the name begins with.

    :raises InputError: if one is not of that form
    """
    found: list[Place] = []
    for text in texts:
        instance, _, http = text.partition("=")
        service = next((name for name in NAMES if instance.replace("-", "_").startswith(name)), "")
        if not service or not http:
            raise InputError(f"--at {text}: expected INSTANCE=HOST:PORT", "for example scheduler-2=127.0.0.1:9100")
        found.append(Place(service, instance, http))
    return found


async def look(places: Sequence[Place]) -> list[figures.Look]:
    """Metrics of all, in the order of `places`; one that does not answer has none."""
    found: dict[str, figures.Look] = {}
    async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as client, anyio.create_task_group() as tasks:
        for place in places:
            tasks.start_soon(_look, client, place, found)
    return [found[place.instance] for place in places]


async def _look(client: httpx.AsyncClient, place: Place, found: dict[str, figures.Look]) -> None:
    samples: dict[str, dict[figures.Labels, float]] = {}
    try:
        answer = await client.get(f"http://{place.http}/metrics", headers={"Accept": "text/plain"})
        samples = figures.parse(answer.text) if answer.is_success else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        samples = {}  # shown as a process that does not answer
    found[place.instance] = figures.Look(
        service=place.service, instance=place.instance, at=time.monotonic(), samples=samples
    )


async def ask_queue(bus: Bus) -> QueueListReply | None:
    """The queue's counts and sessions; None if no leader answers."""
    try:
        answer = await bus.request(
            subjects.queue_verb("list"), codec.encode(QueueListRequest(limit=0)), timeout_s=ANSWER_S
        )
    except BusError:
        return None
    return codec.decode(QueueListReply, answer.payload)
