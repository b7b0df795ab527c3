"""The way out for spans: a bounded queue, a thread that exports batches over OTLP, and counts of all that was
lost.

Configured by the standard OTEL_* variables (see `sink_from_environment`). The SDK is loaded only when an
exporter is wanted.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import prometheus_client
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from podyard.telemetry import traceparent
from podyard.telemetry.tracing import SpanRecord

QUEUE_SIZE: Final = 32_768
"""Spans that wait, unless OTEL_BSP_MAX_QUEUE_SIZE says else. The SDK's 2,048 is a fraction of a second here;
this is some 20 MB at most."""

SCHEDULE_DELAY_MS: Final = 1_000
"""Milliseconds between exports, unless OTEL_BSP_SCHEDULE_DELAY says else: people look at a trace right after
the act."""

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_SCOPE: Final = InstrumentationScope("podyard")
_UNSET: Final = Status(StatusCode.UNSET)
_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}


class _OneResource(Resource):
    """Hashed once. The exporter looks each span's resource up, and the SDK's turns all its attributes into
    JSON for that."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.attributes, resource.schema_url)
        self._hash = super().__hash__()

    def __hash__(self) -> int:
        return self._hash


class _CountingExporter(SpanExporter):
    """Passes batches on and counts them. Runs on the processor's thread, except `shutdown`."""

    def __init__(self, inner: SpanExporter, exported: prometheus_client.Counter, failed: Any) -> None:
        self._inner = inner
        self._exported = exported
        self._failed = failed
        self.taken = 0
        """Spans that have left the queue; written by the exporting thread only."""
        self._ended = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._ended:
            return SpanExportResult.FAILURE
        self.taken += len(spans)
        try:
            result = self._inner.export(spans)
        except Exception:
            # the boundary to a network library: whatever it raises costs this batch and nothing else
            self._failed.inc(len(spans))
            raise
        (self._exported if result is SpanExportResult.SUCCESS else self._failed).inc(len(spans))
        return result

    def shutdown(self) -> None:
        """Give up what is being sent, and take nothing more."""
        if not self._ended:
            self._ended = True
            self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


class ExportSink:
    """A `SpanSink` that sends spans through the SDK's batch processor. `accept` is called by one thread, the
    event loop's."""

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        resource: Mapping[str, str],
        registry: prometheus_client.CollectorRegistry,
        queue_size: int = QUEUE_SIZE,
        delay_ms: int = SCHEDULE_DELAY_MS,
    ) -> None:
        """:param resource: attributes of every span, on top of OTEL_RESOURCE_ATTRIBUTES"""
        exported = prometheus_client.Counter("podyard_spans_exported", "Spans the collector took", registry=registry)
        dropped = prometheus_client.Counter("podyard_spans_dropped", "Spans lost", ["reason"], registry=registry)
        self._full = dropped.labels("queue full")
        self._unsent = dropped.labels("shutdown")
        self._exporter = _CountingExporter(exporter, exported, dropped.labels("export failed"))
        self._resource = _OneResource(Resource.create(dict(resource)))
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        self._queue_size = queue_size
        self._queued = 0
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=queue_size,
            schedule_delay_millis=delay_ms,
            max_export_batch_size=min(512, queue_size),
        )

    def sampled(self, trace_id: int, name: str) -> bool:
        """Ask OTEL_TRACES_SAMPLER: by trace id, so that all services agree."""
        return self._sampler.should_sample(None, trace_id, name).decision.is_sampled()

    def accept(self, span: SpanRecord) -> None:
        """Queue one span, or count it as dropped when the queue is full."""
        if self._queued - self._exporter.taken >= self._queue_size:
            self._full.inc()
            return
        self._queued += 1
        self._processor.on_end(self._readable(span))

    def _readable(self, span: SpanRecord) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            # always with the sampled flag: what arrives here is to be sent, whatever the sampler said at the
            # start
            context=_context(span.ids, remote=False),
            parent=None if span.parent is None else _context(span.parent, remote=True),
            resource=self._resource,
            attributes=span.attributes,
            links=[Link(_context(link.ids, remote=True), link.attributes) for link in span.links],
            events=[Event(event.name, event.attributes, int(event.at * 1e9)) for event in span.events],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else _UNSET,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=_SCOPE,
        )

    def shutdown(self, timeout_s: float) -> None:
        """Send what waits, for at most `timeout_s` seconds; the rest is counted as dropped. Blocks."""
        worker = threading.Thread(target=self._processor.shutdown, name="span shutdown", daemon=True)
        worker.start()
        worker.join(timeout_s)
        if worker.is_alive():
            # the SDK would send on, and try again and again, for 30 s
            self._exporter.shutdown()
        self._unsent.inc(max(self._queued - self._exporter.taken, 0))


def _context(ids: traceparent.SpanIds, *, remote: bool) -> SpanContext:
    return SpanContext(ids.trace_id, ids.span_id, is_remote=remote, trace_flags=_SAMPLED)
