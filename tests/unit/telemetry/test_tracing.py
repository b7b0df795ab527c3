import pytest

from podyard.telemetry import traceparent
from podyard.telemetry.tracing import KEPT_PER_S, LINK, MOST_AT_ONCE, SpanRecord, Spans


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


@pytest.mark.parametrize("end", [9.0, 10.0, 10.0000001])
def test_a_span_lasts_a_microsecond_at_least(end):
    sink = ListSink(keep=True)
    spans = Spans(sink)
    spans.emit("x", trace=spans.new_trace(), start=10.0, end=end)
    assert (sink.spans[0].start_ns, sink.spans[0].end_ns) == (10_000_000_000, 10_000_001_000)


def test_what_goes_on_after_a_span_is_a_root_that_links_to_it():
    sink = ListSink(keep=True)
    spans = Spans(sink)
    first = spans.new_trace()
    spans.emit("x", trace=spans.child(first), follows=first, start=1, end=2)
    (span,) = sink.spans
    assert span.parent is None
    assert [(str(link.ids), dict(link.attributes)) for link in span.links] == [(first, {LINK: "follows"})]
    assert span.ids.trace_id == span.links[0].ids.trace_id


def test_a_trace_that_is_to_be_kept_has_the_flag_whatever_the_sampler_says():
    spans, off = Spans(ListSink(keep=False)), Spans()
    assert spans.new_trace(keep=True).endswith("-01")
    plain = spans.new_trace()
    assert spans.kept(plain) == plain[:-2] + "01"
    assert (off.new_trace(keep=True)[-2:], off.kept(plain)) == ("00", plain), "without a sink nothing is kept"


def test_what_is_kept_without_need_has_a_rate():
    spans = Spans(ListSink())
    assert sum(spans.may_keep(100.0) for _ in range(1000)) == MOST_AT_ONCE
    assert sum(spans.may_keep(101.0) for _ in range(1000)) == KEPT_PER_S
    assert sum(spans.may_keep(1000.0) for _ in range(1000)) == MOST_AT_ONCE, "what was not used does not add up"
    assert not Spans().may_keep(100.0)


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
    assert [str(link.ids) for link in span.links] == [sampled, unsampled]
    assert span.attributes == {"podyard.links": [unsampled]}


def test_a_child_of_nothing_begins_a_trace_with_the_samplers_flag():
    assert Spans(ListSink(keep=True)).child("").endswith("-01")
