"""The demo's story as Jaeger's query API tells it: one connected trace a pod, and links where one thing led
to another."""

import pytest

from podyard.cli.demo.evidence import Evidence
from podyard.cli.jaeger.api import Jaeger
from podyard.cli.jaeger.model import Link, Span, Trace
from tests.jaeger.reading import one, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

WAY = {
    "attempt": ("podyard-queue", ""),
    "wait in queue": ("podyard-queue", "attempt"),
    "wait for cycle": ("podyard-scheduler", "attempt"),
    "schedule cycle": ("podyard-scheduler", "attempt"),
    "wait for binding": ("podyard-queue", "attempt"),
    "Filter": ("podyard-scheduler", "schedule cycle"),
    "Score": ("podyard-scheduler", "schedule cycle"),
    "bind": ("podyard-binder", "schedule cycle"),
    "commit": ("podyard-binder", "bind"),
    "start pod": ("podyard-node_agent", "bind"),
}
"""Span -> service and what stands above it: its parent, or what it follows."""
CHOICE = "Score"
"""Only where several nodes were left after Filter, as in kube-scheduler."""


def attempts(jaeger: Jaeger, pod: str, times: int) -> list[Trace]:
    """Traces of a pod's attempts, once there are so many."""
    tags = {"k8s.namespace.name": "default", "k8s.pod.name": pod}

    def found() -> list[Trace]:
        traces = jaeger.search("podyard-queue", "attempt", tags)
        return traces if len(traces) >= times else []

    return until(f"{times} attempts of {pod}", found)


def evictions(jaeger: Jaeger, service: str) -> list[Span]:
    """Spans "evict pod" of one service."""

    def found() -> list[Span]:
        traces = jaeger.search(service, "evict pod")
        return [span for trace in traces for span in trace.spans if span.name == "evict pod"]

    return until(f"an eviction by {service}", found)


async def test_a_pods_trace_goes_through_queue_scheduler_binder_and_node_agent(told: Evidence, jaeger: Jaeger) -> None:
    chosen = 0
    for name in ("cache-1", "cache-2", "cache-4", "cache-5"):

        def whole(name: str = name) -> Trace | None:
            [trace] = attempts(jaeger, name, 1)
            return trace if {span.name for span in trace.spans} >= WAY.keys() - {CHOICE} else None

        trace = until(f"the whole trace of {name}", whole)
        names = {span.span_id: span.name for span in trace.spans}
        seen = {span.name: (span.service, names.get(trace.above(span), "")) for span in trace.spans}
        assert {name: seen.get(name, WAY[CHOICE]) for name in WAY} == WAY
        chosen += CHOICE in seen
        assert one(trace, "bind").attributes["k8s.node.name"] == one(trace, "start pod").attributes["k8s.node.name"]
        assert not any(span.error for span in trace.spans)
    assert chosen > 0


async def test_the_attempt_after_a_requeue_links_to_the_event_and_to_the_attempt_before(
    told: Evidence, jaeger: Jaeger
) -> None:
    first, second = (one(trace, "attempt") for trace in attempts(jaeger, "trainer", 2))
    assert (first.attributes["podyard.outcome"], second.attributes["podyard.outcome"]) == ("unschedulable", "scheduled")
    [event] = [link for link in second.links if link.trace_id != first.trace_id]
    assert Link(first.trace_id, first.span_id) in second.links
    changed = until("what made the change", lambda: jaeger.trace(event.trace_id))
    source = changed.span(event.span_id)
    assert source is not None
    assert (source.service, source.attributes["podyard.why"]) == ("podyard-api", "the pool is free for all")
    moved = one(changed, "requeue pods")
    assert (moved.service, changed.above(moved)) == ("podyard-queue", source.span_id)
    assert [event.attributes["k8s.pod.name"] for event in moved.events] == ["trainer"]


@pytest.mark.parametrize("evictor", ["podyard-node_agent", "podyard-descheduler"])
async def test_a_pod_made_again_after_an_eviction_links_to_it(told: Evidence, jaeger: Jaeger, evictor: str) -> None:
    done = {Link(span.trace_id, span.span_id) for span in evictions(jaeger, evictor)}

    def replacements() -> list[Span]:
        traces = jaeger.search("podyard-queue", "attempt", limit=200)
        return [span for trace in traces for span in trace.spans if span.name == "attempt" and done & {*span.links}]

    found = until(f"an attempt that links to an eviction by {evictor}", replacements)
    assert all(span.attributes["k8s.pod.name"].startswith("web-") for span in found)
    assert all(span.attributes["podyard.attempt.number"] == 1 for span in found)


@pytest.mark.parametrize(("plugin", "pod"), [("TaintToleration", "trainer"), ("NodeResourcesFit", "report")])
async def test_all_pods_that_a_plugin_rejected_are_found_by_a_tag(
    told: Evidence, jaeger: Jaeger, plugin: str, pod: str
) -> None:
    stored = {record.attempt for record in told.attempts if plugin in record.unschedulable_plugins}
    tags = {f"podyard.rejected_by.{plugin}": "true"}

    def found() -> set[str]:
        traces = jaeger.search("podyard-queue", "attempt", tags, limit=200)
        return {
            span.attributes["podyard.attempt"] for trace in traces for span in trace.spans if span.name == "attempt"
        }

    assert until(f"the attempts that {plugin} rejected", lambda: found() if found() >= stored else set()) == stored
    names = {record.name for record in told.attempts if record.attempt in stored}
    assert pod in names
