"""A sink that keeps spans for a test to read."""

from collections.abc import Callable

from podyard.telemetry.tracing import LINK, SpanRecord


class KeptSpans:
    """Keeps what it gets, in order.

    :param sampled: what it says of every trace in which nothing bad happens
    :param changed: called after each span
    """

    def __init__(self, *, sampled: bool = False, changed: Callable[[], None] | None = None) -> None:
        self.spans: list[SpanRecord] = []
        self._sampled = sampled
        self._changed = changed

    def accept(self, span: SpanRecord) -> None:
        self.spans.append(span)
        if self._changed is not None:
            self._changed()

    def sampled(self, trace_id: int, name: str) -> bool:
        del trace_id, name
        return self._sampled

    def links_of(self, span: SpanRecord) -> list[str]:
        """What it links to, each with the word for it: `woken by <trace id>-<span id>`."""
        found = [(str(link.attributes.get(LINK, "")), str(link.ids)[3:52]) for link in span.links]
        return [f"{word} {ids}".strip() for word, ids in found]

    def named(self, name: str) -> list[SpanRecord]:
        """All of this name."""
        return [span for span in self.spans if span.name == name]
