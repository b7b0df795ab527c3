"""Spans after the fact: a core says what happened, the shell emits it with its start, end and ids.

Ids are chosen when work begins and travel as traceparents, so a child may be sent before its parent, and
whether a span is kept may depend on how it ended: bad outcomes are always kept, for the rest the flag in the
traceparent decides: the sampler's, or set because the trace is to be kept whole (`kept`).

A child lies inside its parent. What is handed over and goes on after the span that handed it over is no child
of it: it `follows`, a further root of the same trace with a link.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from podyard.telemetry import traceparent

SpanKind: TypeAlias = Literal["internal", "server", "client", "producer", "consumer"]
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]


SHORTEST_NS: Final = 1_000
KEPT_PER_S: Final = 10.0
"""Traces a second that a process keeps although the sampler did not choose them and nothing bad is in
them."""
MOST_AT_ONCE: Final = 20.0
LINK: Final = "podyard.link"
"""Attribute of links: what the linked span is to this one."""
FOLLOWS: Final[Mapping[str, AttributeValue]] = {LINK: "follows"}
"""Of the link to the span that handed over."""


class SpanEvent(NamedTuple):
    """Something at one moment within a span."""

    name: str
    at: float
    """Seconds since 1970, UTC."""
    attributes: Mapping[str, AttributeValue] = {}


class Link(NamedTuple):
    """A span elsewhere that this one came from."""

    trace: str
    """Its traceparent; what is not one is ignored."""
    attributes: Mapping[str, AttributeValue] = {}


class LinkedTo(NamedTuple):
    """A link of a finished span."""

    ids: traceparent.SpanIds
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
    links: tuple[LinkedTo, ...]
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
        self._room: float = MOST_AT_ONCE
        self._room_at = 0.0

    @property
    def enabled(self) -> bool:
        """Whether spans go anywhere: for callers that would compute attributes."""
        return self._sink is not None

    def new_trace(self, name: str = "", *, keep: bool = False) -> str:
        """A new trace: its root span's traceparent, the flag set by the sampler.

        :param name: of the root span, for samplers that look at it
        :param keep: it is to be kept whole, whatever the sampler says
        """
        trace_id, span_id = traceparent.new_ids()
        sampled = self._sink is not None and (keep or self._sink.sampled(trace_id, name))
        return f"00-{trace_id:032x}-{span_id:016x}-{'01' if sampled else '00'}"

    def child(self, parent: str) -> str:
        """A traceparent for a span below `parent` (same trace and flags); a new trace if `parent` is none."""
        return traceparent.child(parent) or self.new_trace()

    def kept(self, trace: str) -> str:
        """The same span of a trace that is kept whole from here on: whoever goes by its flag keeps what
        follows. Without a sink nothing is kept."""
        return trace if self._sink is None else traceparent.flagged(trace)

    def may_keep(self, at: float) -> bool:
        """Whether there is room for one more trace that the sampler did not choose and that nothing bad is
        in: what people did, what took long. So many a second that a flood of them costs nothing.

        :param at: seconds since 1970, UTC
        """
        if self._sink is None:
            return False
        self._room = min(MOST_AT_ONCE, self._room + max(0.0, at - self._room_at) * KEPT_PER_S)
        self._room_at = at
        if self._room < 1.0:
            return False
        self._room -= 1.0
        return True

    def wanted(self, trace: str, *, keep: bool = False) -> bool:
        """Whether `emit` would send a span of this trace: ask before building costly attributes."""
        return self._sink is not None and (keep or traceparent.is_sampled(trace))

    def emit(
        self,
        name: str,
        *,
        trace: str = "",
        parent: str = "",
        follows: str = "",
        start: float,
        end: float,
        attributes: Mapping[str, AttributeValue] | None = None,
        links: Sequence[str | Link] = (),
        kind: SpanKind = "internal",
        events: Sequence[SpanEvent] = (),
        error: str = "",
        keep: bool = False,
    ) -> None:
        """Emit a finished span. Never raises, never waits.

        :param trace: the span's own traceparent, of which its children must know; empty: a new one below
            `parent`. What is none is ignored
        :param parent: the parent's; empty for a root. A parent of another trace becomes a link
        :param follows: the span's that handed over to this one, which goes on after it: a link
        :param start: seconds since 1970, UTC; as `end`. A span lasts 1 µs at least, or pages show it as
            broken
        :param links: traceparents of what caused this; of traces that were not kept the id also stands in the
            attribute `podyard.links`, since their spans cannot be looked up
        :param error: what went wrong: sets the span's status; empty leaves it unset
        :param keep: send it although the sampler did not choose its trace
        """
        if self._sink is None or not (keep or traceparent.is_sampled(trace or parent)):
            return
        ids = traceparent.parse(trace or traceparent.child(parent) or "")
        if ids is None:
            return
        above = traceparent.parse(parent)
        linked = _linked((Link(follows, FOLLOWS), *links) if follows else links)
        if above is not None and above.trace_id != ids.trace_id:
            linked.append(LinkedTo(above))
            above = None
        found_attributes: Mapping[str, AttributeValue] = attributes or {}
        if unsampled := [str(link.ids) for link in linked if not link.ids.sampled]:
            found_attributes = {**found_attributes, "podyard.links": unsampled}
        start_ns = _nanoseconds(start)
        self._sink.accept(
            SpanRecord(
                name=name,
                ids=ids,
                parent=above,
                start_ns=start_ns,
                end_ns=max(_nanoseconds(end), start_ns + SHORTEST_NS),
                kind=kind,
                attributes=found_attributes,
                links=tuple(linked),
                events=events,
                error=error,
            )
        )


def _linked(links: Iterable[str | Link]) -> list[LinkedTo]:
    found: list[LinkedTo] = []
    for link in links:
        one = Link(link) if isinstance(link, str) else link
        ids = traceparent.parse(one.trace)
        if ids is not None:
            found.append(LinkedTo(ids, one.attributes))
    return found


def _nanoseconds(at: float) -> int:
    """Whole microseconds: a float of today's seconds holds no more."""
    return round(at * 1e6) * 1_000
