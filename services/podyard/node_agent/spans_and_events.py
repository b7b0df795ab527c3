"""What people see of the agent's work: its spans, and events for people."""

from typing import Final

from podyard.node_agent.core.effects import Announce, PodEnded, PodEvicted, PodRefused, PodStarted, RoundFailed
from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.core.node_facts import READINGS_STALE
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.shell.event_correlator import Event
from podyard.telemetry.conventions import EVICT_SPAN, pod_attributes, received
from podyard.telemetry.tracing import LINK, Link, Spans

KUBELET: Final = "kubelet"
"""Who reports the events, as Kubernetes calls it."""
START_SPAN: Final = "start pod"
END_SPAN: Final = "end pod"
ENDS: Final = {LINK: "ends"}
ROUND_FAILED: Final = Reason("EvictionRoundFailed")
"""Reason of the node's event when its eviction manager finds out nothing, or cannot collect or end what it
wants to. The kubelet only logs it."""
HASTENED: Final = Reason("EvictionHastened")
"""Reason of the pod's event when an eviction gets less time than it had."""


def started(spans: Spans, effect: PodStarted) -> None:
    """The span "start pod": last one of a pod's way, below the binder's "bind"."""
    if not effect.bound_trace or not spans.wanted(effect.bound_trace):
        return
    spans.emit(
        START_SPAN,
        trace=spans.child(effect.bound_trace),
        # the binder has answered long ago
        follows=effect.bound_trace,
        start=effect.accepted_at,
        end=effect.running_at,
        kind="consumer",
        attributes={
            **pod_attributes(effect.namespace, effect.name, uid=effect.uid, node=effect.node),
            **received(subjects.ALL_COMMITS),
        },
    )


def ended(spans: Spans, effect: PodEnded, ended_by: str) -> str:
    """The span "end pod", after what ended it, or in a trace of its own if its work was done; links to its
    binding. Kept as that is.

    :param ended_by: traceparent of its deletion or eviction; empty: it came to its end by itself
    :return: traceparent of what ended the pod, for the fact that follows: what comes of it links to that
    """
    by = ended_by if spans.wanted(ended_by) else ""
    if not by and not spans.wanted(effect.bound_trace):
        return ended_by or effect.bound_trace
    trace = spans.child(by) if by else spans.new_trace(END_SPAN, keep=True)
    about = effect.about
    spans.emit(
        END_SPAN,
        trace=trace,
        follows=by,
        start=effect.since,
        end=effect.at,
        attributes={
            **pod_attributes(about.namespace, about.name, uid=about.uid, node=effect.node),
            "podyard.phase": effect.phase,
            "podyard.reason": effect.reason,
        },
        links=(Link(effect.bound_trace, ENDS),) if effect.bound_trace else (),
    )
    return by or trace


def evicted(spans: Spans, effect: PodEvicted) -> str:
    """The span "evict pod", root of a trace of its own, always kept; links to the pod's binding.

    :return: its traceparent, for the facts that follow from the eviction
    """
    trace = spans.new_trace(EVICT_SPAN, keep=True)
    spans.emit(
        EVICT_SPAN,
        trace=trace,
        start=effect.at,
        end=effect.at,
        attributes={
            **pod_attributes(effect.namespace, effect.name, uid=effect.uid, node=effect.node),
            "podyard.eviction.strategy": "node-pressure",
            "podyard.eviction.signal": effect.signal,
            "podyard.eviction.reason": effect.message,
            "podyard.eviction.grace_s": effect.grace_s,
            "podyard.pod.priority": effect.priority,
            **{f"podyard.eviction.{name}": text for name, text in effect.annotations.items()},
        },
        links=(Link(effect.bound_trace, ENDS),) if effect.bound_trace else (),
        keep=True,
    )
    return trace


def event_of(told: Announce, trace: str = "") -> Event:
    """The event of the kubelet of a node; most of its are warnings."""
    return Event(
        told.about,
        told.reason,
        told.message,
        told.at,
        warning=told.warning,
        controller=KUBELET,
        host=told.node,
        field_path=told.field_path,
        trace=trace,
    )


def refused(effect: PodRefused) -> Event:
    """The pod's event, whose reason is why its node does not take it."""
    return event_of(Announce(effect.about, effect.node, effect.reason, effect.message, effect.at))


def eviction(effect: PodEvicted, trace: str) -> Event:
    """The pod's event `Evicted`."""
    told = event_of(Announce(_pod(effect), effect.node, REASON, effect.message, effect.at), trace)
    return told._replace(annotations=effect.annotations)


def failed_round(effect: RoundFailed) -> Event:
    """The node's event `EvictionRoundFailed`, or `ReadingsStale` if there was nothing to go by."""
    reason = READINGS_STALE if effect.unread else ROUND_FAILED
    return event_of(Announce(effect.about, effect.about.name, reason, effect.fault, effect.at))


def haste(effect: PodEvicted, trace: str) -> Event:
    """The pod's event `EvictionHastened`. The kubelet has none: it never hurries a pod.

    :param trace: of the eviction
    """
    told = f"{effect.message}The pod is being evicted already, and has {effect.grace_s} s left. "
    return event_of(Announce(_pod(effect), effect.node, HASTENED, told, effect.at), trace)


def _pod(effect: PodEvicted) -> ObjectRef:
    return ObjectRef(resource=subjects.PODS, namespace=effect.namespace, name=effect.name, uid=effect.uid)
