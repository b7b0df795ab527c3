import pytest

from podyard.telemetry import traceparent
from podyard.telemetry.tracing import SpanRecord, Spans


class ListSink:
    """Keeps what arrives; samples when `keep`."""

    def __init__(self, keep: bool = False) -> None:
        self.spans: list[SpanRecord] = []
        self.keep = keep

    def accept(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def sampled(self, trace_id: int, name: str) -> bool:
        return self.keep


def test_without_a_sink_ids_are_made_and_nothing_is_wanted():
    spans = Spans()
    trace = spans.new_trace()
    assert traceparent.parse(trace) is not None
    assert not spans.enabled
    assert not spans.wanted(trace, keep=True)
    spans.emit("x", trace=trace, start=1, end=2, keep=True)


@pytest.mark.parametrize(
    ("sampled", "keep", "sent"), [(True, False, 1), (False, False, 0), (False, True, 1), (True, True, 1)]
)
def test_kept_if_sampled_or_bad(sampled, keep, sent):
    sink = ListSink(keep=sampled)
    spans = Spans(sink)
    trace = spans.new_trace()
    assert spans.wanted(trace, keep=keep) is bool(sent)
    spans.emit("x", trace=trace, start=1, end=2, keep=keep)
    assert len(sink.spans) == sent


def test_an_end_before_the_start_is_moved_to_it():
    sink = ListSink(keep=True)
    spans = Spans(sink)
    spans.emit("x", trace=spans.new_trace(), start=10.0, end=9.0)
    assert sink.spans[0].start_ns == sink.spans[0].end_ns == 10_000_000_000


def test_a_bad_traceparent_is_ignored():
    sink = ListSink(keep=True)
    Spans(sink).emit("x", trace="nonsense", start=1, end=2, keep=True)
    assert sink.spans == []


def test_links_to_unsampled_traces_are_named_in_an_attribute():
    sink = ListSink()
    spans = Spans(sink)
    sampled, unsampled = traceparent.new(sampled=True), traceparent.new()
    spans.emit("x", trace=spans.new_trace(), start=1, end=2, links=(sampled, unsampled), keep=True)
    (span,) = sink.spans
    assert [str(link) for link in span.links] == [sampled, unsampled]
    assert span.attributes == {"podyard.links": [unsampled]}


def test_a_child_of_nothing_begins_a_trace_with_the_samplers_flag():
    assert Spans(ListSink(keep=True)).child("").endswith("-01")
