"""Has the evictions of a cycle carried out by `svc.objects.evict`, the one way to evict; a dry run goes the
same way (docs/rules.md, dry-run-goes-the-same-way).

A request that is not answered is sent again, which changes nothing that was done. Where no answer says what
became of it, nothing else is evicted before the pod itself has been looked at
(docs/rules.md, an-unanswered-eviction-is-looked-up).
"""

from collections import Counter
from typing import Final, NamedTuple

import anyio

from podyard.bus import BusError, RemoteError, TemporaryError, Unclear
from podyard.cluster import disruption, intents
from podyard.cluster.intents import Stored
from podyard.descheduler import spans_and_events
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.settings import DeschedulerSettings
from podyard.objects import times
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import BudgetAnswer, EvictRequest, ObjectResult, ObjectsReply
from podyard.runtime.service import Service
from podyard.shell import stream_reading
from podyard.shell.event_recorder import Recorder

TRY_S: Final = 3.0
"""Seconds until a request counts as not answered."""
PATIENCE_S: Final = 15.0
"""Seconds for one eviction with its repeats: an api that was started again answers by then. No api begins it
later."""
PAUSE_S: Final = 0.2
"""Between a try that nobody answered and the next."""
LATE_S: Final = 6.0
"""After which an eviction that was begun in time is written or never will be: the api may wait 5 s for NATS
before it sends it, and by then clocks of two hosts agree, too."""
LOOK_S: Final = 5.0
"""How long a look at a pod may take."""
LOOK_EVERY_S: Final = 0.5
"""Between two tries to look at a pod while NATS is away."""


class _Answered(NamedTuple):
    """What the requests came to."""

    result: ObjectResult | None
    """None: nobody answered."""
    unclear: bool
    """One of them may have been carried out, and its answer did not come."""
    trouble: str = ""
    """Why there is no result."""
    refused: bool = False
    """The api answered that it does not carry the request out; it may carry out others."""


