"""The Kubernetes API as a process."""

import importlib.metadata
import platform
import socket
from collections.abc import Sequence
from typing import Final

import anyio
import anyio.to_thread
import structlog

from podyard.cluster import intents
from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.kube_api import beginning
from podyard.kube_api.binding import Binding
from podyard.kube_api.changing import Changing
from podyard.kube_api.core import bindings, discovery, hidden_values, media
from podyard.kube_api.core.access import Access
from podyard.kube_api.core.built_in import built_in
from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.completing import complete
from podyard.kube_api.core.event_store import EventStore
from podyard.kube_api.core.event_telling import Teller
from podyard.kube_api.core.forms import in_order
from podyard.kube_api.core.openapi import OpenApi
from podyard.kube_api.core.served import Served
from podyard.kube_api.core.store import Readers, Store
from podyard.kube_api.event_reading import EventReading
from podyard.kube_api.event_writing import EventWriter
from podyard.kube_api.instruments import Instruments
from podyard.kube_api.large import LargeWork
from podyard.kube_api.measuring import Measuring
from podyard.kube_api.reading import Reading
from podyard.kube_api.serving import Api
from podyard.kube_api.settings import KubeApiSettings
from podyard.kube_api.unscheduled import Unscheduled
from podyard.kube_api.writing import Known, Writer
from podyard.objects.documents import Document, copy
from podyard.objects.extensions import DEFINITIONS
from podyard.proto import subjects
from podyard.runtime.connections import Bounds, Configured, Door
from podyard.runtime.http import CERTIFICATES_CHECK, CannotListenError, Keys
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell import reading
from podyard.shell.informer import Followed

NAME: Final = "kube_api"
REQUESTS_CHECK: Final = "requests"
BACKLOG: Final = 1024
"""Connections that the kernel holds until they are accepted: informers come all at once after a restart."""
IDLE_S: Final = 90.0
"""How long a connection may be without a request: as long as client-go keeps one."""

FOLLOWED: Final = (
    subjects.OBJECTS_WITHOUT_FACTS,
    *subjects.ALL_FACTS,
    subjects.ALL_NOMINATIONS,
    subjects.ALL_QUOTA_USAGE,
    subjects.ALL_POD_SCHEDULED,
    subjects.ALL_BINDINGS,
)
"""Objects and all that is joined to them; of placements the bindings themselves, so that a pod's version is
the same to who lists it later."""


