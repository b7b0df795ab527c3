"""The api as a process."""

from typing import Final

import anyio

from podyard.api.door import Door
from podyard.api.instruments import Instruments
from podyard.api.requesters import Requesters, read_names
from podyard.api.settings import ApiSettings
from podyard.api.vault import Vault, read_key
from podyard.cluster.documents import DocumentView, whole_kind
from podyard.proto import subjects
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.informer import with_placements
from podyard.shell.reading import Reading

NAME: Final = "api"
QUEUE_GROUP: Final = "api"
"""All instances share it: each request goes to one of them."""

REQUESTS_CHECK: Final = "requests"


async def main(service: Service[ApiSettings]) -> None:
    """Follow the objects, and answer once they are all known."""
    file = service.settings.identities_file
    vault = Vault(read_key(service.settings.secrets_key_file))
    requesters = Requesters(read_names(file), file)  # small, and nothing is answered yet
    view = DocumentView(whole_kind)
    reading = Reading(
        service.bus, view, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service.health, service=NAME
    )
    service.health.set_ready(REQUESTS_CHECK, False, "not answering before the objects are listed")
    instruments = Instruments(service.metrics)
    instruments.follow(lambda: reading.informer.position)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reading.run)
        await reading.informer.synced()
        door = Door(
            service.bus,
            view,
            service.spans,
            instruments,
            service=NAME,
            now=service.clock.now,
            requesters=requesters,
            vault=vault,
            log=service.log,
        )
        await _serve(service, door)
        service.health.set_ready(REQUESTS_CHECK, True)
        service.log.info("answering", position=reading.informer.position)


async def _serve(service: Service[ApiSettings], door: Door) -> None:
    endpoints = (
        ("apply", subjects.OBJECTS_APPLY, door.apply),
        ("apply-node", subjects.ALL_NODE_APPLIES, door.apply_node),
        ("delete", subjects.OBJECTS_DELETE, door.delete),
        ("delete-node", subjects.ALL_NODE_DELETES, door.delete_node),
        ("evict", subjects.OBJECTS_EVICT, door.evict),
        ("reveal", subjects.OBJECTS_REVEAL, door.reveal),
    )
    for name, subject, handler in endpoints:
        await service.endpoints.serve(
            name, subject, handler, queue_group=QUEUE_GROUP, max_inflight=service.settings.max_inflight
        )


SERVICE: Final = ServiceDefinition(
    name=NAME,
    settings_type=ApiSettings,
    main=main,
    description="The door for people and bridges: checks, writes, deletes and evicts objects; it alone can read Secrets.",
)
