"""Finished spans on their way to a collector: OTLP over HTTP.

A request says what the SDK's encoder would say (opentelemetry-proto, trace/v1/trace.proto), in a quarter of
its time: a span is one nested dict, which protobuf takes as a whole. The SDK makes each attribute, link and
event a message and copies it into the one above. Connection, time-outs, retries, headers and compression are
the SDK's exporter's.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podyard.telemetry.tracing import AttributeValue, LinkedTo, SpanEvent, SpanRecord

SCOPE: Final = "podyard"
_log: Final = logging.getLogger(__name__)
_KINDS: Final = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_ERROR: Final = 2
_REMOTE_KNOWN: Final = 0x100
"""SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK: the next bit means something."""
_OF_REMOTE: Final = _REMOTE_KNOWN | 0x200
"""The parent, or the linked span, is of another process, as far as anybody knows."""
_FIELDS: Final[Mapping[type, str]] = {
    str: "string_value",
    bool: "bool_value",
    int: "int_value",
    float: "double_value",
}


class OtlpSender:
    """Sends batches; told where and how by OTEL_EXPORTER_OTLP_*."""

    def __init__(self, resource: Mapping[str, str]) -> None:
        """:param resource: attributes of who sends"""
        self._resource = resource
        self._exporter = OTLPSpanExporter()

    def send(self, spans: Sequence[SpanRecord]) -> int:
        """Send them as one request, again if need be; blocks meanwhile.

        :return: how many the collector took
        """
        body, number = encode(spans, self._resource)
        # the exporter has no public method that takes what is encoded already; its minor version is pinned
        return number if self._exporter._client.export(body).success else 0  # pyright: ignore[reportPrivateUsage]

    def shutdown(self) -> None:
        """Send nothing more, and give up what is being sent."""
        self._exporter.shutdown()


def encode(spans: Sequence[SpanRecord], resource: Mapping[str, str]) -> tuple[bytes, int]:
    """The body of a request, and how many spans are in it.

    A span that cannot be written is left out, and logged: a plugin's text may be no Unicode, a number may
    take more than 64 bits.
    """
    request: Any = ExportTraceServiceRequest()  # its stubs know of no dicts
    sent = request.resource_spans.add(resource={"attributes": _attributes(resource)})
    scope = sent.scope_spans.add(scope={"name": SCOPE})
    for span in spans:
        try:
            scope.spans.add(**_span(span))
        except (TypeError, ValueError) as error:
            _log.warning("the span %r cannot be written: %s", span.name, error)
    return request.SerializeToString(), len(scope.spans)


def _span(span: SpanRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trace_id": span.ids.trace_id.to_bytes(16),
        "span_id": span.ids.span_id.to_bytes(8),
        "name": span.name,
        "kind": _KINDS[span.kind],
        "start_time_unix_nano": span.start_ns,
        "end_time_unix_nano": span.end_ns,
        "flags": _REMOTE_KNOWN,
    }
    if span.parent is not None:
        found["parent_span_id"] = span.parent.span_id.to_bytes(8)
        found["flags"] = _OF_REMOTE
    if span.attributes:
        found["attributes"] = _attributes(span.attributes)
    if span.links:
        found["links"] = [_link(link) for link in span.links]
    if span.events:
        found["events"] = [_event(event) for event in span.events]
    if span.error:
        found["status"] = {"code": _ERROR, "message": span.error}
    return found


def _link(link: LinkedTo) -> dict[str, Any]:
    return {
        "trace_id": link.ids.trace_id.to_bytes(16),
        "span_id": link.ids.span_id.to_bytes(8),
        "attributes": _attributes(link.attributes),
        "flags": _OF_REMOTE,
    }


def _event(event: SpanEvent) -> dict[str, Any]:
    return {
        "name": event.name,
        "time_unix_nano": int(event.at * 1e9),
        "attributes": _attributes(event.attributes),
    }


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> dict[str, Any]:
    field = _FIELDS.get(type(value))
    if field is not None:
        return {field: value}
    for kind in (str, int, float):  # what is derived from them: an enumeration, a number of NumPy's
        if isinstance(value, kind):
            return {_FIELDS[kind]: value}
    assert not isinstance(value, (str, int, float))
    return {"array_value": {"values": [_value(one) for one in value]}}
