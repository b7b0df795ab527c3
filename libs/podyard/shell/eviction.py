"""Evict pods through their disruption budgets, as the eviction API does. Judgement is in `cluster.budgets`.

A charged eviction is one atomic batch: the pod's deletion timestamp and the budget's new status, each a
compare-and-set. So a budget is never charged for an eviction that did not happen, nor the other way round.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from podyard.bus.connection import Bus
from podyard.bus.errors import BatchUnclear, BusError, Conflict, Unclear
from podyard.bus.outgoing import Outgoing
from podyard.cluster import budgets, disruption, intents
from podyard.cluster.budgets import Charge, PodFacts
from podyard.cluster.errors import ClusterError, Contended, ObjectMissing, PdbBlocked
from podyard.cluster.intents import Author, Intent, Put, Stored
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects import decoding
from podyard.objects.errors import ObjectError
from podyard.objects.policy import PodDisruptionBudget
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.shell import writes
from podyard.shell.snapshot import snapshot

ATTEMPTS: Final = 8
LISTING_S: Final = 5.0
"""How long the budgets of a namespace may take to be listed."""


class Evicted(NamedTuple):
    """A pod on its way out."""

    key: ObjectKey
    uid: str
    sequence: int
    """CLUSTER sequence of the pod's new version or marker; 0 in a dry run, or if it was being deleted
    already."""
    budget: str = ""
    """The budget that was charged (namespace/name)."""


Outcome: TypeAlias = Evicted | ClusterError | ObjectError | MessageError | BusError


class KnownBudgets(NamedTuple):
    """The disruption budgets of a namespace."""

    readable: Iterable[tuple[NamespacedName, PodDisruptionBudget]]
    unreadable: Sequence[str] = ()
    """Names of those that cannot be read: nobody can say which pods they protect, so they protect all."""


class EvictionSource(Protocol):
    """What is known of pods and budgets. It may lag: every write is a compare-and-set. Only of a budget that
    is new nothing is known."""

    async def facts(self, key: ObjectKey) -> PodFacts | None:
        """The pod at `key`, None if there is none."""
        ...

    async def budgets(self, namespace: str) -> KnownBudgets:
        """The budgets of a namespace.

        :raises TimeoutError: they are not known in time
        """
        ...


class ListedSource:
    """Pods from a listing of pods, placements and pod statuses; budgets as they are when they are asked for,
    however old the listing is."""

    def __init__(self, bus: Bus, view: ClusterView, *, service: str) -> None:
        """:param service: whose dead letters unreadable budgets become"""
        self._bus = bus
        self._view = view
        self._service = service

    async def facts(self, key: ObjectKey) -> PodFacts | None:
        """The joined pod. Of one whose agent's word cannot be read, nobody may say that it serves nobody."""
        view = self._view.pods.get(key.namespaced_name)
        if view is None:
            return None
        facts = budgets.facts_of(view)
        status = subjects.pod_status(view.node_name, *view.key, view.uid)
        if view.unknown_place or status in self._view.unreadable:
            return facts._replace(occupies=True, phase="Unknown")
        return facts

    async def budgets(self, namespace: str) -> KnownBudgets:
        """Lists them. Costs a consumer, some milliseconds.

        :raises TimeoutError: they could not be listed in time
        """
        wanted = subjects.objects(budgets.RESOURCE, namespace)
        found = await snapshot(self._bus, (wanted,), service=self._service, timeout_s=LISTING_S)
        unreadable = [subjects.parse_object(subject).name for subject in found.unreadable]
        return KnownBudgets(found.objects(budgets.RESOURCE).items(), unreadable)


async def evict_many(
    bus: Bus,
    source: EvictionSource,
    pods: Sequence[tuple[ObjectKey, str]],
    author: Author,
    *,
    now: float,
    grace_s: int | None = None,
    dry_run: bool = False,
) -> list[Outcome]:
    """Evict pods one after the other, since several may share a budget.

    :param pods: key and uid (empty: whichever is there)
    :param now: seconds since 1970, UTC
    :return: outcomes in the order of `pods`; a failed one has left its pod and budget as they were (a bus
        error that is `Unclear` apart)
    """
    outcomes: list[Outcome] = []
    for key, uid in pods:
        try:
            outcomes.append(await evict(bus, source, key, author, now=now, uid=uid, grace_s=grace_s, dry_run=dry_run))
        except (ClusterError, ObjectError, MessageError, BusError) as error:
            outcomes.append(error)
    return outcomes


async def evict(
    bus: Bus,
    source: EvictionSource,
    key: ObjectKey,
    author: Author,
    *,
    now: float,
    uid: str = "",
    grace_s: int | None = None,
    dry_run: bool = False,
) -> Evicted:
    """Evict one pod.

    :param now: seconds since 1970, UTC
    :param grace_s: seconds; None means the pod's own, 0 removes it at once
    :param dry_run: judge only
    :raises PdbBlocked: its budget does not allow it now
    :raises ObjectMissing: it is not there, or has another uid than `uid`
    :raises BusError: the bus failed
    """
    return await _Eviction(bus, source, key, author, now, uid, grace_s, dry_run).run()


