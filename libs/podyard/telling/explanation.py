"""A pod's story as data, put together from what the services stored. Pure.

The times are seconds since 1970, UTC. Entries are in the order in which they happened.
"""

import re
from collections.abc import Hashable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo
from podyard.proto.requeues import HintCall, PodMove, RequeueRecord
from podyard.telling import advice, events, words
from podyard.telling.advice import Help
from podyard.telling.entries import Attempt, Bound, Data, Entry, NotWoken, Released, Started, Told, Woken
from podyard.telling.evidence import Evidence
from podyard.telling.queued import nobody_schedules


class Explanation(Data, frozen=True, kw_only=True):
    """Everything that is known about a pod's scheduling."""

    namespace: str
    name: str
    uid: str = ""
    state: str
    """One sentence: where it is now."""
    node: str = ""
    priority: int = 0
    created_at: float = 0.0
    scheduler: str = ""
    queued: QueuedPodInfo | None = None
    outside: Annotated[OutsidePod | None, Meta(description="whom it waits for, if nobody schedules it")] = None
    entries: tuple[Entry, ...] = ()
    help: Annotated[
        tuple[Help, ...], Meta(description="of a pod that waits: what would help, as of its last attempt")
    ] = ()
    moves: Annotated[
        tuple[MoveRecord, ...], Meta(description="what the descheduler moved: this pod, or one in whose place it came")
    ] = ()
    trace: Annotated[str, Meta(description="traceparent of the last attempt")] = ""
    events: Annotated[
        tuple[K8sEvent, ...], Meta(description="as of `podyard get events --for pod/NAME`; the entries have it all")
    ] = ()


def build(evidence: Evidence, *, every: bool = False) -> Explanation:
    """The pod's story.

    :param every: each event that did not wake the pod is an entry of its own
    """
    attempts = _attempts(evidence)
    entries = sorted([*_from_attempts(attempts), *_from_requeues(evidence, attempts), *_placed(evidence)], key=_order)
    placement = evidence.placement
    return Explanation(
        namespace=evidence.namespace,
        name=evidence.name,
        uid=evidence.uid,
        state=_state(evidence, attempts),
        node=placement.node if isinstance(placement, Binding) else "",
        priority=evidence.priority,
        created_at=evidence.created_at,
        scheduler=evidence.scheduler,
        queued=evidence.queued,
        outside=evidence.outside,
        help=_help(evidence, attempts),
        entries=tuple(entries if every else _grouped(entries)),
        trace=attempts[-1].trace if attempts else "",
        events=tuple(events.of_pod(evidence)),
    )


def _attempts(evidence: Evidence) -> list[AttemptRecord]:
    """Every attempt once, in order: those that did not bind, and the binding's own."""
    found = {record.attempt or f"{record.at}": record for record in evidence.attempts}
    decision = evidence.placement.decision if evidence.placement is not None else None
    if decision is not None:
        found[decision.attempt] = decision
    return sorted(found.values(), key=lambda record: (record.at, record.number))


def _order(entry: Entry) -> tuple[float, int]:
    """By time; what happens in the same millisecond goes by cause: woken, attempt, bound, started."""
    rank = {Woken: 0, NotWoken: 0, Attempt: 1, Bound: 2, Started: 3, Released: 4, Told: 5}
    return (round(entry.at, 3), rank[type(entry)])


def _from_attempts(attempts: Sequence[AttemptRecord]) -> list[Entry]:
    return [Attempt(at=record.at, record=record) for record in attempts]


def _from_requeues(evidence: Evidence, attempts: Sequence[AttemptRecord]) -> list[Entry]:
    entries: list[Entry] = []
    seen: set[str] = set()
    told: set[tuple[str, int]] = set()
    for record in evidence.requeues:
        for move in record.moved:
            if move.uid == evidence.uid:
                entries.append(_woken(record, move))
                seen.add(record.event_id)
                told.add(_moment(record.event, record.at))
        entries += [_not_woken(record, skip.hints) for skip in record.skipped if skip.uid == evidence.uid]
        if record.skipped_counts and record.event_id not in seen:
            entries += _counted(record, evidence.uid, attempts)
    # what moved a pod without a record of its own (end of backoff, a time limit) stands in the attempt that
    # followed
    for attempt in attempts:
        wake = attempt.woken_by
        if wake is None or not wake.event:
            continue
        # the record of a pod that was in flight at the event has a longer id than the event's own
        if wake.event_id not in seen and _moment(wake.event, wake.at) not in told:
            call = HintCall(plugin=wake.plugin, answer="Queue", reason=wake.reason, own=wake.own)
            hints = (call,) if wake.plugin else ()
            entries.append(
                Woken(
                    at=wake.at or attempt.queued_at,
                    event=wake.event,
                    event_id=wake.event_id,
                    object=wake.object,
                    plugin=wake.plugin,
                    hints=hints,
                    why="" if wake.plugin else wake.reason,
                )
            )
            seen.add(wake.event_id)
    return entries


def _moment(event: str, at: float) -> tuple[str, int]:
    """An event by its label and millisecond."""
    return event, round(at * 1000)


def _woken(record: RequeueRecord, move: PodMove) -> Woken:
    return Woken(
        at=record.at,
        event=record.event,
        event_id=record.event_id,
        object=record.object,
        plugin=move.plugin,
        to=move.to,
        hints=move.hints,
        who=record.who,
        why=record.why,
    )


def _not_woken(record: RequeueRecord, hints: tuple[HintCall, ...], *, counted: bool = False) -> NotWoken:
    return NotWoken(
        at=record.at,
        event=record.event,
        event_id=record.event_id,
        object=record.object,
        hints=hints,
        who=record.who,
        why=record.why,
        counted=counted,
    )


