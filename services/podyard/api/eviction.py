"""One eviction, as the eviction API does it. Judgement is in `cluster.budgets`.

Whatever decides is read anew for each attempt: the pod, its placement, what its agent says, the budgets of
its namespace. What is written is one atomic batch of compare-and-sets: the pod, and every budget that selects
it. So a budget is never charged for an eviction that did not happen, nor the other way round; and who is
charged to no budget goes only while they stand as they were read
(docs/rules.md, free-evictions-hold-their-budgets).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BatchUnclear, Conflict, Unclear
from podyard.bus.outgoing import Outgoing
from podyard.cluster import budgets, disruption, intents
from podyard.cluster.budgets import PodFacts
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import Contended, ObjectMissing, Overdue
from podyard.cluster.intents import Author, Put, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects.core import Node, Pod
from podyard.objects.meta import is_true
from podyard.proto import codec, placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.facts import NodeLifeFact, PodStatusFact
from podyard.proto.objects_api import BudgetAnswer
from podyard.proto.placement import Tombstone
from podyard.shell import stream_reading, writes
from podyard.shell.snapshot import listed_into

ATTEMPTS: Final = 20
"""Somebody else was faster each time. Source: eviction.go, EvictionsRetry."""
SERVICE: Final = "api"
"""Whose dead letters unreadable budgets are."""
LISTING_S: Final = 5.0
"""How long the budgets of a namespace may take to be listed."""
WRITE_S: Final = 5.0
"""How long a write may wait for NATS to be there before it is sent, and then for its answer. Who gives up
waiting for an eviction looks at the pod later than that."""

_PENDING: Final = "Pending"
_UNKNOWN: Final = "Unknown"
_NONE: Final[Mapping[ObjectKey, Stored]] = {}


class Evicted(NamedTuple):
    """A pod on its way out."""

    uid: str
    sequence: int = 0
    """CLUSTER sequence of the pod's new version or marker; 0 in a dry run, or if it was being deleted
    already."""
    budget: BudgetAnswer | None = None
    """The budget that it was charged to."""


class Wanted(NamedTuple):
    """What is asked for."""

    key: ObjectKey
    uid: str = ""
    """Empty: whichever is there."""
    grace_s: int | None = None
    """Seconds; None means the pod's own, 0 removes it at once."""
    dry_run: bool = False
    """Judge only."""
    until: float | None = None
    """When nobody waits for the answer any more, seconds since 1970; None: never."""


class _Judged(NamedTuple):
    """What is to be written, the pod first; nothing if it is on its way out already."""

    messages: tuple[Outgoing, ...]
    evicted: Evicted


async def evict(bus: Bus, wanted: Wanted, author: Author, now: Callable[[], float]) -> Evicted:
    """Evict one pod.

    :param now: seconds since 1970, UTC
    :raises PdbBlocked: its budgets do not allow it now
    :raises ObjectMissing: it is not there, or has another uid
    :raises Overdue: nobody waits for it any more
    :raises BusError: the bus failed; if `Unclear`, it may be evicted all the same
    """
    eviction = _Eviction(bus, wanted, author, now)
    unclear: Unclear | None = None
    try:
        for _ in range(ATTEMPTS):
            judged = await eviction.judge()
            if wanted.dry_run or not judged.messages:
                return judged.evicted
            if wanted.until is not None and now() > wanted.until:
                raise Overdue(wanted.key)
            try:
                sequence = await _publish(bus, judged.messages)
            except (Conflict, BatchUnclear):
                continue
            except Unclear as error:
                unclear = error
                found = await writes.read(bus, wanted.key)
                if found is None or found.payload != judged.messages[0].payload:
                    continue  # it failed, or will: the next compare-and-set excludes it
                sequence = found.sequence
            return judged.evicted._replace(sequence=sequence)
        raise Contended(wanted.key, ATTEMPTS)
    except Exception as error:
        if unclear is not None:  # what was sent before may yet be done, so nobody may say that it is not
            raise unclear from error
        raise


async def _publish(bus: Bus, messages: Sequence[Outgoing]) -> int:
    """Store them; returns the sequence of the first."""
    if len(messages) == 1:
        return (await bus.publish(messages[0], timeout_s=WRITE_S)).sequence
    return (await bus.publish_batch(messages, timeout_s=WRITE_S)).sequence - len(messages) + 1


