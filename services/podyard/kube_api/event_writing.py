"""Writing events: they go into their stream, as a compare-and-set on what lies there under their object and
id. The api has no part in it: nobody admits an event but by its own rules.
"""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from uuid import uuid4

import anyio
from msgspec.structs import replace

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError, Conflict, TemporaryError, TooLarge, Unclear
from podyard.bus.outgoing import Outgoing
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core import errors, event_forms, event_rules, outcomes
from podyard.kube_api.core.deleting import Wanted
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.event_store import EVENTS, EventMoment, EventStore
from podyard.kube_api.core.forms import document_of
from podyard.kube_api.core.served import Served
from podyard.kube_api.large import LargeWork
from podyard.kube_api.writing import (
    SEEN_S,
    TRIES,
    Change,
    Left,
    Options,
    Outcome,
    check_preconditions,
    check_version,
)
from podyard.objects import times
from podyard.objects.admission import ALWAYS_THERE, generated_name
from podyard.objects.documents import Document, child, mapping
from podyard.objects.errors import AdmissionError
from podyard.proto import codec
from podyard.proto.objects_api import FieldError, Manner
from podyard.proto.operations import K8sEvent


class EventWriter:
    """Writes for those who ask this instance."""

    def __init__(
        self,
        bus: Bus,
        work: LargeWork,
        events: EventStore,
        namespace: Callable[[str], Document | None],
        reached: Callable[[int], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        """
        :param namespace: an object of that kind; None: it is not there
        :param reached: awaits that this instance has read so far of the stream of events
        :param now: seconds since 1970, UTC
        """
        self._bus = bus
        self._work = work
        self._events = events
        self._namespace = namespace
        self._reached = reached
        self._now = now
        self._random = Random()

    async def create(self, served: Served, document: Document, options: Options) -> Outcome:
        """POST of an event, which names its namespace.

        :raises ApiError: it is not created
        """
        metadata = mapping(document, "metadata")
        space = str(metadata.get("namespace") or "")
        if not metadata.get("name"):
            begins = str(metadata.get("generateName") or "")
            metadata["name"] = generated_name(begins, lambda name: self._there(space, name) is not None, self._random)
        warnings: list[str] = []
        event = _settled(served, document, None, options, warnings)
        self._check_namespace(served, space, str(metadata["name"]))
        child(event, "metadata").update(uid=str(uuid4()), creationTimestamp=times.rfc3339(self._now()))
        for _ in range(TRIES):
            name = str(event["metadata"]["name"])
            if self._there(space, name) is not None:
                raise errors.already_exists(served.resource, served.group, name)
            shown = await self._store(served, event, options)
            if shown is not None:
                return Outcome(shown, tuple(warnings))
        raise errors.overtaken(served.resource, served.group, str(event["metadata"]["name"]))

    async def change(
        self,
        served: Served,
        key: ObjectKey,
        change: Change,
        options: Options,
        *,
        manner: Manner = "replace",
        size: int = 0,
    ) -> Outcome:
        """PUT or PATCH of an event, of its next version if somebody is faster.

        :param size: bytes that are worked on besides the event
        :raises ApiError: it is not changed
        """
        for _ in range(TRIES):
            known = self._found(served, key)
            now = self._shown(served, key)
            wanted = await self._work.do(size, lambda now=now: change(now))
            check_version(served, key, wanted, now)
            warnings: list[str] = []
            old = event_rules.bare(known.document({}))
            event = _settled(served, wanted, old, options, warnings)
            if event == old:
                return Outcome(now, tuple(warnings))
            shown = await self._store(served, event, options)
            if shown is not None:
                return Outcome(shown, tuple(warnings))
        raise errors.overtaken(served.resource, served.group, key.name)

    async def delete(self, served: Served, key: ObjectKey, wanted: Wanted, options: Options) -> Left:
        """DELETE of an event; returns it as it was last. It waits for nothing, and owns nothing.

        :raises ApiError: it is not deleted
        """
        for _ in range(TRIES):
            known = self._found(served, key)
            now = self._shown(served, key)
            check_preconditions(served, key, now, uid=wanted.uid, version=wanted.version)
            if options.dry_run:
                return Left(now, gone=True)
            marker = replace(known.event, deleted=True, at=self._now())
            if await self._publish(known.subject or event_rules.subject(marker), marker, key):
                return Left(now, gone=True)
        raise errors.overtaken(served.resource, served.group, key.name)

    # ---- parts ---------------------------------------------------------------------------------------------

    def _there(self, namespace: str, name: str) -> EventMoment | None:
        return self._events.moment(ObjectKey(EVENTS, namespace, name))

    def _found(self, served: Served, key: ObjectKey) -> EventMoment:
        known = self._events.moment(key)
        if known is None:
            raise errors.not_found(served.resource, served.group, key.name)
        return known

    def _shown(self, served: Served, key: ObjectKey) -> Document:
        """As it is answered.

        :raises ApiError: it is not there
        """
        item = self._events.item(key)
        if item is None:
            raise errors.not_found(served.resource, served.group, key.name)
        found = event_forms.shown(document_of(item, {}), served.api_version)
        return {"kind": served.kind, "apiVersion": served.api_version, **found}

    def _check_namespace(self, served: Served, namespace: str, name: str) -> None:
        """Source: admission plugin NamespaceLifecycle."""
        found = self._namespace(namespace)
        if found is None:
            if namespace not in ALWAYS_THERE:
                raise errors.not_found("namespaces", "", namespace)
        elif mapping(found, "metadata").get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            fault = FieldError(field="metadata.namespace", type=outcomes.NAMESPACE_TERMINATING, detail=why)
            raise _refused(served, [fault], namespace, name)

    async def _store(self, served: Served, event: Document, options: Options) -> Document | None:
        """Store what is settled; the event as it is shown then. None: somebody was faster."""
        if options.dry_run:
            return {
                "kind": served.kind,
                **event_forms.shown({**event, "apiVersion": event_forms.CORE}, served.api_version),
            }
        metadata = event["metadata"]
        key = ObjectKey(EVENTS, str(metadata["namespace"]), str(metadata["name"]))
        found = event_rules.message(event, self._now())
        if not await self._publish(event_rules.subject(found), found, key):
            return None
        return self._shown(served, key)

    async def _publish(self, subject: str, event: K8sEvent, key: ObjectKey) -> bool:
        """Store a message in the place of what lies there, and wait until it was read here; False: somebody
        was faster.

        :raises ApiError: it is not stored
        """
        message = Outgoing(subject, codec.encode(event))
        try:
            try:
                ack = await self._bus.publish(message.but(expect=self._sequence(subject, key)))
            except Conflict as conflict:
                await self._come_to(conflict.last_sequence or 0)
                if self._sequence(subject, key) or not conflict.last_sequence:
                    return False
                # it has ended by this clock, and lies there for a moment more
                ack = await self._bus.publish(message.but(expect=conflict.last_sequence))
        except Conflict:
            return False
        except TooLarge as error:
            raise too_large() from error
        except (TemporaryError, Unclear) as error:
            raise ApiError(503, "ServiceUnavailable", f"the event is not stored: {error}", retry_after_s=1) from error
        except BusError as error:
            raise ApiError(
                500, "InternalError", f"Internal error occurred: the event is not stored: {error}"
            ) from error
        await self._come_to(ack.sequence)
        return True

    def _sequence(self, subject: str, key: ObjectKey) -> int:
        lies, sequence = self._events.last_of(key)
        return sequence if lies == subject else 0

    async def _come_to(self, sequence: int) -> None:
        with anyio.move_on_after(SEEN_S):
            await self._reached(sequence)


def too_large() -> ApiError:
    """Source: NewRequestEntityTooLargeError."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {event_rules.MOST_BYTES}")


def _settled(
    served: Served, document: Document, old: Document | None, options: Options, warnings: list[str]
) -> Document:
    """
    :raises ApiError: 400, 413, 422: it is no event
    """
    try:
        return event_rules.settled(
            document, served.api_version, old=old, validation=options.validation, warnings=warnings
        )
    except AdmissionError as error:
        faults = [FieldError(field=one.field, type=one.type, detail=one.detail) for one in error.faults]
        space = str(mapping(document, "metadata").get("namespace") or "")
        raise _refused(served, faults, space, error.name) from error
    except event_rules.TooLargeError as error:
        raise too_large() from error


def _refused(served: Served, faults: Sequence[FieldError], namespace: str, name: str) -> ApiError:
    return outcomes.faulty(
        faults,
        kind=served.kind,
        group=served.group,
        version=served.version,
        resource=served.resource,
        name=name,
        namespace=namespace,
    )
