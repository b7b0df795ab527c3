"""Carries out the evictions of a cycle through the eviction library; a dry run goes the same way
(docs/rules.md, dry-run-goes-the-same-way)."""

from podyard.bus import BusError
from podyard.cluster.errors import ClusterError
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.descheduler import spans_and_events
from podyard.descheduler.core.cycle import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.settings import DeschedulerSettings
from podyard.framework.status import described
from podyard.objects.errors import ObjectError
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.runtime.service import Service
from podyard.shell import eviction


class Writer:
    """Of one cycle."""

    def __init__(
        self, service: Service[DeschedulerSettings], view: ClusterView, trace: str, *, tells_failures: bool
    ) -> None:
        """
        :param view: what the cycle's listing found
        :param trace: traceparent of the cycle's span
        :param tells_failures: a pod that stays is an event, too
        """
        self.trace = trace
        self._service = service
        self._source = eviction.ListedSource(service.bus, view, service=service.name)
        self._dry_run = service.settings.dry_run
        self._tells_failures = tells_failures

    async def evict(self, wanted: Eviction) -> EvictionResult:
        """Evict one pod; a refusal is final for this cycle
        (docs/rules.md, a-refusal-is-final-for-the-cycle)."""
        now = self._service.clock.now()
        span = spans_and_events.EvictionSpan(self._service.spans, self.trace, wanted, now, dry_run=self._dry_run)
        metadata = wanted.pod.metadata
        author = Author(self._service.name, f"{wanted.profile}/{wanted.plugin}: {wanted.reason}", span.trace)
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
            spans_and_events.announce(
                self._service.bus, wanted, reporter=self._service.name, trace=trace, now=now, problem=problem
            )
