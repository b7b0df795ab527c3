"""Spans and traces, read from the JSON of Jaeger's query API (`/api/traces`, the one its pages use). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

ROOTLESS: Final = ""
"""Key of `children` for spans whose parent is none, or not in the trace."""


class Link(NamedTuple):
    """A span elsewhere that this one came from; ids in hex."""

    trace_id: str
    span_id: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something at one moment within a span; seconds since 1970, UTC."""

    at: float
    name: str
    attributes: Mapping[str, Any]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span. Ids in hex, `start` in seconds since 1970 UTC."""

    trace_id: str
    span_id: str
    name: str
    service: str
    parent_id: str = ""
    start: float
    duration_s: float
    attributes: Mapping[str, Any] = {}
    links: tuple[Link, ...] = ()
    events: tuple[Event, ...] = ()
    error: str = ""
    """What went wrong; empty if nothing did."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """All spans of one trace that Jaeger has, by start, the longer first."""

    trace_id: str
    spans: tuple[Span, ...]

    def children(self) -> dict[str, list[Span]]:
        """Spans by the id of that below which they stand, each list by start: of their parent, or of what
        they follow. Those without either here stand under `ROOTLESS`."""
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            found.setdefault(self.above(span), []).append(span)
        return found

    def above(self, span: Span) -> str:
        """Id of the span that stands above this one, or `ROOTLESS`."""
        for above in (span.parent_id, *self.followed_by(span)):
            if above != span.span_id and self.span(above) is not None:
                return above
        return ROOTLESS

    def followed_by(self, span: Span) -> list[str]:
        """Ids of the spans of this trace that handed over to it: a span without a parent links to them."""
        if span.parent_id:
            return []
        return [link.span_id for link in span.links if link.trace_id == self.trace_id]

    def span(self, span_id: str) -> Span | None:
        """The span of that id, if it is here."""
        return next((span for span in self.spans if span.span_id == span_id), None)


class _Tag(msgspec.Struct):
    key: str
    value: Any = None


class _Reference(msgspec.Struct, rename={"type_": "refType", "trace_id": "traceID", "span_id": "spanID"}):
    type_: str
    trace_id: str
    span_id: str


class _Log(msgspec.Struct):
    timestamp: int
    fields: list[_Tag] = []


class _Process(msgspec.Struct, rename={"service": "serviceName"}):
    service: str


_SPAN_NAMES: Final = {"span_id": "spanID", "name": "operationName", "start_us": "startTime", "process": "processID"}


class _Span(msgspec.Struct, rename=_SPAN_NAMES):
    span_id: str
    name: str
    start_us: int
    duration: int
    process: str
    references: list[_Reference] | None = None
    tags: list[_Tag] | None = None
    logs: list[_Log] | None = None


class _Trace(msgspec.Struct, rename={"trace_id": "traceID"}):
    trace_id: str
    spans: list[_Span]
    processes: dict[str, _Process]


class Answer(msgspec.Struct):
    """What `/api/traces` answers."""

    data: list[_Trace] | None = None

    def traces(self) -> list[Trace]:
        """By their first span's start."""
        found = [_trace(trace) for trace in self.data or () if trace.spans]
        return sorted(found, key=lambda trace: trace.spans[0].start)


def _trace(trace: _Trace) -> Trace:
    spans = [_span(trace, span) for span in trace.spans]
    return Trace(
        trace_id=trace.trace_id,
        spans=tuple(sorted(spans, key=lambda span: (span.start, -span.duration_s, span.span_id))),
    )


def _span(trace: _Trace, span: _Span) -> Span:
    attributes = _attributes(span.tags or ())
    references = span.references or []
    parents = [found.span_id for found in references if found.type_ == "CHILD_OF" and found.trace_id == trace.trace_id]
    failed = attributes.get("otel.status_code") == "ERROR"
    return Span(
        trace_id=trace.trace_id,
        span_id=span.span_id,
        name=span.name,
        service=trace.processes[span.process].service if span.process in trace.processes else "",
        parent_id=parents[0] if parents else "",
        start=span.start_us / 1e6,
        duration_s=span.duration / 1e6,
        attributes=attributes,
        # Jaeger tells links as references; the first one of this trace is the parent
        links=tuple(Link(found.trace_id, found.span_id) for found in _links(references, parents)),
        events=tuple(_events(span.logs or ())),
        error=str(attributes.get("otel.status_description") or "error") if failed else "",
    )


def _links(references: Sequence[_Reference], parents: Sequence[str]) -> Iterator[_Reference]:
    for found in references:
        if found.type_ != "CHILD_OF" or found.span_id not in parents:
            yield found


def _events(logs: Sequence[_Log]) -> Iterator[Event]:
    for log in logs:
        attributes = _attributes(log.fields)
        yield Event(at=log.timestamp / 1e6, name=str(attributes.pop("event", "")), attributes=attributes)


def _attributes(tags: Sequence[_Tag]) -> dict[str, Any]:
    return {tag.key: tag.value for tag in tags}
