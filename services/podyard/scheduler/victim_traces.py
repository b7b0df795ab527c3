"""What people see of a victim's end: a span below the preemptor's cycle, linked to the victim's binding, and
an event on the pod."""

from typing import Final

from podyard.bus import Bus
from podyard.proto import subjects
from podyard.proto.decisions import Victim
from podyard.proto.message import ObjectRef
from podyard.scheduler.core.effects import Preempt
from podyard.shell import announcing
from podyard.telemetry.conventions import pod_attributes
from podyard.telemetry.tracing import Spans

PREEMPT_SPAN: Final = "preempt pod"
REASON: Final = "Preempted"


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
        parent=preempt.trace,
        start=start,
        end=end,
        attributes={
            **pod_attributes(victim.namespace, victim.name, uid=victim.uid, node=preempt.node),
            "podyard.pod.priority": victim.priority,
            "podyard.pdb_violation": victim.pdb_violation,
            "podyard.preemptor": f"{preempt.result.namespace}/{preempt.result.name}",
            "podyard.preemptor.uid": preempt.result.uid,
            "podyard.preemption": "failed" if error else outcome,
        },
        links=(link,) if link else (),
        error=error,
        keep=True,
    )


def announce(bus: Bus, preempt: Preempt, victim: Victim, trace: str, at: float) -> None:
    """The pod's event `Preempted`. Other tenants can read it, so it names no pod but by its uid."""
    announcing.announce(
        bus,
        ObjectRef(resource=subjects.PODS, namespace=victim.namespace, name=victim.name, uid=victim.uid),
        reporter="scheduler",
        reason=REASON,
        message=f"Preempted by pod {preempt.result.uid} on node {preempt.node}",
        at=at,
        trace=trace,
    )