def _counted(record: RequeueRecord, uid: str, attempts: Sequence[AttemptRecord]) -> list[Entry]:
    """Above 256 skipped pods a record holds counts by plugin and reason: joined by who had rejected the pod
    at that time.
    """
    if any(skip.uid == uid for skip in record.skipped) or any(move.uid == uid for move in record.moved):
        return []
    parked = [attempt for attempt in attempts if attempt.at <= record.at]
    if not parked or parked[-1].outcome not in ("unschedulable", "gated"):
        return []
    rejectors = set(parked[-1].unschedulable_plugins)
    hints = tuple(
        HintCall(plugin=count.plugin, answer="QueueSkip", reason=count.reason)
        for count in record.skipped_counts
        if count.plugin in rejectors
    )
    if not hints:
        return []
    return [_not_woken(record, hints, counted=True)]


def _placed(evidence: Evidence) -> list[Entry]:
    entries: list[Entry] = []
    placement = evidence.placement
    if isinstance(placement, Binding):
        entries.append(
            Bound(at=placement.bound_at, node=placement.node, forced=placement.forced, trace=placement.trace)
        )
    elif placement is not None:
        entries.append(Bound(at=placement.bound_at, node=placement.node))
        entries.append(Released(at=placement.released_at, node=placement.node, reason=placement.reason))
    if evidence.status is not None and evidence.started_at:
        told = any(event.reason == evidence.status.reason for event in evidence.events)
        entries.append(_start(evidence.status, evidence.started_at, placement, told=told))
    killing = () if evidence.pod is None else events.killing(evidence.pod, evidence.status)
    entries += [
        Told(
            at=event.at,
            reason=event.reason,
            message=event.message.strip(),
            reporter=event.reporter,
            times=event.count,
        )
        for event in (*evidence.events, *killing)
    ]
    return entries


def _start(status: PodStatusFact, at: float, placement: Binding | Tombstone | None, *, told: bool) -> Started:
    """The start on the node. Kubernetes writes it in whole seconds: it cannot have been before the binding.

    :param told: an event gives the status' reason at its own time: not said twice
    """
    bound_at = placement.bound_at if placement is not None else 0.0
    reason, message = ("", "") if told else (status.reason, status.message.strip())
    return Started(at=max(at, bound_at), node=status.node, phase=status.phase, reason=reason, message=message)


def _grouped(entries: Sequence[Entry]) -> list[Entry]:
    """Events that did not wake the pod, between two other entries: one for each event, plugin and reason,
    with the first and the last time and how many there were. An event storm fills the page otherwise.
    """
    grouped: list[Entry] = []
    skips: dict[Hashable, NotWoken] = {}
    for entry in entries:
        if not isinstance(entry, NotWoken):
            grouped += sorted(skips.values(), key=_order)
            skips.clear()
            grouped.append(entry)
            continue
        key = entry.event, _alike(entry)
        before = skips.get(key)
        skips[key] = entry if before is None else _together(before, entry)
    return [*grouped, *sorted(skips.values(), key=_order)]


def _together(before: NotWoken, last: NotWoken) -> NotWoken:
    return msgspec.structs.replace(last, times=before.times + last.times, first_at=before.first_at or before.at)


def _alike(entry: NotWoken) -> Hashable:
    """What the hints said, whichever object it was about: reasons name it."""
    namespace, _, name = entry.object.rpartition("/")
    if not name:
        return _answers(entry.hints)
    named = re.compile(rf"(?<![\w.-])(?:{re.escape(namespace)}/)?{re.escape(name)}(?![\w.-])")
    return tuple((plugin, answer, named.sub("*", reason)) for plugin, answer, reason in _answers(entry.hints))


def _answers(hints: Sequence[HintCall]) -> tuple[tuple[str, str, str], ...]:
    return tuple((hint.plugin, hint.answer, hint.reason) for hint in hints)


def _state(evidence: Evidence, attempts: Sequence[AttemptRecord]) -> str:
    placement = evidence.placement
    if isinstance(placement, Tombstone):
        return f"its binding on {placement.node} has ended: {words.spoken(placement.reason)}" + _gone(evidence)
    if isinstance(placement, Binding):
        phase = evidence.status.phase if evidence.status is not None else "not started yet"
        ending = ", being deleted" if evidence.deleting else ""
        return f"bound to {placement.node}, {phase}{ending}" + _gone(evidence)
    if evidence.deleted:
        return "deleted before it was bound"
    queued = evidence.queued
    if queued is not None:
        return f"pending in {queued.pool}, {_times(queued.attempts, 'attempt')} so far"
    if evidence.outside is not None:
        return f"pending, and nobody schedules it: {nobody_schedules(evidence.outside)}"
    unheard = "; no leader of the queue answers" if evidence.unheard else ""
    if attempts:
        return f"pending; its last attempt ended {words.spoken(attempts[-1].outcome)}{unheard}"
    return f"pending; no attempt is recorded yet{unheard}"


def _help(evidence: Evidence, attempts: Sequence[AttemptRecord]) -> tuple[Help, ...]:
    if evidence.placement is not None or evidence.deleted:
        return ()
    if evidence.outside is not None:
        return (advice.of_outside(evidence.outside, evidence.profiles),)
    return advice.of_waiting(attempts[-1] if attempts else None, evidence.queued)


def _gone(evidence: Evidence) -> str:
    return "; the object is deleted" if evidence.deleted else ""


def _times(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
