"""The trace of a scheduling cycle: one span, with a child for each extension point and, of a cycle that was
timed plugin by plugin, for each call of a plugin in it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from podyard.framework.plugin_times import PluginTime
from podyard.proto.decisions import AttemptRecord, NodeScore, Rejection
from podyard.proto.subjects import queue_verb
from podyard.scheduler.core.effects import CycleSpan
from podyard.telemetry.conventions import pod_attributes, received
from podyard.telemetry.tracing import AttributeValue, Spans

CYCLE: Final = "schedule cycle"
POP: Final = queue_verb("pop")


def emit(spans: Spans, cycle: CycleSpan) -> None:
    """Send the cycle's spans, if the trace is wanted."""
    keep = cycle.keep or (cycle.slow and spans.may_keep(cycle.end))
    if not spans.wanted(cycle.trace, keep=keep):
        return
    record = cycle.record
    if 0 < record.popped_at < cycle.start:
        spans.emit(
            "wait for cycle",
            parent=cycle.parent,
            start=record.popped_at,
            end=cycle.start,
            keep=keep,
        )
    spans.emit(
        CYCLE,
        trace=cycle.trace,
        parent=cycle.parent,
        start=cycle.start,
        end=cycle.end,
        kind="consumer",
        attributes=_attributes(record),
        error=cycle.error,
        keep=keep,
    )
    for one in cycle.points:
        trace = spans.child(cycle.trace)
        spans.emit(
            one.point,
            trace=trace,
            parent=cycle.trace,
            start=cycle.points_since + one.start,
            end=cycle.points_since + one.end,
            keep=keep,
        )
        within = [call for call in cycle.plugins if one.start <= call.started < one.end]
        _calls(spans, within, trace, one.end, since=cycle.points_since, keep=keep)


def _calls(spans: Spans, calls: Iterable[PluginTime], trace: str, end: float, *, since: float, keep: bool) -> None:
    """Spans of calls, named for what each was asked, which a preemption does within its own call: those stand
    below it.

    :param trace: of the extension point
    :param end: of the extension point, on the stopwatch
    """
    around = [(trace, end)]
    for call in sorted(calls, key=lambda one: (one.started, -one.seconds)):  # they are noted as they end
        while call.started >= around[-1][1]:
            around.pop()
        above, last = around[-1]
        own, end = spans.child(above), min(call.started + call.seconds, last)
        spans.emit(
            f"{call.point} {call.plugin}",
            trace=own,
            parent=above,
            start=since + call.started,
            end=since + end,
            attributes={"podyard.plugin": call.plugin, "podyard.status": call.status},
            keep=keep,
        )
        around.append((own, end))


def _attributes(record: AttemptRecord) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        **pod_attributes(record.namespace, record.name, uid=record.uid, node=record.node or None),
        **received(POP),
        "podyard.attempt": record.attempt,
        "podyard.attempt.number": record.number,
        "podyard.outcome": record.outcome,
        "podyard.profile": record.profile,
        "podyard.session": record.scheduler,
        "podyard.position": record.position,
        "podyard.nodes.total": record.nodes_total,
        "podyard.nodes.feasible": record.nodes_feasible,
    }
    if record.message:
        found["podyard.message"] = record.message
    if record.nominated_node:
        found["podyard.nominated_node"] = record.nominated_node
    if record.nearest:
        found["podyard.nodes.nearest"] = record.nearest
    if record.victims:
        found["podyard.victims"] = [f"{victim.namespace}/{victim.name}" for victim in record.victims]
    if record.scores:
        found["podyard.score"] = record.scores[0].total
        found["podyard.scores"] = [_score(one) for one in record.scores]
    if record.rejections:
        found["podyard.rejections"] = [_rejection(one) for one in record.rejections]
        found |= _rejected(record)
    return found


def _rejected(record: AttemptRecord) -> Iterator[tuple[str, AttributeValue]]:
    """By plugin, since Jaeger's search misses attributes that are lists: that it rejected any, and how
    many."""
    nodes: Counter[str] = Counter()
    for one in record.rejections:
        nodes[one.plugin] += one.nodes
    for plugin, number in nodes.items():
        yield f"podyard.rejected_by.{plugin}", True
        yield f"podyard.nodes.rejected_by.{plugin}", number


def _rejection(one: Rejection) -> str:
    """E.g. `NodeResourcesFit: 3 nodes: Insufficient cpu (node-2: wants 10, free 7.5)`."""
    nodes = "1 node" if one.nodes == 1 else f"{one.nodes} nodes"
    at = f" ({one.nearest}: {one.detail})" if one.detail else ""
    return f"{one.plugin}: {nodes}: {one.reason}{at}"


def _score(one: NodeScore) -> str:
    """E.g. `node-6 312: ImageLocality 0, NodeResourcesFit 87`."""
    return f"{one.node} {one.total}: " + ", ".join(f"{plugin} {points}" for plugin, points in one.plugins.items())
