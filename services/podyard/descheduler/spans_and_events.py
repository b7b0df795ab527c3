"""What people see of a cycle: its spans, events for people, and what the log says."""

from typing import Final

from podyard.descheduler.core.cycle import CycleRecord, Step
from podyard.descheduler.core.evictions import Eviction
from podyard.descheduler.core.framework import Answer
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.shell.event_correlator import Event
from podyard.telemetry.conventions import EVICT_SPAN, NODE, pod_attributes
from podyard.telemetry.tracing import LINK, Link, SpanEvent, Spans

CYCLE_SPAN: Final = "deschedule cycle"
EVICTION_FAILED: Final = Reason("EvictionFailed")
DESCHEDULED: Final = "Descheduled"
"""Action of the events about pods."""
CONTROLLER: Final = "sigs.k8s.io.descheduler"
"""Who reports them. Source: descheduler v0.36.0, pkg/utils/events.go."""
DOUBTFUL: Final = "a setting of the policy cannot be meant so"
"""In the log, with field and reason."""


class EvictionSpan:
    """The span "evict pod" of one eviction, below its cycle's; always kept. Its id goes with the pod's new
    version."""

    def __init__(self, spans: Spans, cycle_trace: str, eviction: Eviction, start: float, *, dry_run: bool) -> None:
        self._spans = spans
        self._parent = cycle_trace
        self._eviction = eviction
        self._start = start
        self._dry_run = dry_run
        self.trace = spans.kept(spans.child(cycle_trace))

    def end(self, now: float, problem: str = "") -> None:
        """The eviction is done, or was refused for `problem`."""
        eviction = self._eviction
        node, metadata = eviction.pod.spec.node_name, eviction.pod.metadata
        failed = SpanEvent("Eviction Failed", now, {NODE: node, "err": problem})
        self._spans.emit(
            EVICT_SPAN,
            trace=self.trace,
            parent=self._parent,
            start=self._start,
            end=now,
            attributes={
                **pod_attributes(metadata.namespace, metadata.name, uid=metadata.uid, node=node),
                "podyard.eviction.strategy": eviction.plugin,
                "podyard.eviction.profile": eviction.profile,
                "podyard.eviction.reason": eviction.reason,
                "podyard.eviction.planned_node": eviction.planned.node,
                "podyard.eviction.plan_problem": eviction.planned.problem,
                "podyard.eviction.dry_run": self._dry_run,
            },
            events=(failed,) if problem else (),
            error=problem,
            keep=True,
        )


def cycle_ended(spans: Spans, trace: str, record: CycleRecord, start: float, end: float) -> None:
    """The span "deschedule cycle", kept if a plugin wanted anything; none of a cycle that was idle. Pods
    that a limit or the plan kept are events on it."""
    attempts = [(step, attempt) for step in record.steps for attempt in step.attempts]
    fault = "; ".join(step.error for step in record.steps if step.error)
    if not attempts and not fault:
        return
    spans.emit(
        CYCLE_SPAN,
        trace=trace,
        start=start,
        end=end,
        attributes={
            "podyard.descheduler.nodes": record.nodes,
            "podyard.descheduler.evicted": record.evicted,
            "podyard.descheduler.plugins": [step.plugin for step in record.steps],
            "podyard.descheduler.skipped": record.skipped,
            "podyard.descheduler.called_by": [cause.told for cause in record.causes],
        },
        links=[Link(cause.trace, {LINK: "called by"}) for cause in record.causes if cause.trace],
        events=[
            SpanEvent(
                "Eviction Failed",
                end,
                {
                    **pod_attributes(attempt.namespace, attempt.name, node=attempt.node),
                    "podyard.eviction.strategy": step.plugin,
                    "err": attempt.problem,
                },
            )
            for step, attempt in attempts
            if attempt.answer not in (Answer.EVICTED, Answer.FAILED)
        ],
        error=fault,
        keep=True,
    )


def event_of(eviction: Eviction, *, trace: str, now: float, problem: str = "") -> Event:
    """The pod's event: that it was evicted, by which plugin, or why not.

    Source: descheduler v0.36.0, pkg/descheduler/evictions/evictions.go (EvictPod); what the plugin said is
    added.
    """
    metadata, node = eviction.pod.metadata, eviction.pod.spec.node_name
    told = f"pod eviction from {node} node by sigs.k8s.io/descheduler"
    why = f" failed: {problem}" if problem else f": {eviction.reason}" if eviction.reason else ""
    return Event(
        ObjectRef(resource=subjects.PODS, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        EVICTION_FAILED if problem else Reason(eviction.plugin),
        told + why,
        now,
        warning=bool(problem),
        action=DESCHEDULED,
        controller=CONTROLLER,
        trace=trace,
    )


def summary(step: Step) -> dict[str, object]:
    """One step as a log record."""
    kept = [one for one in step.attempts if one.answer is not Answer.EVICTED]
    against = {f"{one.namespace}/{one.name}": one.plan_problem for one in step.attempts if one.plan_problem}
    return {
        "profile": step.profile,
        "extension_point": step.extension_point,
        "plugin": step.plugin,
        "evicted": [f"{one.namespace}/{one.name}" for one in step.evicted],
        "kept": {f"{one.namespace}/{one.name}": one.problem for one in kept},
        **({"against_the_plan": against} if against else {}),
        **({"error": step.error} if step.error else {}),
    }


def spread(record: CycleRecord) -> dict[str, object]:
    """How evenly pods are spread, as fields of a log record: percent of nodes, before and as planned."""
    return {
        f"{name}_requested": f"{before.least:g}..{before.most:g} % -> {after.least:g}..{after.most:g} %"
        for name, before in record.before.items()
        if (after := record.after.get(name)) is not None
    }


def outcome(record: CycleRecord, *, dry_run: bool) -> str:
    """What the cycle came to, in a line for `/readyz`."""
    if record.skipped:
        return f"last cycle was skipped: {record.skipped}"
    done = f"would evict {record.evicted} pods (dry run)" if dry_run else f"evicted {record.evicted} pods"
    failed = "; ".join(f"{step.plugin}: {step.error}" for step in record.steps if step.error)
    if record.ended:
        failed = f"{failed}; it went no further: {record.ended}" if failed else f"it went no further: {record.ended}"
    return f"last cycle {done}; {failed}" if failed else f"last cycle {done}"
