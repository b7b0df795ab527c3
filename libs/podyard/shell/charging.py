"""Writing what quotas count: objects and what is used then in one atomic batch, each a compare-and-set.

So any number of writers never exceeds a quota: of two that judged by the same usage, one batch is refused and
judged anew (docs/rules.md, quota-usage-is-written-with-what-uses-it). What no quota counts is not touched,
and costs no message.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import BatchUnclear, BusError, Conflict, TemporaryError, Unclear
from podyard.bus.outgoing import Outgoing
from podyard.cluster import intents, quota_charges
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import Contended, QuotaExceeded
from podyard.cluster.intents import Author, Intent, Put
from podyard.cluster.quota_charges import Account
from podyard.objects.errors import ObjectError
from podyard.proto import codec, streams
from podyard.proto.codec import MessageError
from podyard.shell import writes
from podyard.shell.writes import Job

ATTEMPTS: Final = 64
"""Batches that are refused in a row before a writer gives up: somebody else's was stored each time."""
UNCLEAR_ATTEMPTS: Final = 3
"""Times that the same batch is sent while no answer comes."""
_NOBODY: Final = Author("")


class Charging:
    """The quotas of one reader's view. Owned by one event loop; writers of one namespace take turns in it, so
    that only other processes are in their way."""

    def __init__(self, bus: Bus, documents: DocumentView) -> None:
        self._bus = bus
        self._documents = documents
        self._turns: dict[str, anyio.Lock] = {}
        """Of namespaces in which somebody writes now."""

    async def settle(self, jobs: Sequence[Job], author: Author) -> None:
        """Settle those of the prepared, open jobs that take something of a quota; leave all others open."""
        for namespace, found in self._counted(jobs).items():
            async with self._turn(namespace):
                await _Charge(self._bus, self._documents, namespace, author).write(found)

    async def refusals(self, wanted: Sequence[Intent]) -> dict[int, QuotaExceeded | BusError]:
        """What quotas would say now if all of it were written, by number in `wanted`; nothing is written.

        :param wanted: of an object that is named twice the last one counts
        """
        limited = {one for one in _namespaces(wanted) if quota_charges.quotas_in(self._documents, one)}
        if not limited:
            return {}
        numbers = {intent.key: number for number, intent in enumerate(wanted) if intent.key.namespace in limited}
        jobs = {number: Job(wanted[number]) for number in numbers.values()}
        for job in jobs.values():
            job.prepare(_NOBODY)
        for namespace, found in self._counted([job for job in jobs.values() if job.result is None]).items():
            charge = _Charge(self._bus, self._documents, namespace, _NOBODY)
            charge.judge(found, await charge.accounts(found), len(found))
        refused = ((number, job.result) for number, job in jobs.items())
        return {number: result for number, result in refused if isinstance(result, QuotaExceeded | BusError)}

    def _counted(self, jobs: Sequence[Job]) -> dict[str, list[Job]]:
        """Those of the jobs that a quota may count, by namespace."""
        quotas = {
            namespace: quota_charges.quotas_in(self._documents, namespace)
            for namespace in _namespaces([job.intent for job in jobs])
        }
        found: dict[str, list[Job]] = defaultdict(list)
        for job in jobs:
            key = job.intent.key
            limits = quotas[key.namespace]
            if limits and isinstance(job.step, Put) and quota_charges.may_count(limits, key.resource, job.before):
                found[key.namespace].append(job)
        return found

    @asynccontextmanager
    async def _turn(self, namespace: str) -> AsyncGenerator[None]:
        lock = self._turns.setdefault(namespace, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._turns.pop(namespace, None)


def _namespaces(wanted: Sequence[Intent]) -> set[str]:
    return {intent.key.namespace for intent in wanted}


class _Charge:
    """One writer's turn in a namespace."""

    def __init__(self, bus: Bus, documents: DocumentView, namespace: str, author: Author) -> None:
        self._bus = bus
        self._documents = documents
        self._namespace = namespace
        self._author = author
        self._refused = 0
        """Batches in a row."""
        self._seen: dict[str, int] = {}
        """Sequences of the facts by which was judged last, by subject."""

    async def write(self, jobs: Sequence[Job]) -> None:
        """Until each is settled, or found to take nothing."""
        left = list(jobs)
        while left:
            accounts = await self.accounts(left)
            most = max(1, streams.MAX_BATCH - len(accounts))
            charged, after, left = self.judge(left, accounts, most)
            if not charged:
                continue
            facts = [
                Outgoing(quota_charges.subject_of(new.quota), codec.encode(new.fact), expect=new.sequence)
                for old, new in zip(accounts, after, strict=True)
                if new.fact is not None and old.fact != new.fact
            ]
            await self._send(charged, facts)
            left = [job for job in (*charged, *left) if job.result is None and isinstance(job.step, Put)]

    async def accounts(self, jobs: Sequence[Job]) -> list[Account]:
        """The quotas as they stand. If that cannot be read, no job is written."""
        found: list[Account] = []
        try:
            for quota in quota_charges.quotas_in(self._documents, self._namespace):
                last = await self._bus.get(streams.CLUSTER.name, quota_charges.subject_of(quota))
                found.append(quota_charges.account_of(quota, intents.stored_of(last)))
        except BusError as error:
            for job in jobs:
                job.result = error
        return found

    def judge(
        self, jobs: Sequence[Job], accounts: Sequence[Account], most: int
    ) -> tuple[list[Job], list[Account], list[Job]]:
        """Jobs of one batch that take something, the accounts after it, and the jobs that are to be judged
        later. One that exceeds a quota has its result; one that takes nothing is in no list.

        :param most: jobs in the batch
        """
        charged: list[Job] = []
        after, size = list(accounts), 0
        for number, job in enumerate(jobs):
            if job.result is not None or job.message is None or not isinstance(job.step, Put):
                continue
            size += len(job.message.payload)
            if len(charged) == most or (charged and size > writes.BATCH_BYTES):
                return charged, after, list(jobs[number:])
            try:
                changed = quota_charges.judge(after, job.intent.key, job.before, job.step.document)
            except (QuotaExceeded, ObjectError, MessageError) as error:
                job.result = error
                continue
            if changed is not None:
                after = changed
                charged.append(job)
        return charged, after, []

    async def _send(self, jobs: Sequence[Job], facts: Sequence[Outgoing]) -> None:
        """One batch. Facts come last: who has read them has read what they count."""
        messages = [*(job.message for job in jobs if job.message is not None), *facts]
        for attempt in range(UNCLEAR_ATTEMPTS):
            try:
                ack = await self._bus.publish_batch(messages)
            except Unclear as error:
                for job in jobs:
                    job.unclear = True  # the same compare-and-sets again tell what became of the first
                if attempt == UNCLEAR_ATTEMPTS - 1:
                    self._give_up(jobs, error)
            except (Conflict, BatchUnclear) as error:
                await self._conflict(jobs, facts, error)
                return
            except TemporaryError as error:
                await self._pause(jobs, error)
                return
            except BusError as error:
                self._give_up(jobs, error)
                return
            else:
                self._refused = 0
                first = ack.sequence - len(messages) + 1
                for number, job in enumerate(jobs):
                    job.written(first + number)
                return

    async def _conflict(self, jobs: Sequence[Job], facts: Sequence[Outgoing], error: BusError) -> None:
        """Somebody else wrote a fact, or an object: the objects are looked at if no fact was, or if this
        very batch may have been stored before."""
        seen = {fact.subject: fact.expect or 0 for fact in facts}
        if seen == self._seen or any(job.unclear for job in jobs):
            versions = await writes.read_all(self._bus, [job.intent.key for job in jobs])
            for job, stored in zip(jobs, versions, strict=True):
                writes.replan(job, stored, self._author)
        self._seen = seen
        await self._pause([job for job in jobs if job.result is None], error)

    async def _pause(self, jobs: Sequence[Job], error: BusError) -> None:
        self._refused += 1
        if self._refused >= ATTEMPTS:
            for job in jobs:
                contended = isinstance(error, Conflict | BatchUnclear)
                job.result = Contended(job.intent.key, self._refused) if contended else error
            return
        await writes.get_out_of_step(self._refused)

    def _give_up(self, jobs: Sequence[Job], error: BusError) -> None:
        for job in jobs:
            job.result = error
