"""Carries preemptions out: the queue is told, the victims are deleted, at the end the preemptor is activated.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/preemption/executor.go (prepareCandidateAsync). There
only a failure activates the preemptor, and it may be parked for minutes beside free room
(docs/rules.md, preemption-ends-with-activation).
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import anyio
import structlog

from podyard.bus import Bus
from podyard.cluster import disruption
from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Author, Intent, Written
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.proto import subjects
from podyard.proto.decisions import Victim
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import PreemptingRequest
from podyard.scheduler import victim_traces
from podyard.scheduler.core.effects import Preempt
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.queue_link import QueueLink
from podyard.shell import writes
from podyard.shell.event_recorder import Recorder
from podyard.telemetry import traceparent
from podyard.telemetry.tracing import Spans

AT_ONCE: Final = 16
"""Preemptions carried out at once, and victims of one that are written at once; the reference's number of
workers."""
SETTLED_S: Final = 5.0
"""How long the binding of a victim is awaited that the binder was asked for; after that it is deleted, bound
or not."""
SEEN_S: Final = 2.0
"""How long this scheduler's own view may take to show a victim's end before the preemptor is tried again all
the same."""
SAY_END_S: Final = 2.0
"""How long a scheduler that stops goes on telling the queue that a preemption is over; the end of its session
says the same."""


class PreemptionLink:
    """Takes preemptions from the engine. Keeps nothing: what a crash interrupts ends with the session, and
    the preemptor tries again."""

    def __init__(
        self,
        bus: Bus,
        engine: Engine,
        queue: QueueLink,
        view: ClusterView,
        *,
        now: Callable[[], float],
        spans: Spans,
        instruments: Instruments,
        events: Recorder,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """:param now: seconds since 1970, UTC"""
        self._bus = bus
        self._engine = engine
        self._queue = queue
        self._view = view
        self._now = now
        self._spans = spans
        self._instruments = instruments
        self._events = events
        self._log = log

    async def run(self) -> None:
        """Carry out for ever."""
        await self._engine.preemptions.carry_out(AT_ONCE, self._preempt)

    async def _preempt(self, preempt: Preempt) -> None:
        """Invariant: a queue that was told of the start is told of the end, whatever goes wrong between
        (docs/rules.md, preemption-ends-with-activation)."""
        started, outcome = time.perf_counter(), "error"
        try:
            outcome = await self._carry_out(preempt)
        finally:
            # measured here, not where it begins (docs/rules.md, time-is-taken-at-the-end)
            self._instruments.preemptions.labels(outcome).observe(time.perf_counter() - started)
            with anyio.move_on_after(SAY_END_S, shield=True) as said:
                await self._tell(preempt, running=False)
        if said.cancelled_caught:
            await self._tell(preempt, running=False)

    async def _carry_out(self, preempt: Preempt) -> str:
        """Returns how it ended, for the metrics."""
        only = preempt.victims[0] if len(preempt.victims) == 1 else None
        # before the attempt's result: no event may hand the pod out while its victims are not deleted
        refused = await self._tell(preempt, running=True, victim=only)
        self._engine.told(preempt)
        if refused:
            self._log.info("a preemption is given up, its session is over", pod=_name(preempt), reason=refused)
            return "given up"
        *others, last = preempt.victims
        if others:
            if not await self._end_all(preempt, others):
                return "error"  # not the last one, so that the preemptor may try again at once
            await self._tell(preempt, running=True, victim=last)
        return "success" if await self._end_all(preempt, [last]) else "error"

    async def _tell(self, preempt: Preempt, *, running: bool, victim: Victim | None = None) -> str:
        """Tell the queue, until it answers; returns why it refuses, empty if it does not."""
        result = preempt.result
        request = PreemptingRequest(
            session=preempt.session,
            pod=PodRef(namespace=result.namespace, name=result.name, uid=result.uid),
            running=running,
            victim=None if victim is None else _reference(victim),
            attempt=result.attempt,
        )
        return (await self._queue.preempting(request)).refused

    # ---- victims -------------------------------------------------------------------------------------------

    async def _end_all(self, preempt: Preempt, victims: Sequence[Victim]) -> bool:
        """Delete pods, at once; whether all are on their way out."""
        limit = anyio.CapacityLimiter(AT_ONCE)
        failures: list[str] = []

        async def end(victim: Victim) -> None:
            async with limit:
                failure = await self._end(preempt, victim)
            if failure:
                failures.append(f"{victim.namespace}/{victim.name}: {failure}")

        async with anyio.create_task_group() as tasks:
            for victim in victims:
                tasks.start_soon(end, victim)
        if failures:
            self._log.warning(
                "victims could not be deleted",
                pod=_name(preempt),
                node=preempt.node,
                reasons=failures,
                **traceparent.told(preempt.trace),
            )
        return not failures

    async def _end(self, preempt: Preempt, victim: Victim) -> str:
        """Delete one pod; returns why it could not be, empty if it is gone, is going, or took no room after
        all."""
        started, trace = self._now(), self._spans.kept(self._spans.child(preempt.trace))
        if self._engine.core.is_unsettled(victim.uid):
            await self._until_settled(victim)
            if not self._engine.core.is_unsettled(victim.uid) and not self._is_bound(victim.uid):
                victim_traces.emit(self._spans, preempt, victim, trace, started, self._now(), "sent back")
                self._events.record(victim_traces.event_of(preempt, victim, trace, self._now(), assumed=True))
                return ""
        key = ObjectKey(subjects.PODS, victim.namespace, victim.name)
        plan = disruption.deletion(
            key,
            uid=victim.uid,
            now=started,
            occupies=self._is_bound,
            reason=disruption.PREEMPTED,
            message=f"{preempt.profile}: preempting to accommodate a higher priority pod",
        )
        why = f"preempted by {_name(preempt)} on {preempt.node}"
        author = Author("scheduler", why, trace, (preempt.trace,))
        result = (await writes.carry_out(self._bus, [Intent(key, plan)], author))[0]
        failure = "" if isinstance(result, Written | ObjectMissing) else str(result)
        bound = self._view.placements.get(victim.uid)
        victim_traces.emit(
            self._spans,
            preempt,
            victim,
            trace,
            started,
            self._now(),
            "gone already" if isinstance(result, ObjectMissing) else "deleted",
            link=bound.trace if isinstance(bound, BoundPod) else "",
            error=failure,
        )
        if isinstance(result, Written):
            self._events.record(victim_traces.event_of(preempt, victim, trace, self._now()))
            await self._until_seen(result.sequence)
        return failure

    def _is_bound(self, uid: str) -> bool:
        return isinstance(self._view.placements.get(uid), BoundPod)

    async def _until_seen(self, position: int) -> None:
        """Or the preemptor, tried again on an older view, would preempt again."""
        with anyio.move_on_after(SEEN_S):
            while self._view.position < position:
                await self._engine.progress()

    async def _until_settled(self, victim: Victim) -> None:
        """The binder was asked for this pod: what it says decides whether there is anything to delete
        (docs/rules.md, binding-victim-is-not-deleted)."""
        with anyio.move_on_after(SETTLED_S):
            while self._engine.core.is_unsettled(victim.uid):
                await self._engine.progress()


def _reference(victim: Victim) -> PodRef:
    return PodRef(namespace=victim.namespace, name=victim.name, uid=victim.uid)


def _name(preempt: Preempt) -> str:
    return f"{preempt.result.namespace}/{preempt.result.name}"
