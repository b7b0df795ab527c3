"""Carries out what the core wants written, many objects in one batch. Decides nothing, gives up nothing that
is unclear."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from podyard.bus import Ack, Bus, Outgoing
from podyard.bus.errors import BatchUnclear, BusError, Conflict, TemporaryError, Unclear
from podyard.cluster import disruption, intents
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import ClusterError, ObjectMissing, QuotaExceeded
from podyard.cluster.intents import Author, Intent, Keep, Stored, Written
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects.errors import ObjectError
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.shell import writes
from podyard.shell.charging import Charging
from podyard.workloads.core.actions import Alter, Count, Create, Delete, Done, Remove, Usage, Work, Write

log: Final = logging.getLogger("podyard.workloads")

WHO: Final = "workloads"
AT_ONCE: Final = 256
"""Objects in one batch."""

RETRY_S: Final = 0.5


class Writer:
    """The hand of workloads on the bus."""

    def __init__(
        self,
        bus: Bus,
        view: ClusterView,
        documents: DocumentView,
        on_trouble: Callable[[str], None],
        on_written: Callable[[Work, Write, writes.Result], None],
        now: Callable[[], float],
    ) -> None:
        """
        :param on_trouble: told why the last writes are not settled; with an empty text once some are
        :param on_written: told what came of each write, but of those of an atomic batch
        :param now: seconds since 1970, UTC
        """
        self._bus = bus
        self._view = view
        self._documents = documents
        self._on_trouble = on_trouble
        self._on_written = on_written
        self._now = now
        self._charging = Charging(bus, documents)

    async def carry_out(self, work: Work, trace: str = "") -> Done:
        """Write everything; returns when all of it is settled.

        :param trace: traceparent that goes with each object
        """
        if work.atomic:
            return await self._together(work)
        author = Author(WHO, work.why, trace)
        position, failures, excess = 0, list[str](), False
        for start in range(0, len(work.writes), AT_ONCE):
            part = work.writes[start : start + AT_ONCE]
            results = await self._settled([self._intent(write) for write in part], author)
            for write, result in zip(part, results, strict=True):
                if not (isinstance(result, QuotaExceeded) and excess):  # of many pods in a row the first tells it
                    self._on_written(work, write, result)
                excess = excess or isinstance(result, QuotaExceeded)
                if isinstance(result, Written):
                    position = max(position, 0 if isinstance(result.step, Keep) else result.sequence)
                elif not isinstance(result, ObjectMissing):  # gone already is as good as done
                    failures.append(str(result))
        return Done(work.owner, position, failures)

    async def count(self, count: Count) -> Done:
        """Store what is used of a quota. A conflict leaves the quota to its next look: something was charged
        to it meanwhile."""
        owner, position = count.owner, 0
        messages = [_usage_message(owner, usage) for usage in count.usages]
        for answer in await self._bus.publish_many(messages):
            if isinstance(answer, Ack):
                position = max(position, answer.sequence)
            elif isinstance(answer, Conflict):
                position = max(position, await self._last())
            else:
                self._on_trouble(str(answer))
                return Done(owner, position, (str(answer),))
        self._on_trouble("")
        return Done(owner, position, ())

    async def _settled(self, wanted: Sequence[Intent], author: Author) -> list[writes.Result]:
        """Results of all; what is unclear or could not be sent is tried again: a create that may yet arrive
        must not be forgotten.

        Every intent is idempotent, by uid: the same again finds its own earlier write.
        """
        results: dict[int, writes.Result] = {}
        left = list(range(len(wanted)))
        while left:
            answers = await writes.carry_out(self._bus, [wanted[index] for index in left], author, self._charging)
            results.update(zip(left, answers, strict=True))
            left = [index for index in left if isinstance(results[index], Unclear | TemporaryError)]
            if left:
                log.warning("%d writes are not settled, asking again: %s", len(left), results[left[0]])
                self._on_trouble(str(results[left[0]]))
                await anyio.sleep(RETRY_S)
        self._on_trouble("")
        return [results[index] for index in range(len(wanted))]

    def _intent(self, write: Write) -> Intent:
        known = self._known(write.key)
        match write:
            case Create():
                name = "" if write.replaces is None else write.replaces.name
                return Intent(write.key, intents.creation(write.key, write.document), known, write.causes, name)
            case Alter():
                return Intent(write.key, intents.alteration(write.key, write.alter, write.uid), known)
            case Delete() if write.reason:
                plan = disruption.deletion(
                    write.key,
                    uid=write.uid,
                    now=self._now(),
                    occupies=self._occupies,
                    reason=write.reason,
                    message=write.message,
                )
                return Intent(write.key, plan, known)
            case Delete():
                plan = intents.deletion(
                    write.key,
                    now=self._now(),
                    occupies=self._occupies,
                    uid=write.uid,
                    propagation=write.propagation,
                )
                return Intent(write.key, plan, known)
            case Remove():
                plan = intents.deletion(write.key, now=self._now(), occupies=self._occupies, grace_s=0, uid=write.uid)
                return Intent(write.key, plan, known)

    def _known(self, key: ObjectKey) -> Stored | None:
        return self._documents.stored(key)

    def _occupies(self, uid: str) -> bool:
        pod = self._view.pods_by_uid.get(uid)
        return pod is not None and (pod.bound is not None or pod.unknown_place)

    async def _together(self, work: Work) -> Done:
        """All or nothing. A conflict leaves the key to its next look; so does an unclear answer, once the
        view shows what came of it."""
        author = Author(WHO, work.why)
        messages: list[Outgoing] = []
        for write in work.writes:
            intent = self._intent(write)
            try:
                step = intent.plan(intent.known)
            except (ClusterError, ObjectError, MessageError) as error:
                return Done(work.owner, 0, (str(error),))
            if not isinstance(step, Keep):
                messages.append(writes.message_of(write.key, step, intent.known, author))
        try:
            ack = await self._bus.publish_batch(messages) if messages else None
        except (Conflict, BatchUnclear) as error:
            log.info("%s: %s; looking again", work.owner, error)
            return Done(work.owner, await self._last(), ())
        except BusError as error:
            self._on_trouble(str(error))
            return Done(work.owner, 0, (str(error),))
        self._on_trouble("")
        return Done(work.owner, ack.sequence if ack is not None else 0, ())

    async def _last(self) -> int:
        """Where the stream ends now: a view that has got there has seen whatever was in the way."""
        while True:
            try:
                return await self._bus.last_sequence(streams.CLUSTER.name)
            except BusError as error:
                log.info("the stream does not answer: %s", error)
                await anyio.sleep(RETRY_S)


def _usage_message(owner: ObjectKey, usage: Usage) -> Outgoing:
    subject = subjects.quota_usage(owner.namespace, owner.name, usage.uid)
    if usage.fact is None:
        return Outgoing(subject, b"", expect=usage.expect, deleted=True, expires=True)
    return Outgoing(subject, codec.encode(usage.fact), expect=usage.expect)
