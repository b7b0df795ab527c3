"""The api as a process."""

from typing import Annotated, Final

import anyio
import msgspec
from msgspec import Meta

from podyard.api.door import Door
from podyard.api.instruments import Instruments
from podyard.api.requesters import Requesters, read_names
from podyard.cluster.documents import DocumentView
from podyard.cluster.informer import Informer, with_placements
from podyard.proto import subjects
from podyard.runtime.service import Service, ServiceDefinition

NAME: Final = "api"
QUEUE_GROUP: Final = "api"
"""All instances share it: each request goes to one of them."""

OBJECTS_CHECK: Final = "objects"
REQUESTS_CHECK: Final = "requests"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the api."""

    max_inflight: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Requests of one verb in hand at once; each has up to 256 objects, so more would only wait for the same core."""
    identities_file: str = ""
    """Names of identities by their public keys, in a lab with accounts: who asks is then what the NATS server says, not the request."""


async def main(service: Service[Settings]) -> None:
    """Follow the objects, and answer once they are all known."""
    requesters = Requesters(read_names(service.settings.identities_file))  # small, and nothing is answered yet
    view = DocumentView()

    def on_contact(fresh: bool) -> None:
        service.health.set_ready(OBJECTS_CHECK, fresh, "" if fresh else "nothing was heard of CLUSTER for 2 s")

    informer = Informer(
        service.bus, view, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service=NAME, on_contact=on_contact
    )
    service.health.set_ready(OBJECTS_CHECK, False, "listing objects")
    service.health.set_ready(REQUESTS_CHECK, False, "not answering before the objects are listed")
    instruments = Instruments(service.metrics)
    instruments.follow(lambda: informer.position)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        door = Door(
            service.bus, view, service.spans, instruments, service=NAME, now=service.clock.now, requesters=requesters
        )
        await _serve(service, door)
        service.health.set_ready(REQUESTS_CHECK, True)
        service.log.info("answering", position=informer.position)


async def _serve(service: Service[Settings], door: Door) -> None:
    endpoints = (
        ("apply", subjects.OBJECTS_APPLY, door.apply),
        ("delete", subjects.OBJECTS_DELETE, door.delete),
        ("evict", subjects.OBJECTS_EVICT, door.evict),
    )
    for name, subject, handler in endpoints:
        await service.endpoints.serve(
            name, subject, handler, queue_group=QUEUE_GROUP, max_inflight=service.settings.max_inflight
        )


SERVICE: Final = ServiceDefinition(
    name=NAME,
    settings_type=Settings,
    main=main,
    description="The door for people and bridges: checks, writes, deletes and evicts objects.",
)
