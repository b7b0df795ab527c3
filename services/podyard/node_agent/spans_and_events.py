"""What people see of the agent's work: its spans, and events for people."""

from typing import Final

from podyard.bus import Bus
from podyard.node_agent.core.effects import PodEvicted, PodStarted
from podyard.node_agent.core.eviction.messages import REASON
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.telemetry.tracing import Spans

START_SPAN: Final = "start pod"
EVICT_SPAN: Final = "evict pod"


def started(spans: Spans, effect: PodStarted) -> None:
    """The span "start pod": last one of a pod's way, below the binder's "bind"."""
    if not effect.bound_trace or not spans.wanted(effect.bound_trace):
        return
    spans.emit(
        START_SPAN,
        trace=spans.child(effect.bound_trace),
        parent=effect.bound_trace,
        start=effect.accepted_at,
        end=effect.running_at,
        attributes={
            "k8s.namespace.name": effect.namespace,
            "k8s.pod.name": effect.name,
            "k8s.pod.uid": effect.uid,
            "k8s.node.name": effect.node,
        },
    )


def evicted(spans: Spans, effect: PodEvicted, bound_trace: str) -> str:
    """The span "evict pod", root of a trace of its own, always kept; links to the pod's binding.

    :return: its traceparent, for the facts that follow from the eviction
    """
    trace = spans.new_trace(EVICT_SPAN)
    spans.emit(
        EVICT_SPAN,
        trace=trace,
        start=effect.at,
        end=effect.at,
        attributes={
            "k8s.namespace.name": effect.namespace,
            "k8s.pod.name": effect.name,
            "k8s.pod.uid": effect.uid,
            "k8s.node.name": effect.node,
            "podyard.eviction.strategy": "node-pressure",
            "podyard.eviction.signal": effect.signal,
            "podyard.eviction.reason": effect.message,
            "podyard.eviction.grace_s": effect.grace_s,
            "podyard.pod.priority": effect.priority,
            **{f"podyard.eviction.{name}": text for name, text in effect.annotations.items()},
        },
        links=(bound_trace,) if bound_trace else (),
        keep=True,
    )
    return trace


def eviction_event(effect: PodEvicted, reporter: str, trace: str) -> K8sEvent:
    """The pod's event `Evicted`."""
    return K8sEvent(
        regarding=ObjectRef(resource="pods", namespace=effect.namespace, name=effect.name, uid=effect.uid),
        type="Warning",
        reason=REASON,
        message=effect.message,
        reporter=reporter,
        at=effect.at,
        trace=trace,
    )


def send(bus: Bus, event: K8sEvent) -> None:
    """Publish an event for people, without waiting: losing one loses nothing but news."""
    kind = "Node" if event.regarding.resource == subjects.NODES else "Pod"
    subject = subjects.k8s_event(event.regarding.namespace, kind, event.regarding.name)
    bus.send(subject, codec.encode(event), trace=event.trace)
