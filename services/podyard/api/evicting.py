"""`evict`: end pods if their disruption budgets allow it."""

from collections.abc import Callable
from typing import Final

from podyard.api import naming, results
from podyard.bus.connection import Bus
from podyard.cluster import budgets
from podyard.cluster.budgets import PodFacts
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.objects.core import Node, Pod
from podyard.objects.errors import ObjectError
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.facts import NodeLifeFact, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import EvictRequest, ObjectResult
from podyard.shell import eviction
from podyard.shell.eviction import Evicted, KnownBudgets
from podyard.telemetry.conventions import EVICT_SPAN, pod_attributes
from podyard.telemetry.tracing import Spans

PENDING: Final = "Pending"
UNKNOWN: Final = "Unknown"


class StatusSource:
    """Pods and budgets from the documents, a pod's status read when it is asked for: evictions are rare,
    statuses are not."""

    def __init__(self, bus: Bus, view: DocumentView) -> None:
        self._bus = bus
        self._view = view

    async def facts(self, key: ObjectKey) -> PodFacts | None:
        """What counts of the pod at `key`."""
        pod = self._view.typed(key)
        if not isinstance(pod, Pod):
            return None
        uid = pod.metadata.uid
        node = self._view.node_of(uid)
        phase, ready = await self._phase(node, key, uid) if node else (PENDING, False)
        return PodFacts(
            key=key,
            uid=uid,
            labels=pod.metadata.labels,
            occupies=self._view.occupies(uid),
            phase=phase if node or not self._view.occupies(uid) else UNKNOWN,
            ready=ready,
            deleting=pod.metadata.deletion_timestamp is not None,
        )

    async def _phase(self, node: str, key: ObjectKey, uid: str) -> tuple[str, bool]:
        """What its agent says: the pod's phase, and whether it is ready. Of one whose agent's word cannot be
        read, nobody may say that it serves nobody."""
        delivery = await self._bus.get(streams.CLUSTER.name, subjects.pod_status(node, key.namespace, key.name, uid))
        if delivery is None or delivery.deleted:
            return PENDING, False
        try:
            status = codec.decode(PodStatusFact, delivery.payload)
        except MessageError:
            return UNKNOWN, False
        ready = any(one.type == "Ready" and one.status == "True" for one in status.conditions)
        return status.phase, ready and not await self._is_lost(node)

    async def _is_lost(self, name: str) -> bool:
        """Whether nothing is heard of a node: its pods are not ready, as in every joined view. What cannot be
        read counts as nothing, as there."""
        node = self._view.typed(ObjectKey(subjects.NODES, "", name))
        delivery = await self._bus.get(streams.CLUSTER.name, subjects.node_life(name))
        if not isinstance(node, Node) or delivery is None or delivery.deleted:
            return False
        try:
            life = codec.decode(NodeLifeFact, delivery.payload)
        except MessageError:
            return False
        return life.node_uid == node.metadata.uid and life.lost is not None

    async def budgets(self, namespace: str) -> KnownBudgets:
        """The budgets of a namespace."""
        readable = [
            ((namespace, budget.metadata.name), budget)
            for budget in self._view.all(budgets.RESOURCE)
            if budget.metadata.namespace == namespace
        ]
        return KnownBudgets(readable, [key.name for key in self._view.unreadable(budgets.RESOURCE, namespace)])


async def evict(
    bus: Bus, view: DocumentView, spans: Spans, request: EvictRequest, author: Author, now: Callable[[], float]
) -> tuple[ObjectResult, ...]:
    """Carry out a request, one pod after the other, since pods may share a budget; results in its order.

    :param now: seconds since 1970, UTC
    """
    source = StatusSource(bus, view)
    return tuple([await _evict_one(bus, source, spans, request, reference, author, now) for reference in request.pods])


async def _evict_one(
    bus: Bus,
    source: StatusSource,
    spans: Spans,
    request: EvictRequest,
    reference: ObjectRef,
    author: Author,
    now: Callable[[], float],
) -> ObjectResult:
    try:
        key = naming.key_of(reference)
        if key.resource != subjects.PODS:
            raise ObjectError("resource", f"only pods can be evicted, not {key.resource}: use delete")
    except ObjectError as error:
        return results.failure(error, reference)
    started, trace = now(), spans.child(author.trace)
    outcome = (
        await eviction.evict_many(
            bus,
            source,
            [(key, reference.uid)],
            author._replace(trace=trace),
            now=started,
            grace_s=request.grace_period_s,
            dry_run=request.dry_run,
        )
    )[0]
    error = "" if isinstance(outcome, Evicted) else str(outcome)
    spans.emit(
        EVICT_SPAN,
        trace=trace,
        parent=author.trace,
        start=started,
        end=now(),
        attributes={
            **pod_attributes(key.namespace, key.name),
            "podyard.who": author.who,
            "podyard.why": author.why,
            "podyard.dry_run": request.dry_run,
        },
        error=error,
        keep=True,
    )
    if not isinstance(outcome, Evicted):
        return results.failure(outcome, key)
    message = f"charged to the disruption budget {outcome.budget}" if outcome.budget else ""
    return results.result("evicted", key, uid=outcome.uid, position=outcome.sequence, message=message)
