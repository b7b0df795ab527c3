"""The core's effects as the messages that are stored. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import PodRef
from podyard.proto.requeues import PodSkip, RequeueRecord, SkipCount
from podyard.queue.core.effects import AttemptEnded, Gated, Judged, Skip
from podyard.queue.core.waking import NAMED_SKIPS

NOT_ASKED: Final = "the event is about nothing that could help the pod"
"""Reason for pods that a plugin's index leaves out."""

NAMED_MOVES: Final = 4096
"""Moved pods that a record names: a record must stay below the largest message (4 MiB). Each pod's next
attempt says what woke it.
"""


def merged(judgements: Iterable[Judged]) -> list[Judged]:
    """Those that one event made of pods that came back together, as one: else a busy moment makes a record
    for each event and pod.

    Each has the attempt of its first pod, and names all its skipped pods; others are as they were. In the
    order of their beginnings.
    """
    found: list[Judged] = []
    index_of: dict[int, int] = {}
    for one in judgements:
        index = index_of.get(id(one.incoming), -1) if one.attempt else -1
        if index >= 0 and found[index].skipped_pods + one.skipped_pods <= NAMED_SKIPS:
            first = found[index]
            both = {"moved": (*first.moved, *one.moved), "skipped": (*first.skipped, *one.skipped)}
            found[index] = msgspec.structs.replace(first, **both)
            continue
        if one.attempt:
            index_of[id(one.incoming)] = len(found)
        found.append(one)
    return found


def requeue_record(judged: Judged) -> RequeueRecord:
    """What an event moved and did not move; of pods that came back from attempts, under an id of its own."""
    incoming = judged.incoming
    skipped: tuple[PodSkip, ...] = ()
    counts: tuple[SkipCount, ...] = ()
    if judged.skipped_pods <= NAMED_SKIPS and not judged.not_asked:
        skipped = tuple([_skip(pod, one) for one in judged.skipped for pod in one.pods])
    else:
        counts = _counts(judged)
    return RequeueRecord(
        event_id=event_id(judged),
        event=incoming.event.label,
        resource=incoming.event.resource,
        object=incoming.object_name,
        position=incoming.position,
        at=judged.at,
        who=incoming.who,
        why=incoming.why,
        moved=judged.moved[:NAMED_MOVES],
        moved_unnamed=max(0, len(judged.moved) - NAMED_MOVES),
        skipped=skipped,
        skipped_counts=counts,
        trace=incoming.trace,
    )


def event_id(judged: Judged) -> str:
    """Key of the record. The event's own, or with the (first) attempt behind it for pods that were in flight
    when it happened.
    """
    base = judged.incoming.id or f"{judged.incoming.event.label}-{judged.at:.6f}"
    return f"{base}-{judged.attempt}" if judged.attempt else base


def _skip(pod: PodRef, skip: Skip) -> PodSkip:
    return PodSkip(namespace=pod.namespace, name=pod.name, uid=pod.uid, hints=skip.calls)


def _counts(judged: Judged) -> tuple[SkipCount, ...]:
    """How many pods by plugin and reason, most first."""
    found: Counter[tuple[str, str]] = Counter()
    for skip in judged.skipped:
        for call in skip.calls:
            found[call.plugin, call.reason] += skip.count
    for one in judged.not_asked:
        found[one.plugin, NOT_ASKED] += one.count
    return tuple(SkipCount(plugin=plugin, reason=reason, pods=pods) for (plugin, reason), pods in found.most_common())


def gated_record(gated: Gated, epoch: int) -> AttemptRecord:
    """A pod that a PreEnqueue plugin keeps out, as a record of its own kind: no attempt was made."""
    pod = gated.pod
    return AttemptRecord(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        attempt=f"{epoch}-gated-{gated.attempts}-{gated.plugin}",
        number=gated.attempts,
        profile=gated.profile,
        outcome="gated",
        at=gated.at,
        queued_at=gated.queued_at,
        message=gated.message,
        unschedulable_plugins=(gated.plugin,),
        woken_by=gated.woken_by,
        previous_trace=gated.previous_trace,
    )


def ended_record(ended: AttemptEnded) -> AttemptRecord:
    """An attempt that the queue had to end itself, as nobody else will tell of it."""
    pod = ended.pod
    return AttemptRecord(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        attempt=ended.attempt,
        number=ended.number,
        scheduler=ended.session,
        profile=ended.profile,
        outcome=ended.outcome,
        at=ended.at,
        queued_at=ended.queued_at,
        popped_at=ended.popped_at,
        parked_s=ended.parked_s,
        backed_off_s=ended.backed_off_s,
        message=ended.message,
        woken_by=ended.woken_by,
        trace=ended.trace,
        previous_trace=ended.previous_trace,
    )