class EvictionLink:
    """Of one cycle."""

    def __init__(
        self, service: Service[DeschedulerSettings], events: Recorder, trace: str, *, tells_failures: bool
    ) -> None:
        """
        :param trace: traceparent of the cycle's span
        :param tells_failures: a pod that stays is an event, too
        """
        self.trace = trace
        self.position = 0
        """CLUSTER sequence of the last eviction."""
        self._service = service
        self._events = events
        self._dry_run = service.settings.dry_run
        self._tells_failures = tells_failures
        self._booked: Counter[tuple[str, str]] = Counter()
        """Evictions of a dry run by their budget's namespace and name: nothing is written, so no budget knows
        of them."""

    async def evict(self, wanted: Eviction) -> EvictionResult:
        """Evict one pod; a refusal is final for this cycle
        (docs/rules.md, a-refusal-is-final-for-the-cycle)."""
        began = self._service.clock.now()
        span = spans_and_events.EvictionSpan(self._service.spans, self.trace, wanted, began, dry_run=self._dry_run)
        result = await self._carried_out(wanted, began, span.trace)
        problem = result.reason if isinstance(result, EvictionFailed) else ""
        now = self._service.clock.now()
        span.end(now, problem)
        self._tell(wanted, span.trace, now, problem)
        return result._replace(trace=span.trace)

    async def _carried_out(self, wanted: Eviction, began: float, trace: str) -> EvictionResult:
        metadata = wanted.pod.metadata
        until = began + PATIENCE_S
        request = EvictRequest(
            pods=(
                ObjectRef(resource=subjects.PODS, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
            ),
            grace_period_s=_grace_s(wanted),
            who=self._service.name,
            why=_why(wanted),
            dry_run=self._dry_run,
            until=until,
        )
        answered = await self._ask(request, until, trace)
        result = answered.result
        if result is not None and result.outcome == "evicted":
            self.position = max(self.position, result.position)
            return self._booking(metadata.namespace, result.budget) or self._done(wanted)
        if (answered.unclear or answered.refused) and not self._dry_run:
            if answered.unclear:
                await anyio.sleep(max(until + LATE_S - self._service.clock.now(), 0.0))
            if await self._has_gone(wanted):
                return self._done(wanted)
        if answered.refused:
            return EvictionFailed(f"the api refused the request: {answered.trouble}")
        if result is None:
            return EvictionFailed(f"svc.objects.evict does not answer: {answered.trouble}", ends_cycle=True)
        return EvictionFailed(result.reason or result.outcome)

    def _done(self, wanted: Eviction) -> EvictionDone:
        """In a dry run the same as in a real one: the plugins see the same cluster then."""
        return EvictionDone(gone=wanted.grace_period_s == 0)

    async def _ask(self, request: EvictRequest, until: float, trace: str) -> _Answered:
        """Ask until there is an answer, or nobody begins the eviction any more."""
        payload = codec.encode(request)
        unclear, trouble = False, ""
        while (left_s := until - self._service.clock.now()) > 0:
            pause_s = PAUSE_S
            try:
                answer = await self._service.bus.request(
                    subjects.OBJECTS_EVICT, payload, timeout_s=min(left_s, TRY_S), trace=trace
                )
                reply = codec.decode(ObjectsReply, answer.payload)
                if reply.refused:
                    return _Answered(None, unclear, reply.refused, refused=True)
                if len(reply.results) != 1:
                    return _Answered(None, unclear, f"{len(reply.results)} results for one pod")
                (result,) = reply.results
                return _Answered(result, unclear or result.unclear)
            except Unclear as error:
                unclear, trouble = True, str(error)
            except TemporaryError as error:
                trouble, pause_s = str(error), error.delay_s
            except RemoteError as error:
                return _Answered(None, unclear, error.reason, refused=True)
            except (BusError, MessageError) as error:
                return _Answered(None, True, str(error))
            await anyio.sleep(pause_s)
        return _Answered(None, unclear, trouble)

    def _booking(self, namespace: str, budget: BudgetAnswer | None) -> EvictionFailed | None:
        """In a dry run: why the real one would be refused by then; None if it would not be."""
        if not self._dry_run or budget is None or not budget.charged:
            return None
        (name,) = budget.budgets
        if self._booked[namespace, name] >= budget.disruptions_allowed:
            allowed = f"{name} allows {budget.disruptions_allowed}, and so many would be evicted before"
            return EvictionFailed(f"it would violate the pod's disruption budget: {allowed}")
        self._booked[namespace, name] += 1
        return None

    # ---- what became of it

    async def _has_gone(self, wanted: Eviction) -> bool:
        """Whether the pod is on its way out by this eviction. Waits until it can be read. It is listed, since
        a direct read may come from a replica that lags."""
        metadata = wanted.pod.metadata
        subject = subjects.object_(subjects.PODS, metadata.namespace, metadata.name)
        while True:
            try:
                with anyio.fail_after(LOOK_S):
                    found = await stream_reading.last(self._service.bus, streams.CLUSTER.name, subject)
                stored = intents.stored_of(found)
                self.position = max(self.position, 0 if stored is None else stored.sequence)
                return _evicted(stored, metadata.uid, self._service.name)
            except (TimeoutError, BusError) as error:
                self._service.log.warning(
                    "an eviction cannot be looked up yet",
                    pod=f"{metadata.namespace}/{metadata.name}",
                    reason=str(error) or "no answer in time",
                )
            await anyio.sleep(LOOK_EVERY_S)

    def _tell(self, wanted: Eviction, trace: str, now: float, problem: str) -> None:
        log = self._service.log.bind(
            pod="/".join(wanted.pod.key),
            node=wanted.pod.spec.node_name,
            profile=wanted.profile,
            plugin=wanted.plugin,
            reason=wanted.reason,
            planned=wanted.planned.node,
            **({"plan_problem": wanted.planned.problem} if wanted.planned.problem else {}),
        )
        if problem:
            log.warning("the pod stays", problem=problem)
        else:
            log.info("would evict the pod (dry run)" if self._dry_run else "evicted the pod")
        if not self._dry_run and (not problem or self._tells_failures):
            self._events.record(spans_and_events.event_of(wanted, trace=trace, now=now, problem=problem))


def _grace_s(wanted: Eviction) -> int | None:
    """A negative period means one second. Source: registry/rest/delete.go, BeforeDelete (v1.36.2)."""
    grace_s = wanted.grace_period_s
    return 1 if grace_s is not None and grace_s < 0 else grace_s


def _why(wanted: Eviction) -> str:
    """As the pod's version says it, within the bounds of a word."""
    return f"{wanted.profile}/{wanted.plugin}: {wanted.reason}"[:1024]


def _evicted(stored: Stored | None, uid: str, who: str) -> bool:
    """Whether the pod with this uid was evicted, or deleted by `who`, as what lies in its place says; one
    whose place another pod has taken was."""
    if stored is None or stored.uid != uid:
        return True
    try:
        if stored.deleted and stored.event.who == who:
            return True
        pod = stored.view()
    except (MessageError, ObjectError):
        return stored.deleted
    assert isinstance(pod, Pod)
    leaving = stored.deleted or times.seconds_or(pod.metadata.deletion_timestamp, None) is not None
    return leaving and any(
        one.type == disruption.CONDITION and one.reason == disruption.EVICTED for one in pod.status.conditions
    )
