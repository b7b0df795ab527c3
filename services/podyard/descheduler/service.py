"""The descheduler as a service: one leads, and runs a cycle at every interval."""

import time
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from podyard.bus import BusError
from podyard.cluster.errors import ClusterError
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.descheduler import reading, spans_and_events
from podyard.descheduler.core import cycle, loading, registry
from podyard.descheduler.core.cycle import CycleRecord, Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.instruments import Instruments
from podyard.descheduler.settings import DeschedulerSettings
from podyard.framework.status import described
from podyard.objects.errors import ObjectError
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.runtime.service import Service, ServiceDefinition
from podyard.runtime.settings import SettingsError
from podyard.shell import eviction
from podyard.shell.snapshot import snapshot

NAME: Final = "descheduler"
LEADER: Final = "leader"
CYCLE: Final = "cycle"
PLUGINS: Final = registry.by_name()

RETRY_S: Final = 5.0
"""Pause after a cycle that could not read the cluster: shorter than the interval, long enough for NATS to
come back."""


async def main(service: Service[DeschedulerSettings]) -> None:
    """Run cycles whenever this process leads; wait as a standby else. Returns after one cycle if so set."""
    policy = await anyio.to_thread.run_sync(read_policy, service.settings)
    instruments = Instruments(service.metrics)
    service.health.set_ready(LEADER, True, "standing by")
    lease = service.lease()

    async def lead(epoch: int) -> None:
        service.health.set_ready(LEADER, True, f"runs the cycles, epoch {epoch}")
        try:
            await Descheduler(service, policy, instruments).run()
        finally:
            service.health.remove(CYCLE)
            service.health.set_ready(LEADER, True, "standing by")

    await lease.lead(lead)


def read_policy(settings: DeschedulerSettings) -> Policy:
    """The policy file, decoded and checked; what needs the cluster (priority classes) is looked up in each
    cycle.

    :raises SettingsError: if it cannot be read, with all its faults
    """
    if not settings.policy:
        return Policy()
    try:
        text = Path(settings.policy).read_text(encoding="utf-8")
        policy = loading.decode(text, PLUGINS)
        loading.validate(policy, PLUGINS)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError((f"descheduler.policy: {settings.policy} cannot be read: {error}",)) from error
    except PolicyError as error:
        raise SettingsError(tuple(f"descheduler.policy: {settings.policy}: {one}" for one in error.errors)) from error
    return policy


class Descheduler:
    """One term of running cycles. Nothing is kept between cycles."""

    def __init__(self, service: Service[DeschedulerSettings], policy: Policy, instruments: Instruments) -> None:
        self._service = service
        self._settings = service.settings
        self._bus = service.bus
        self._policy = policy
        self._instruments = instruments

    async def run(self) -> None:
        """Cycle after cycle; one only if so set."""
        if not self._policy.profiles:
            self._service.log.warning(
                "the policy has no profiles: nothing will be evicted", policy=self._settings.policy
            )
        while True:
            began = time.monotonic()
            done = await self._cycle()
            if done and self._settings.once:
                return
            wait_s = self._settings.interval_s if done else RETRY_S
            await anyio.sleep(max(0.0, began + wait_s - time.monotonic()))

    async def _cycle(self) -> bool:
        """One cycle; False if the cluster could not be read, so that it is tried again soon."""
        start = self._service.clock.now()
        try:
            view = await snapshot(self._bus, service=NAME, timeout_s=self._settings.listing_timeout_s)
        except (TimeoutError, BusError) as error:
            reason = f"the cluster cannot be listed: {error or 'no answer in time'}"
            self._failed(reason)
            return False
        trace = self._service.spans.new_trace(spans_and_events.CYCLE_SPAN)
        try:
            record = await self._carry_out(view, trace, start)
        except PolicyError as error:
            self._failed(str(error))
            return True
        except Exception as error:  # the boundary of a cycle: the next one lists anew
            self._service.log.error("a cycle broke off", exc_info=error)
            self._failed(f"it broke off: {described(error)}")
            return True
        end = self._service.clock.now()
        self._instruments.duration.observe(end - start)
        self._instruments.count(record)
        spans_and_events.cycle_ended(self._service.spans, trace, record, start, end)
        self._report(record, end - start)
        return True

    def _failed(self, reason: str) -> None:
        self._service.health.set_ready(CYCLE, False, reason)
        self._instruments.cycles.labels("failed").inc()
        self._service.log.error("no cycle", reason=reason)

    def _report(self, record: CycleRecord, duration_s: float) -> None:
        self._service.health.set_ready(CYCLE, True, f"last cycle evicted {record.evicted} pods")
        for step in record.steps:
            if step.attempts or step.error:
                self._service.log.info("plugin ran", **spans_and_events.summary(step))
        self._service.log.info(
            "cycle done",
            nodes=record.nodes,
            plugins=len(record.steps),
            evicted=record.evicted,
            skipped=record.skipped,
            dry_run=self._settings.dry_run,
            duration_s=round(duration_s, 3),
        )

    async def _carry_out(self, view: ClusterView, trace: str, now: float) -> CycleRecord:
        """Drive the core's cycle: each eviction that it asks for is done before it goes on."""
        state = reading.state_of(view)
        policy = loading.with_defaults(self._policy, state.priority_classes)
        evictor = _Evictor(self._service, view, policy, trace)
        running = cycle.run(policy, PLUGINS, state, now)
        result: EvictionResult | None = None
        while True:
            try:
                wanted = next(running) if result is None else running.send(result)
            except StopIteration as ended:
                return ended.value
            result = await evictor.evict(wanted)


