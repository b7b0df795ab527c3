"""What Jaeger has about one pod: its attempts, what it waited for, its end, and the spans that they link
to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from podyard.cli.jaeger.api import Jaeger
from podyard.cli.jaeger.model import Link, Span, Trace
from podyard.telemetry.conventions import EVICT_SPAN, NAMESPACE, POD

ATTEMPTS: Final = ("podyard-queue", "attempt")
WAITS: Final = (
    *(("podyard-queue", name) for name in ("wait before attempt", "gate pod", "leave queue")),
    ("podyard-binder", "wait for volume"),
)
EVICTIONS: Final = tuple((f"podyard-{name}", EVICT_SPAN) for name in ("node_agent", "descheduler", "api"))
ENDS: Final = (
    *EVICTIONS,
    ("podyard-scheduler", "preempt pod"),
    ("podyard-node_agent", "end pod"),
    ("podyard-binder", "release pod"),
)
"""Service and name of the spans that stand for what happened to a pod."""

MOST_LOOKED_UP: Final = 20
"""Linked traces that are asked for by name; each is a request."""


class PodTraces(msgspec.Struct, frozen=True, kw_only=True):
    """Traces of one pod by start, and the spans elsewhere that they link to, as far as Jaeger has them."""

    namespace: str
    name: str
    traces: tuple[Trace, ...]
    linked: Mapping[Link, Span] = {}


def find(jaeger: Jaeger, namespace: str, name: str, limit: int) -> PodTraces:
    """The newest `limit` attempts of the pod, its waits, its end, and what they link to.

    :raises CliError: if Jaeger does not answer
    """
    tags = {NAMESPACE: namespace, POD: name}
    found: dict[str, Trace] = {}
    for service, operation in (ATTEMPTS, *WAITS, *ENDS):
        for trace in jaeger.search(service, operation, tags, limit):
            found[trace.trace_id] = trace
    traces = sorted(found.values(), key=lambda trace: trace.spans[0].start)[-limit:]
    return PodTraces(namespace=namespace, name=name, traces=tuple(traces), linked=_linked(jaeger, traces))


def _linked(jaeger: Jaeger, traces: Sequence[Trace]) -> dict[Link, Span]:
    known = {trace.trace_id: trace for trace in traces}
    wanted = list(dict.fromkeys(_links(traces)))
    elsewhere = list(dict.fromkeys(link.trace_id for link in wanted if link.trace_id not in known))
    for trace_id in elsewhere[-MOST_LOOKED_UP:]:
        if (trace := jaeger.trace(trace_id)) is not None:
            known[trace_id] = trace
    spans = {link: known[link.trace_id].span(link.span_id) for link in wanted if link.trace_id in known}
    return {link: span for link, span in spans.items() if span is not None}


def _links(traces: Sequence[Trace]) -> Iterator[Link]:
    for trace in traces:
        for span in trace.spans:
            yield from span.links