async def main(service: Service[KubeApiSettings]) -> None:
    """Follow everything, and answer once it is known."""
    settings = service.settings
    keys = Keys(settings, service.health.trouble(CERTIFICATES_CHECK), service.log)
    listener = _listen(settings)
    address = f"{settings.bind_address}:{listener.getsockname()[1]}"
    store = Store(history_bytes=settings.history_bytes)
    events = EventStore(service.clock.now(), service.process.retention.events_s)
    teller = Teller(store, events, lambda: answers.watches_events)
    definitions = _Definitions(store, service.log)

    def is_there(key: ObjectKey) -> bool:
        return store.item(key) is not None

    def changed(changes: Sequence[Change]) -> None:
        definitions.changed(changes)
        unscheduled.look()

    def listed(reason: str) -> None:
        definitions.listed(reason)
        event_reading.cluster_listed(reason)

    followed = reading.Reading(
        service.bus,
        store,
        Followed(FOLLOWED, FOLLOWED),
        service.health,
        service=NAME,
        on_changes=changed,
        on_listed=listed,
        lasting=True,
    )
    unscheduled = Unscheduled(service.bus, store, followed.informer.reached, service.log)
    event_reading = EventReading(service.bus, events, teller, unscheduled.attempted, service.clock.now)
    service.health.set_ready(REQUESTS_CHECK, False, "not answering before the objects are listed")
    work = LargeWork()
    writer = Writer(
        service.bus,
        work,
        lambda key: _known(store, key),
        lambda name: _node(store, name),
        followed.informer.reached,
        service.clock.now,
    )
    answers = Reading(
        store,
        events,
        writer.reveal,
        followed.informer.reached,
        now=service.clock.now,
        watch_s=settings.watch_s,
    )
    store.reader, events.reader = Readers(answers.reader, teller), answers.event_reader
    event_writer = EventWriter(
        service.bus, work, events, lambda name: _namespace(store, name), event_reading.reached, service.clock.now
    )
    measuring = Measuring(store, service.clock.now)
    instruments = Instruments(service.metrics)
    instruments.follow(lambda: answers.watches, lambda: store.position)
    api = Api(
        access=Access(settings.people, settings.readers),
        tokens=lambda: keys.material.tokens,
        catalogue=definitions.served,
        reading=answers,
        instruments=instruments,
        measuring=measuring,
        changing=Changing(
            writer,
            work,
            event_writer,
            Binding(
                service.bus,
                service.session,
                followed.informer.reached,
                lambda pod, node: bindings.decided_at(pod, node, lambda key: _sequence(store, key)),
                service.clock.now,
            ),
            lambda namespace, name: _pod(store, namespace, name),
            service.clock.now,
        ),
        work=work,
        health=service.health,
        version=discovery.version(importlib.metadata.version("podyard"), _platform()),
        address=lambda: address,
        request_s=settings.request_s,
    )
    bounds = Bounds(silent_s=IDLE_S, answer_s=2 * settings.request_s, most=settings.connections)
    door = Door(listener, Configured(api, bounds), instruments.let_go, keys.context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(followed.run)
        # what is described of built-in kinds is kept: nobody waits for it later
        await anyio.to_thread.run_sync(OpenApi(Catalogue.of(())).index, media.JSON)
        await followed.informer.synced()
        tasks.start_soon(event_reading.run)
        await service.bus.subscribe(subjects.ALL_USAGE, measuring.hear)
        await event_reading.listed()
        tasks.start_soon(door.admit)
        tasks.start_soon(keys.keep_fresh, door.ask_anew)
        tasks.start_soon(unscheduled.run)
        tasks.start_soon(beginning.make, writer, _of_built_in, is_there, service.log)
        service.health.set_ready(REQUESTS_CHECK, True)
        service.log.info("answering", address=f"https://{address}", position=followed.informer.position)


class _Definitions:
    """What is served, made anew when a CustomResourceDefinition changes."""

    def __init__(self, store: Store, log: structlog.stdlib.BoundLogger) -> None:
        self._store = store
        self._log = log
        self._made: tuple[Catalogue, OpenApi] | None = None

    def served(self) -> tuple[Catalogue, OpenApi]:
        """All that is served now, and its description."""
        if self._made is None:
            objects = self._store.objects
            catalogue = Catalogue.of(objects.document(key) for key in objects.keys(DEFINITIONS))
            self._made = catalogue, OpenApi(catalogue)
        return self._made

    def changed(self, changes: Sequence[Change]) -> None:
        """These changes were read."""
        if any(change.resource == DEFINITIONS for change in changes):
            self._made = None

    def listed(self, reason: str) -> None:
        """Everything was listed anew."""
        self._made = None
        # of what changed in between, the outcome alone is told: who looks for an event has to know
        gap = self._store.gap
        self._log.info("listed", reason=reason, after=gap.after, to=gap.to)


def _namespace(store: Store, name: str) -> Document | None:
    item = store.item(ObjectKey("namespaces", "", name))
    return None if item is None else item.moment.document({})


def _of_built_in(resource: str) -> Served:
    return next(one for one in built_in() if one.resource == resource and one.stored is not None)


def _known(store: Store, key: ObjectKey) -> Known | None:
    item = store.item(key)
    stored = store.objects.documents.stored(key)
    if item is None or stored is None:
        return None
    plain = hidden_values.encode(item.moment.document({}), key.resource)
    plain["metadata"]["resourceVersion"] = str(item.version)
    document = copy(plain)
    complete(key.resource, document, item.moment.evidence)
    document["metadata"] = in_order(document["metadata"])
    return Known(document, stored, plain, item.moment.viewed)


def _node(store: Store, name: str) -> NodeView | None:
    return store.objects.view.nodes.get(name)


def _pod(store: Store, namespace: str, name: str) -> PodView | None:
    return store.objects.view.pods.get((namespace, name))


def _sequence(store: Store, key: ObjectKey) -> int:
    return intents.sequence_of(store.objects.documents.stored(key))


def _listen(settings: KubeApiSettings) -> socket.socket:
    """
    :raises CannotListenError: the port cannot be had
    """
    host, port = settings.bind_address, settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListenError(host, port, "kube_api.port", error) from error
    listener.setblocking(False)
    return listener


def _platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}/{machine}"


SERVICE: Final = ServiceDefinition(
    name=NAME,
    settings_type=KubeApiSettings,
    main=main,
    description="The Kubernetes API: kubectl, helm and client libraries work with it as with the API server's.",
)
