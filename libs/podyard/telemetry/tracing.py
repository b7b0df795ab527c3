"""Spans after the fact: a core says what happened, the shell emits it with its start, end and ids.

Ids are chosen when work begins and travel as traceparents, so a child may be sent before its parent, and
whether a span is kept may depend on how it ended: bad outcomes are always kept, for the rest the sampler's
flag in the traceparent decides.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from podyard.telemetry import traceparent

SpanKind: TypeAlias = Literal["internal", "server", "client", "producer", "consumer"]
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]


class SpanEvent(NamedTuple):
    """Something at one moment within a span."""

    name: str
    at: float
    """Seconds since 1970, UTC."""
    attributes: Mapping[str, AttributeValue] = {}


class SpanRecord(NamedTuple):
    """A finished span, before it takes the exporter's form. Times are nanoseconds since 1970, UTC."""

    name: str
    ids: traceparent.SpanIds
    parent: traceparent.SpanIds | None
    start_ns: int
    end_ns: int
    kind: SpanKind
    attributes: Mapping[str, AttributeValue]
    links: tuple[traceparent.SpanIds, ...]
    events: Sequence[SpanEvent]
    error: str


class SpanSink(Protocol):
    """Where kept spans go. Must not block and must not raise."""

    def accept(self, span: SpanRecord) -> None:
        """Take one span; when there is no room, count it as dropped."""
        ...

    def sampled(self, trace_id: int, name: str) -> bool:
        """Whether a new trace is kept when nothing bad happens in it (OTEL_TRACES_SAMPLER)."""
        ...


class Spans:
    """What services emit spans through. Without a sink every call is nearly free."""

    def __init__(self, sink: SpanSink | None = None) -> None:
        """:param sink: `None`: tracing is off; ids are still made, since records name them"""
        self._sink = sink

    @property
    def enabled(self) -> bool:
        """Whether spans go anywhere: for callers that would compute attributes."""
        return self._sink is not None

    def new_trace(self, name: str = "") -> str:
        """A new trace: its root span's traceparent, the flag set by the sampler.

        :param name: of the root span, for samplers that look at it
        """
        trace_id, span_id = traceparent.new_ids()
        sampled = self._sink is not None and self._sink.sampled(trace_id, name)
        return f"00-{trace_id:032x}-{span_id:016x}-{'01' if sampled else '00'}"

    def child(self, parent: str) -> str:
        """A traceparent for a span below `parent` (same trace and flags); a new trace if `parent` is none."""
        return traceparent.child(parent) or self.new_trace()

    def wanted(self, trace: str, *, keep: bool = False) -> bool:
        """Whether `emit` would send a span of this trace: ask before building costly attributes."""
        return self._sink is not None and (keep or traceparent.is_sampled(trace))

    def emit(
        self,
        name: str,
        *,
        trace: str,
        parent: str = "",
        start: float,
        end: float,
        attributes: Mapping[str, AttributeValue] | None = None,
        links: Sequence[str] = (),
        kind: SpanKind = "internal",
        events: Sequence[SpanEvent] = (),
        error: str = "",
        keep: bool = False,
    ) -> None:
        """Emit a finished span. Never raises, never waits.

        :param trace: the span's own traceparent; what is not one is ignored
        :param parent: the parent's; empty for a root. A parent of another trace becomes a link
        :param start: seconds since 1970, UTC; as `end`, which is not before it
        :param links: traceparents of what caused this; of traces that were not kept the id also stands in the
            attribute `podyard.links`, since their spans cannot be looked up
        :param error: what went wrong: sets the span's status; empty leaves it unset
        :param keep: send it although the sampler did not choose its trace
        """
        if self._sink is None or not (keep or traceparent.is_sampled(trace)):
            return
        ids = traceparent.parse(trace)
        if ids is None:
            return
        above = traceparent.parse(parent)
        linked = [found for found in map(traceparent.parse, links) if found is not None]
        if above is not None and above.trace_id != ids.trace_id:
            linked.append(above)
            above = None
        found_attributes: Mapping[str, AttributeValue] = attributes or {}
        if unsampled := [str(link) for link in linked if not link.sampled]:
            found_attributes = {**found_attributes, "podyard.links": unsampled}
        start_ns = _nanoseconds(start)
        self._sink.accept(
            SpanRecord(
                name=name,
                ids=ids,
                parent=above,
                start_ns=start_ns,
                end_ns=max(_nanoseconds(end), start_ns),
                kind=kind,
                attributes=found_attributes,
                links=tuple(linked),
                events=events,
                error=error,
            )
        )


def _nanoseconds(at: float) -> int:
    """Whole microseconds: a float of today's seconds holds no more."""
    return round(at * 1e6) * 1_000
