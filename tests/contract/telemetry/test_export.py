"""What the exporter really sends, decoded by a real OTLP receiver."""

import threading
import time

import prometheus_client
import pytest

from podyard.telemetry import traceparent
from podyard.telemetry.setup import Tracing, start_tracing
from podyard.telemetry.tracing import SpanEvent, Spans
from tests.support.otlp_sink import OtlpSink

NOW = 1_800_000_000.25
THREADS_END_WITHIN_S = 20.0


@pytest.fixture
def sink():
    with OtlpSink() as receiver:
        yield receiver


@pytest.fixture(autouse=True)
def _threads_end():
    """An exporter that goes on beside the next test draws random numbers, which Hypothesis notices there."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(THREADS_END_WITHIN_S)
        assert not thread.is_alive(), thread


@pytest.fixture
def registry():
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def tracing(sink, registry, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.endpoint)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    yield from _started(registry)


def _started(registry):
    import os

    found = start_tracing(os.environ, service="queue", instance="queue-0", version="1.2.3", registry=registry)
    yield found
    found.shutdown()


def emit(spans: Spans, name: str, *, trace: str, **more) -> None:
    spans.emit(name, trace=trace, start=NOW, end=NOW + 0.5, **more)


def test_a_span_arrives_as_it_was_emitted(tracing: Tracing, sink: OtlpSink):
    spans = tracing.spans
    root = spans.new_trace()
    emit(
        spans,
        "attempt",
        trace=root,
        kind="consumer",
        attributes={"k8s.pod.name": "web", "podyard.rejected": True, "podyard.nodes": 7, "list": ["a", "b"]},
        events=[SpanEvent("woken", NOW + 0.1, {"plugin": "TaintToleration"})],
        error="0/7 nodes are available",
    )
    (span,) = sink.wait_for(lambda found: len(found) == 1)
    ids = traceparent.parse(root)
    assert ids is not None
    assert (span.trace_id, span.span_id, span.parent_id) == (f"{ids.trace_id:032x}", f"{ids.span_id:016x}", "")
    assert span.attributes == {
        "k8s.pod.name": "web",
        "podyard.rejected": True,
        "podyard.nodes": 7,
        "list": ["a", "b"],
    }
    assert (span.start_ns, span.end_ns) == (1_800_000_000_250_000_000, 1_800_000_000_750_000_000)
    assert (span.kind, span.error) == ("consumer", "0/7 nodes are available")
    (event,) = span.events
    assert event.name == "woken"
    assert event.attributes == {"plugin": "TaintToleration"}
    assert abs(event.at_ns - (NOW + 0.1) * 1e9) < 1_000


def test_the_resource_names_the_service(tracing: Tracing, sink: OtlpSink):
    emit(tracing.spans, "x", trace=tracing.spans.new_trace())
    (span,) = sink.wait_for(lambda found: len(found) == 1)
    assert span.service == "podyard-queue"
    assert span.resource["service.instance.id"] == "queue-0"
    assert span.resource["service.version"] == "1.2.3"


def test_children_sent_before_their_parent_still_hang_below_it(tracing: Tracing, sink: OtlpSink):
    spans = tracing.spans
    root = spans.new_trace()
    cycle = spans.child(root)
    emit(spans, "bind", trace=spans.child(cycle), parent=cycle)
    emit(spans, "cycle", trace=cycle, parent=root)
    emit(spans, "attempt", trace=root)
    found = {span.name: span for span in sink.wait_for(lambda found: len(found) == 3)}
    assert found["bind"].parent_id == found["cycle"].span_id
    assert found["cycle"].parent_id == found["attempt"].span_id
    assert len({span.trace_id for span in found.values()}) == 1


def test_links_arrive_and_a_parent_of_another_trace_becomes_one(tracing: Tracing, sink: OtlpSink):
    spans = tracing.spans
    cause, other = spans.new_trace(), spans.new_trace()
    emit(spans, "requeue", trace=spans.new_trace(), parent=other, links=(cause, "not a traceparent"))
    (span,) = sink.wait_for(lambda found: len(found) == 1)
    assert span.parent_id == ""
    assert [tuple(link) for link in span.links] == [tuple(text.split("-")[1:3]) for text in (cause, other)]


def test_the_sampler_decides_and_bad_outcomes_are_kept(sink, registry, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.endpoint)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    for tracing in _started(registry):
        trace = tracing.spans.new_trace()
        assert trace.endswith("-00")
        emit(tracing.spans, "good", trace=trace)
        emit(tracing.spans, "bad", trace=trace, keep=True, links=(trace,))
    (span,) = sink.spans
    assert span.name == "bad"
    assert span.attributes["podyard.links"] == [trace]
    assert sink.encodings == ["gzip"]


def test_a_ratio_sampler_chooses_by_trace_id(sink, registry, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.endpoint)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    for tracing in _started(registry):
        flags = [tracing.spans.new_trace()[-2:] for _ in range(400)]
    assert 120 < flags.count("01") < 280


def test_what_does_not_fit_is_counted_and_the_rest_arrives(sink, registry, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.endpoint)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    for tracing in _started(registry):
        for number in range(1_000):
            emit(tracing.spans, f"span {number}", trace=tracing.spans.new_trace())
    arrived = len(sink.spans)
    dropped = registry.get_sample_value("podyard_spans_dropped_total", {"reason": "queue full"})
    assert arrived + dropped == 1_000
    assert dropped > 0
    assert registry.get_sample_value("podyard_spans_exported_total") == arrived
    assert registry.get_sample_value("podyard_spans_dropped_total", {"reason": "shutdown"}) == 0


def test_a_missing_collector_holds_up_neither_emit_nor_the_end(registry, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    import os

    tracing = start_tracing(os.environ, service="queue", instance="queue-0", version="1", registry=registry)
    started = time.monotonic()
    for _ in range(2_000):
        emit(tracing.spans, "x", trace=tracing.spans.new_trace())
    emitted = time.monotonic()
    tracing.shutdown(0.5)
    assert emitted - started < 1.0
    assert time.monotonic() - emitted < 2.0
    lost = sum(
        registry.get_sample_value("podyard_spans_dropped_total", {"reason": reason})
        for reason in ("shutdown", "export failed")
    )
    assert lost > 0
    assert registry.get_sample_value("podyard_spans_exported_total") == 0


def test_a_collector_that_refuses_costs_spans_which_are_counted(registry, monkeypatch):
    with OtlpSink(status=400) as refusing:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing.endpoint)
        for tracing in _started(registry):
            emit(tracing.spans, "x", trace=tracing.spans.new_trace())
        assert refusing.requests == 1
    assert registry.get_sample_value("podyard_spans_dropped_total", {"reason": "export failed"}) == 1


def test_what_is_under_way_when_time_is_up_is_counted_as_lost(registry, monkeypatch):
    with OtlpSink(hangs=True) as hanging:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.endpoint)
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")
        import os

        tracing = start_tracing(os.environ, service="queue", instance="queue-0", version="1", registry=registry)
        for _ in range(5):
            emit(tracing.spans, "x", trace=tracing.spans.new_trace())
        hanging.wait_for(lambda found: len(found) == 3)
        tracing.shutdown(0.1)
        assert registry.get_sample_value("podyard_spans_dropped_total", {"reason": "shutdown"}) == 5
    assert registry.get_sample_value("podyard_spans_dropped_total", {"reason": "export failed"}) == 0
    assert registry.get_sample_value("podyard_spans_exported_total") == 0