class _Eviction:
    """One eviction on its way, repeated while others are faster."""

    def __init__(
        self,
        bus: Bus,
        source: EvictionSource,
        key: ObjectKey,
        author: Author,
        now: float,
        uid: str,
        grace_s: int | None,
        dry_run: bool,
    ) -> None:
        self._bus = bus
        self._source = source
        self._key = key
        self._author = author
        self._now = now
        self._uid = uid
        self._grace_s = grace_s
        self._dry_run = dry_run

    async def run(self) -> Evicted:
        pod = await self._source.facts(self._key)
        if pod is None or self._uid not in ("", pod.uid):
            raise ObjectMissing(self._key, self._uid)
        budget = await self._only_budget(pod)
        if budget is None:
            return await self._delete(pod)
        for _ in range(ATTEMPTS):
            done = await self._try_charged(pod, budget)
            if done is not None:
                return done
        raise Contended(self._key, ATTEMPTS)

    async def _only_budget(self, pod: PodFacts) -> ObjectKey | None:
        """
        :raises PdbBlocked: if there are several, which the eviction API does not support; or one that cannot
            be read
        """
        if budgets.ignores_budgets(pod):
            return None
        try:
            known = await self._source.budgets(pod.key.namespace)
        except TimeoutError:
            reason = f"its namespace's disruption budgets were not listed within {LISTING_S:g} s"
            raise PdbBlocked(pod.key, "", reason, retry_after_s=budgets.RETRY_AFTER_S) from None
        for name in known.unreadable:
            raise _unreadable(pod, ObjectKey(budgets.RESOURCE, pod.key.namespace, name))
        found = [key for key, _ in budgets.matching(pod, known.readable)]
        if len(found) > 1:
            names = ", ".join(key.name for key in found)
            raise PdbBlocked(
                pod.key, names, f"the pod has more than one disruption budget ({names}), which is not supported"
            )
        return found[0] if found else None

    async def _delete(self, pod: PodFacts, stored: Stored | None = None) -> Evicted:
        """No budget is charged: the pod alone is written."""
        if self._dry_run:
            return Evicted(pod.key, pod.uid, 0)
        stored = stored or await writes.read(self._bus, pod.key)
        written = await writes.one(self._bus, Intent(pod.key, self._plan(pod), stored), self._author)
        return Evicted(pod.key, pod.uid, written.sequence if not isinstance(written.step, intents.Keep) else 0)

    def _plan(self, pod: PodFacts) -> intents.Plan:
        """The pod says why it ends. Source: eviction.go, addConditionAndDeletePod."""
        return disruption.deletion(
            pod.key,
            uid=pod.uid,
            now=self._now,
            occupies=lambda _: pod.occupies,
            reason=disruption.EVICTED,
            message="Eviction API: evicting",
            grace_s=self._grace_s,
        )

    async def _try_charged(self, pod: PodFacts, key: ObjectKey) -> Evicted | None:
        """Judge by the budget as it is now, and write both; None if somebody else was faster."""
        stored, budget = await writes.read(self._bus, pod.key), await writes.read(self._bus, key)
        if intents.living(stored, pod.uid) is None:
            raise ObjectMissing(pod.key, pod.uid)
        if intents.remains(budget):
            raise _unreadable(pod, key)
        if budget is None or intents.living(budget) is None:
            return await self._delete(pod, stored)
        document = budget.document()
        typed = decoding.decode_as(PodDisruptionBudget, budget.event.object)
        if budgets.judge(pod, key, typed) is Charge.FREE:
            return await self._delete(pod, stored)
        step = self._plan(pod)(stored)
        if self._dry_run or isinstance(step, intents.Keep):
            return Evicted(pod.key, pod.uid, 0)
        budgets.charge(document, pod.key.name, self._now)
        messages = (
            writes.message_of(pod.key, step, stored, self._author),
            writes.message_of(key, Put(document), budget, self._author._replace(why=f"eviction of {pod.key.name}")),
        )
        return await self._publish(pod, key, messages)

    async def _publish(self, pod: PodFacts, key: ObjectKey, messages: tuple[Outgoing, Outgoing]) -> Evicted | None:
        budget = f"{key.namespace}/{key.name}"
        try:
            ack = await self._bus.publish_batch(messages)
        except (Conflict, BatchUnclear):
            return None
        except Unclear:
            found = await writes.read(self._bus, pod.key)
            if found is None or found.payload != messages[0].payload:
                return None  # it failed, or will: the next compare-and-set excludes it
            return Evicted(pod.key, pod.uid, found.sequence, budget)
        return Evicted(pod.key, pod.uid, ack.sequence - 1, budget)


def _unreadable(pod: PodFacts, key: ObjectKey) -> PdbBlocked:
    reason = f"the disruption budget {key.name} cannot be read, so it may protect any pod of its namespace: delete it, or write it anew"
    return PdbBlocked(pod.key, f"{key.namespace}/{key.name}", reason)