class _Eviction:
    """Judges one eviction, each time by what is stored then."""

    def __init__(self, bus: Bus, wanted: Wanted, author: Author, now: Callable[[], float]) -> None:
        self._bus = bus
        self._wanted = wanted
        self._author = author
        self._now = now
        self._get = self._read

    async def judge(self) -> _Judged:
        """The budgets are read before the pod's last word: they counted none as healthy that is found not to
        be. A direct read may come from a replica that lags, so none is believed that lets a pod go for free.

        :raises ClusterError: it is not to be
        """
        stored, pod = await self._look()
        if budgets.has_ended(pod):
            return self._going(pod, stored)
        listing = await self._listing(pod.key.namespace)
        stored, pod = await self._look()
        selecting = {key: version for key, version in listing.items() if _selects(version, pod)}
        if selecting and (not pod.ready or budgets.is_pending(pod)):
            stored, pod = await self._look(fresh=True)
        if budgets.has_ended(pod) or budgets.is_pending(pod):
            return self._going(pod, stored, selecting)
        for key, version in selecting.items():
            if not version.readable:
                raise budgets.unreadable(pod, key)
        only = budgets.only_one(pod, selecting)
        if only is None:
            return self._going(pod, stored)
        return self._going(pod, stored, selecting, budgets.judge(pod, only, selecting[only].view()))

    def _going(
        self,
        pod: PodFacts,
        stored: Stored,
        held: Mapping[ObjectKey, Stored] = _NONE,
        standing: BudgetAnswer | None = None,
    ) -> _Judged:
        """It may go.

        :param held: budgets that must stand as they were read
        :param standing: how the only one stands, which may be charged
        """
        now, key = self._now(), pod.key
        step = disruption.deletion(
            key,
            uid=pod.uid,
            now=now,
            occupies=lambda _: pod.occupies,
            reason=disruption.EVICTED,
            message="Eviction API: evicting",  # source: eviction.go, addConditionAndDeletePod
            grace_s=self._wanted.grace_s,
        )(stored)
        if isinstance(step, intents.Keep):
            return _Judged((), Evicted(pod.uid))
        messages = [writes.message_of(key, step, stored, self._author)]
        author = self._author._replace(why=f"eviction of {key.name}")
        for budget, version in held.items():
            if version.readable:
                document = version.document()
                if standing is not None and standing.charged:
                    budgets.charge(document, key.name, now)
                messages.append(writes.message_of(budget, Put(document), version, author))
        return _Judged(tuple(messages), Evicted(pod.uid, budget=standing))

    async def _listing(self, namespace: str) -> dict[ObjectKey, Stored]:
        """The budgets of a namespace, as they are now. Costs a consumer, some milliseconds.

        :raises PdbBlocked: they could not be listed in time
        """
        view, wanted = DocumentView(), subjects.objects(budgets.RESOURCE, namespace)
        try:
            with anyio.fail_after(LISTING_S):
                await listed_into(self._bus, view, (wanted,), service=SERVICE)
        except TimeoutError:
            raise budgets.not_listed(self._wanted.key, LISTING_S) from None
        found = {key: view.stored(key) for key in sorted(view.keys(budgets.RESOURCE))}
        return {key: version for key, version in found.items() if version is not None}

    # ---- the pod

    async def _look(self, *, fresh: bool = False) -> tuple[Stored, PodFacts]:
        """The pod as it is stored, and what counts of it.

        :param fresh: as of now at least, which costs some milliseconds for each question
        :raises ObjectMissing: it is not there
        """
        key = self._wanted.key
        stored = intents.living(await writes.read(self._bus, key), self._wanted.uid)
        if stored is None:
            raise ObjectMissing(key, self._wanted.uid)
        pod: Pod = stored.view()
        uid = pod.metadata.uid
        self._get = self._listed if fresh else self._read
        placed = await self._get(subjects.binding(key.namespace, key.name, uid))
        occupies, phase, ready = await self._place(placed, uid)
        facts = PodFacts(
            key=key,
            uid=uid,
            labels=pod.metadata.labels,
            occupies=occupies,
            phase=phase,
            ready=ready,
            deleting=pod.metadata.deletion_timestamp is not None,
        )
        return stored, facts

    async def _place(self, placed: Delivery | None, uid: str) -> tuple[bool, str, bool]:
        """Whether the pod takes room, its phase, and whether it is ready. Of one whose placement cannot be
        read nobody may say that it serves nobody."""
        if placed is None:
            return False, _PENDING, False
        try:
            placement = placement_reading.decode(placed.subject, placed.payload)
        except MessageError:
            return True, _UNKNOWN, False
        if isinstance(placement, Tombstone):
            return False, _PENDING, False
        return True, *await self._phase(placement.node, uid)

    async def _phase(self, node: str, uid: str) -> tuple[str, bool]:
        """What its agent says: the pod's phase, and whether it is ready. Of one whose agent's word cannot be
        read, nobody may say that it serves nobody."""
        key = self._wanted.key
        delivery = await self._get(subjects.pod_status(node, key.namespace, key.name, uid))
        if delivery is None:
            return _PENDING, False
        try:
            status = codec.decode(PodStatusFact, delivery.payload)
        except MessageError:
            return _UNKNOWN, False
        ready = is_true(status.conditions, "Ready")
        return status.phase, ready and not await self._is_lost(node)

    async def _is_lost(self, name: str) -> bool:
        """Whether nothing is heard of a node: its pods are not ready, as in every joined view. What cannot be
        read counts as nothing, as there."""
        delivery = await self._get(subjects.node_life(name))
        if delivery is None:
            return False
        try:
            life = codec.decode(NodeLifeFact, delivery.payload)
        except MessageError:
            return False
        stored = intents.living(await writes.read(self._bus, ObjectKey(subjects.NODES, "", name)))
        if stored is None or life.lost is None:
            return False
        node: Node = stored.view()
        return life.node_uid == node.metadata.uid

    async def _read(self, subject: str) -> Delivery | None:
        """What lies on a subject, or lay there a moment ago."""
        delivery = await self._bus.get(streams.CLUSTER.name, subject)
        return None if delivery is None or delivery.deleted else delivery

    async def _listed(self, subject: str) -> Delivery | None:
        """What lies on a subject.

        :raises PdbBlocked: nobody said it in time
        """
        try:
            with anyio.fail_after(LISTING_S):
                delivery = await stream_reading.last(self._bus, streams.CLUSTER.name, subject)
        except TimeoutError:
            raise budgets.not_listed(self._wanted.key, LISTING_S) from None
        return None if delivery is None or delivery.deleted else delivery


def _selects(version: Stored, pod: PodFacts) -> bool:
    """Whether a budget protects a pod. Of one that cannot be read nobody can say, so it does."""
    return not version.readable or budgets.selects(version.view(), pod.labels)
