"""What people see of a victim's end: a span below the preemptor's cycle, linked to the victim's binding, and
an event on the pod."""

from typing import Final

from podyard.proto import subjects
from podyard.proto.decisions import Victim
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.scheduler.core.effects import Preempt
from podyard.shell.event_correlator import Event
from podyard.telemetry.conventions import pod_attributes
from podyard.telemetry.tracing import LINK, Link, Spans

PREEMPT_SPAN: Final = "preempt pod"
PREEMPTED: Final = Reason("Preempted")
PREEMPTING: Final = "Preempting"
"""Action of that event."""
IN_MEMORY: Final = " (in kube-scheduler memory)."
"""End of its message where the victim was only assumed. Source: kube-scheduler v1.36.2,
pkg/scheduler/framework/preemption/executor.go."""


def emit(
    spans: Spans,
    preempt: Preempt,
    victim: Victim,
    trace: str,
    start: float,
    end: float,
    outcome: str,
    *,
    link: str = "",
    error: str = "",
) -> None:
    """The span "preempt pod", always kept. Its id goes with the victim's new version, so that what replaces
    the victim links to it.

    :param trace: its traceparent
    :param outcome: deleted, sent back, gone already
    :param link: traceparent of the victim's binding
    """
    spans.emit(
        PREEMPT_SPAN,
        trace=trace,
        # the cycle that chose the victim is over
        follows=preempt.trace,
        start=start,
        end=end,
        attributes={
            **pod_attributes(victim.namespace, victim.name, uid=victim.uid, node=preempt.node),
            "podyard.pod.priority": victim.priority,
            "podyard.pdb_violation": victim.pdb_violation,
            "podyard.preemptor": f"{preempt.result.namespace}/{preempt.result.name}",
            "podyard.preemptor.uid": preempt.result.uid,
            "podyard.preemptor.attempt": preempt.result.attempt,
            "podyard.preemption": "failed" if error else outcome,
        },
        links=(Link(link, {LINK: "ends"}),) if link else (),
        error=error,
        keep=True,
    )


def event_of(preempt: Preempt, victim: Victim, trace: str, at: float, *, assumed: bool = False) -> Event:
    """The pod's event `Preempted`. Other tenants can read it, so it names no pod but by its uid.

    :param assumed: it took no room yet, and was sent back
    """
    return Event(
        ObjectRef(resource=subjects.PODS, namespace=victim.namespace, name=victim.name, uid=victim.uid),
        PREEMPTED,
        f"Preempted by pod {preempt.result.uid} on node {preempt.node}{IN_MEMORY if assumed else ''}",
        at,
        action=PREEMPTING,
        controller=preempt.profile,
        trace=trace,
    )
