"""Spans of calls of plugins within a cycle: what each was asked, and within what."""

from podyard.framework.cycle import PointTime
from podyard.framework.plugin_times import PluginTime
from podyard.proto.decisions import AttemptRecord
from podyard.scheduler import cycle_spans
from podyard.scheduler.core.effects import CycleSpan
from podyard.telemetry.tracing import Spans
from tests.support.spans import KeptSpans

RECORD = AttemptRecord(
    namespace="default", name="a", uid="uid-a", attempt="1-1", outcome="unschedulable", at=1000.0, node=""
)


def told(*calls: PluginTime) -> list[tuple[str, str, int, int]]:
    """Span, what stands above it, and its milliseconds within the cycle, of each call in a cycle that filters
    until 10 ms and then looks for victims until 30 ms."""
    sink = KeptSpans(sampled=True)
    spans = Spans(sink)
    attempt = spans.new_trace()
    cycle_spans.emit(
        spans,
        CycleSpan(
            trace=spans.child(attempt),
            parent=attempt,
            start=1000.0,
            end=1000.04,
            points=(PointTime("Filter", 0.0, 0.01), PointTime("PostFilter", 0.01, 0.03)),
            points_since=1000.0,
            record=RECORD,
            plugins=calls,
        ),
    )
    names = {span.ids: span.name for span in sink.spans}
    return [
        (
            span.name,
            names[span.parent] if span.parent is not None else "",
            round(span.start_ns / 1e6) - 1_000_000,
            round(span.end_ns / 1e6) - 1_000_000,
        )
        for span in sink.spans
        if "podyard.plugin" in span.attributes
    ]


def call(plugin: str, point: str, start_ms: float, took_ms: float) -> PluginTime:
    return PluginTime(plugin, point, "Success", took_ms / 1000, start_ms / 1000)


def test_a_call_within_another_stands_below_it_and_is_named_for_what_it_was_asked() -> None:
    found = told(
        call("Fit", "Filter", 1, 3),
        call("Fit", "PreFilterExtensionRemovePod", 12, 2),
        call("Fit", "Filter", 15, 1),
        call("Preemption", "PostFilter", 11, 10),  # noted when it ends, as all are
        call("Last", "PostFilter", 22, 2),
    )
    assert found == [
        ("Filter Fit", "Filter", 1, 4),
        ("PostFilter Preemption", "PostFilter", 11, 21),
        ("PreFilterExtensionRemovePod Fit", "PostFilter Preemption", 12, 14),
        ("Filter Fit", "PostFilter Preemption", 15, 16),
        ("PostFilter Last", "PostFilter", 22, 24),
    ]


def test_a_call_ends_with_what_it_is_in() -> None:
    assert told(call("Late", "Filter", 8, 5)) == [("Filter Late", "Filter", 8, 10)]
