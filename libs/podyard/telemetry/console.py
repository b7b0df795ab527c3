"""Finished spans as JSON on the standard output, as the SDK writes them: OTEL_TRACES_EXPORTER=console."""

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from podyard.telemetry import traceparent
from podyard.telemetry.tracing import SpanRecord

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


class ConsoleSender:
    """Writes batches."""

    def __init__(self, resource: Mapping[str, str]) -> None:
        """:param resource: attributes of who writes"""
        self._resource = Resource(resource)
        self._exporter = ConsoleSpanExporter()

    def send(self, spans: Sequence[SpanRecord]) -> int:
        """Write them.

        :return: how many: all
        """
        self._exporter.export([readable(span, self._resource) for span in spans])
        return len(spans)

    def shutdown(self) -> None:
        """Nothing waits here."""


def readable(span: SpanRecord, resource: Resource) -> ReadableSpan:
    """The SDK's form of a span."""
    return ReadableSpan(
        name=span.name,
        context=_context(span.ids, remote=False),
        parent=None if span.parent is None else _context(span.parent, remote=True),
        resource=resource,
        attributes=span.attributes,
        links=[Link(_context(link.ids, remote=True), link.attributes) for link in span.links],
        events=[Event(event.name, event.attributes, int(event.at * 1e9)) for event in span.events],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.error) if span.error else _UNSET,
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=_SCOPE,
    )


def _context(ids: traceparent.SpanIds, *, remote: bool) -> SpanContext:
    # always with the sampled flag: what arrives here is to be sent, whatever the sampler said at the start
    return SpanContext(ids.trace_id, ids.span_id, is_remote=remote, trace_flags=_SAMPLED)
