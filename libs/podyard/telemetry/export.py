"""The way out for spans: a bounded queue, a thread that sends batches, and counts of all that was lost.

Configured by the standard OTEL_* variables (see `setup`). The SDK is loaded only when an exporter is wanted.
"""

import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import prometheus_client
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags

from podyard.telemetry.tracing import SpanRecord

QUEUE_SIZE: Final = 32_768
"""Spans that wait, unless OTEL_BSP_MAX_QUEUE_SIZE says else. The SDK's 2,048 is a fraction of a second here;
this is some 20 MB at most."""

BATCH_SIZE: Final = 2_048
"""Spans of a request, unless OTEL_BSP_MAX_EXPORT_BATCH_SIZE says else: 2 MB or so. A request costs as much as
100 spans; the SDK sends 512."""

SCHEDULE_DELAY_MS: Final = 1_000
"""Milliseconds between exports, unless OTEL_BSP_SCHEDULE_DELAY says else: people look at a trace right after
the act."""


class Sender(Protocol):
    """Takes batches somewhere; called by the thread that sends, except `shutdown`."""

    def send(self, spans: Sequence[SpanRecord]) -> int:
        """How many arrived. What it raises costs this batch and nothing else."""
        ...

    def shutdown(self) -> None:
        """Send nothing more, and give up what is being sent."""
        ...


class _Waiting(ReadableSpan):
    """A span in the processor's queue, which asks it for nothing but whether it is sampled: all that come
    here are to be sent, whatever the sampler said at the start. It is written when it is sent."""

    _KEPT: Final = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def __init__(self, record: SpanRecord) -> None:
        self.record = record

    @property
    def context(self) -> SpanContext:
        return self._KEPT


class _Counting(SpanExporter):
    """Passes batches on and counts them. Runs on the processor's thread, except `shutdown` and `end`."""

    def __init__(self, sender: Sender, exported: prometheus_client.Counter, failed: Any) -> None:
        self._sender = sender
        self._exported = exported
        self._failed = failed
        self._lock = threading.Lock()
        self._ended = self._is_shut = False
        self.settled = 0
        """Spans that were sent, or lost on the way."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._is_shut:
            return SpanExportResult.FAILURE
        records = [span.record for span in spans if isinstance(span, _Waiting)]
        sent = 0
        try:
            # whatever a network library raises is logged by the processor
            sent = self._sender.send(records)
        finally:
            self._settle(len(records), sent)
        return SpanExportResult.SUCCESS

    def _settle(self, number: int, sent: int) -> None:
        with self._lock:
            if not self._ended:
                self.settled += number
                self._exported.inc(sent)
                self._failed.inc(number - sent)

    def end(self) -> int:
        """What is settled. A batch that is under way is not, and is not counted here any more."""
        with self._lock:
            self._ended = True
            return self.settled

    def shutdown(self) -> None:
        """Give up what is being sent, and take nothing more."""
        if not self._is_shut:
            self._is_shut = True
            self._sender.shutdown()


class ExportSink:
    """A `SpanSink` that sends spans through the SDK's batch processor. `accept` is called by one thread, the
    event loop's."""

    def __init__(
        self,
        sender: Sender,
        *,
        registry: prometheus_client.CollectorRegistry,
        queue_size: int = QUEUE_SIZE,
        batch_size: int = BATCH_SIZE,
        delay_ms: int = SCHEDULE_DELAY_MS,
    ) -> None:
        """:param batch_size: most spans of a request; no more than the queue has room for"""
        exported = prometheus_client.Counter("podyard_spans_exported", "Spans the collector took", registry=registry)
        dropped = prometheus_client.Counter("podyard_spans_dropped", "Spans lost", ["reason"], registry=registry)
        self._full = dropped.labels("queue full")
        self._unsent = dropped.labels("shutdown")
        self._counting = _Counting(sender, exported, dropped.labels("export failed"))
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        self._queue_size = queue_size
        self._queued = 0
        self._processor = BatchSpanProcessor(
            self._counting,
            max_queue_size=queue_size,
            schedule_delay_millis=delay_ms,
            max_export_batch_size=min(batch_size, queue_size),
        )

    def sampled(self, trace_id: int, name: str) -> bool:
        """Ask OTEL_TRACES_SAMPLER: by trace id, so that all services agree."""
        return self._sampler.should_sample(None, trace_id, name).decision.is_sampled()

    def accept(self, span: SpanRecord) -> None:
        """Queue one span, or count it as dropped when the queue is full."""
        if self._queued - self._counting.settled >= self._queue_size:
            self._full.inc()
            return
        self._queued += 1
        self._processor.on_end(_Waiting(span))

    def shutdown(self, timeout_s: float) -> None:
        """Send what waits, for at most `timeout_s` seconds; the rest is counted as dropped, with what is
        under way. Blocks."""
        worker = threading.Thread(target=self._processor.shutdown, name="span shutdown", daemon=True)
        worker.start()
        worker.join(timeout_s)
        if worker.is_alive():
            # the SDK would send on, and try again and again, for 30 s
            self._counting.shutdown()
        self._unsent.inc(self._queued - self._counting.end())