class _Evictor:
    """Carries out the evictions of one cycle through the eviction library; a dry run goes the same way
    (docs/rules.md, dry-run-goes-the-same-way)."""

    def __init__(self, service: Service[DeschedulerSettings], view: ClusterView, policy: Policy, trace: str) -> None:
        self._service = service
        self._source = eviction.ListedSource(service.bus, view, service=NAME)
        self._trace = trace
        self._dry_run = service.settings.dry_run
        self._tells_failures = bool(policy.eviction_failure_event_notification)

    async def evict(self, wanted: Eviction) -> EvictionResult:
        """Evict one pod; a refusal is final for this cycle
        (docs/rules.md, a-refusal-is-final-for-the-cycle)."""
        now = self._service.clock.now()
        span = spans_and_events.EvictionSpan(self._service.spans, self._trace, wanted, now, dry_run=self._dry_run)
        metadata = wanted.pod.metadata
        author = Author(NAME, f"{wanted.profile}/{wanted.plugin}: {wanted.reason}", span.trace)
        problem = ""
        try:
            await eviction.evict(
                self._service.bus,
                self._source,
                ObjectKey(subjects.PODS, metadata.namespace, metadata.name),
                author,
                now=now,
                uid=metadata.uid,
                grace_s=wanted.grace_period_s,
                dry_run=self._dry_run,
            )
        except (ClusterError, ObjectError, MessageError, BusError) as error:
            problem = str(error)
        except Exception as error:  # the boundary to one pod's document: that pod stays
            problem = described(error)
            self._service.log.error("an eviction broke off", exc_info=error)
        now = self._service.clock.now()
        span.end(now, problem)
        self._tell(wanted, span.trace, now, problem)
        if problem:
            return EvictionFailed(problem)
        return EvictionDone(gone=self._dry_run or wanted.grace_period_s == 0)

    def _tell(self, wanted: Eviction, trace: str, now: float, problem: str) -> None:
        log = self._service.log.bind(
            pod="/".join(wanted.pod.key),
            node=wanted.pod.spec.node_name,
            profile=wanted.profile,
            plugin=wanted.plugin,
            reason=wanted.reason,
        )
        if problem:
            log.warning("the pod stays", problem=problem)
        else:
            log.info("would evict the pod (dry run)" if self._dry_run else "evicted the pod")
        if not self._dry_run and (not problem or self._tells_failures):
            spans_and_events.announce(self._service.bus, wanted, reporter=NAME, trace=trace, now=now, problem=problem)


SERVICE: Final = ServiceDefinition(
    name=NAME,
    settings_type=DeschedulerSettings,
    main=main,
    description="Evicts pods that would be placed elsewhere today, as a DeschedulerPolicy says.",
)
