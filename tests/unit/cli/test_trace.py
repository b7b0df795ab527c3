"""`podyard trace`: Jaeger's JSON read into spans, and shown as trees."""

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from podyard.cli.commands.trace import _nothing, _pod_name
from podyard.cli.errors import InputError
from podyard.cli.jaeger.api import DEFAULT_URL, Jaeger
from podyard.cli.jaeger.model import ROOTLESS, Answer, Link, Trace
from podyard.cli.jaeger.pods import PodTraces, find
from podyard.cli.render import trace as rendered
from podyard.proto.pools import Pool
from podyard.proto.queue_api import QueuedPodInfo

FIRST, SECOND, EVENT = "a" * 32, "b" * 32, "c" * 32


def tags(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "type": "string", "value": value} for key, value in values.items()]


def span(trace_id: str, span_id: str, name: str, *, at_ms: float = 0, parent: str = "", **more: Any) -> dict[str, Any]:
    """A span as `/api/traces` tells it."""
    references = [{"refType": "CHILD_OF", "traceID": trace_id, "spanID": parent}] if parent else []
    references += [{"refType": "FOLLOWS_FROM", "traceID": one, "spanID": two} for one, two in more.get("links", ())]
    return {
        "traceID": trace_id,
        "spanID": span_id,
        "operationName": name,
        "references": references,
        "startTime": int(1.7e15 + at_ms * 1000),
        "duration": int(more.get("took_ms", 1) * 1000),
        "tags": more.get("tags", []),
        "logs": more.get("logs", []),
        "processID": more.get("process", "p1"),
        "warnings": None,
    }


def answer(*traces: tuple[str, list[dict[str, Any]]]) -> list[Trace]:
    processes = {"p1": {"serviceName": "podyard-queue", "tags": []}, "p2": {"serviceName": "podyard-api", "tags": []}}
    data = [{"traceID": trace_id, "spans": spans, "processes": processes} for trace_id, spans in traces]
    return msgspec.json.decode(msgspec.json.encode({"data": data, "errors": None, "total": 0}), type=Answer).traces()


@pytest.fixture
def trainer() -> PodTraces:
    """An attempt in vain, and the one that an event led to."""
    error = tags(otel__status_code="ERROR", otel__status_description="0/1 nodes are available")
    rejected = [{"key": "podyard.rejected_by.TaintToleration", "type": "bool", "value": True}]
    woken = tags(podyard__woken_by__event="NodeUpdateNodeTaint", podyard__woken_by__plugin="TaintToleration")
    vain = span(FIRST, "1", "attempt", took_ms=5, tags=[*tags(podyard__outcome="unschedulable"), *rejected, *error])
    cycle = span(FIRST, "2", "schedule cycle", at_ms=1, parent="1", tags=error)
    moved = {"timestamp": int(1.7e15), "fields": tags(event="pod moved", k8s__pod__name="trainer")}
    good = span(
        SECOND,
        "3",
        "attempt",
        at_ms=90,
        tags=[*tags(podyard__outcome="scheduled", k8s__node__name="node-6"), *woken],
        links=[(FIRST, "1"), (EVENT, "4"), ("d" * 32, "9")],
        logs=[moved],
    )
    apply = span(EVENT, "4", "apply", at_ms=80, process="p2", tags=tags(podyard__why="the taint goes"))
    [first, event, second] = answer((FIRST, [cycle, vain]), (SECOND, [good]), (EVENT, [apply]))
    linked = {Link(FIRST, "1"): first.spans[0], Link(EVENT, "4"): event.spans[0]}
    return PodTraces(namespace="default", name="trainer", traces=(first, second), linked=linked)


def shown(pod: PodTraces) -> list[str]:
    console = Console(file=io.StringIO(), width=300, no_color=True)
    console.print(rendered.view(pod, Jaeger("http://jaeger:16686", "http://here").link))
    return [line.lstrip(" │├└─").rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_traces_are_read_with_parents_links_events_and_errors(trainer: PodTraces) -> None:
    first, second = trainer.traces
    assert [(one.name, one.parent_id, one.service) for one in first.spans] == [
        ("attempt", "", "podyard-queue"),
        ("schedule cycle", "1", "podyard-queue"),
    ]
    assert first.spans[0].error == "0/1 nodes are available"
    assert first.spans[0].start == 1.7e9
    assert first.spans[0].duration_s == 0.005
    assert second.spans[0].links == (Link(FIRST, "1"), Link(EVENT, "4"), Link("d" * 32, "9"))
    assert second.spans[0].events[0].name == "pod moved"
    assert second.spans[0].events[0].attributes == {"k8s.pod.name": "trainer"}
    assert not second.spans[0].error


def test_a_span_whose_parent_is_not_there_stands_at_the_top() -> None:
    [trace] = answer((FIRST, [span(FIRST, "1", "bind", parent="lost"), span(FIRST, "2", "start pod", parent="1")]))
    children = trace.children()
    assert [one.name for one in children[ROOTLESS]] == ["bind"]
    assert [one.name for one in children["1"]] == ["start pod"]


def test_spans_that_begin_together_have_the_longer_first() -> None:
    [trace] = answer((FIRST, [span(FIRST, "1", "wait", took_ms=1), span(FIRST, "2", "attempt", took_ms=9)]))
    assert [one.name for one in trace.spans] == ["attempt", "wait"]


def test_the_tree_tells_what_happened_and_where_it_came_from(trainer: PodTraces) -> None:
    lines = shown(trainer)
    assert lines[0] == "Pod default/trainer  2 traces"
    assert lines[1].endswith(f"  http://here/trace/{FIRST}")
    assert lines[2:5] == [
        "attempt            queue       +0s      5.0ms   unschedulable rejected by TaintToleration",
        "0/1 nodes are available",
        "schedule cycle     queue       +1.0ms   1.0ms",
    ]
    assert lines[6:] == [
        "attempt            queue       +0s      1.0ms   scheduled on node-6",
        "woken by NodeUpdateNodeTaint, TaintToleration's hint",
        f"came from attempt (queue: unschedulable rejected by TaintToleration), trace {FIRST}",
        f"came from apply (api: “the taint goes”), trace {EVENT}",
        f"came from a span that Jaeger does not have, trace {'d' * 32}",
        "pod moved name=trainer",
    ]


def test_what_follows_a_span_stands_below_it_and_the_pod_is_named_if_it_is_another() -> None:
    victim = tags(k8s__namespace__name="default", k8s__pod__name="small", podyard__preemptor="default/urgent")
    cycle = span(FIRST, "1", "schedule cycle", tags=tags(podyard__victims='["default/small"]'))
    preempt = span(FIRST, "2", "preempt pod", at_ms=5, links=[(FIRST, "1")], tags=victim)
    other = tags(k8s__namespace__name="other", k8s__pod__name="b", podyard__bind__won="default/x")
    bind = span(FIRST, "3", "bind", at_ms=6, links=[(FIRST, "2"), (SECOND, "9")], tags=other)
    [trace] = answer((FIRST, [bind, preempt, cycle]))
    children = trace.children()
    assert {above: [one.name for one in below] for above, below in children.items()} == {
        ROOTLESS: ["schedule cycle"],
        "1": ["preempt pod"],
        "2": ["bind"],
    }
    lines = shown(PodTraces(namespace="default", name="small", traces=(trace,)))
    assert lines[2:] == [
        "schedule cycle     queue       +0s      1.0ms   preempts default/small",
        "preempt pod        queue       +5.0ms   1.0ms   for default/urgent",
        "bind               queue       +6.0ms   1.0ms   other/b won by default/x",
        f"came from a span that Jaeger does not have, trace {SECOND}",
    ]


@pytest.mark.parametrize(
    ("service", "name"),
    [("podyard-queue", "gate pod"), ("podyard-queue", "wait before attempt"), ("podyard-binder", "wait for volume")],
)
def test_a_pod_is_found_while_it_waits(monkeypatch: pytest.MonkeyPatch, service: str, name: str) -> None:
    """Its attempt has a span when it has ended."""
    traces = answer((FIRST, [span(FIRST, "1", name)]))

    def search(_: Jaeger, of: str, operation: str, *words: object) -> list[Trace]:
        return traces if (of, operation) == (service, name) else []

    monkeypatch.setattr(Jaeger, "search", search)
    assert find(Jaeger(), "default", "slow", 20).traces == tuple(traces)


@pytest.mark.parametrize(
    ("queued", "told"),
    [
        (
            QueuedPodInfo(
                namespace="d", name="a", uid="u", pool=Pool.GATED, gating_plugin="SchedulingGates", message="by x"
            ),
            "it is gated by SchedulingGates: by x; an attempt has a trace when it has ended",
        ),
        (QueuedPodInfo(namespace="d", name="a", uid="u", pool=Pool.BINDING), "it is binding; an attempt has a trace"),
        (None, "good attempts are sampled"),
    ],
)
def test_sampling_is_not_blamed_for_a_pod_that_waits(
    monkeypatch: pytest.MonkeyPatch, queued: QueuedPodInfo | None, told: str
) -> None:
    monkeypatch.setattr(Jaeger, "services", lambda self: ["podyard-queue"])
    assert told in str(_nothing(Jaeger(), "d", "a", queued).advice)


@pytest.mark.parametrize("words", [("web", ""), ("pod", "web"), ("pods/web", ""), ("po/web", "")])
def test_a_pod_is_named_as_people_type_it(words: tuple[str, str]) -> None:
    assert _pod_name(*words) == "web"


@pytest.mark.parametrize("words", [("node", "web"), ("node/web", ""), ("pod/web", "web"), ("pod/", "")])
def test_only_pods_have_traces(words: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="cannot trace"):
        _pod_name(*words)


def test_jaegers_address_is_the_flags_then_the_environments_then_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PODYARD_JAEGER_LINK_URL", raising=False)
    monkeypatch.delenv("PODYARD_JAEGER_URL", raising=False)
    assert Jaeger().link("1") == f"{DEFAULT_URL}/trace/1"
    monkeypatch.setenv("PODYARD_JAEGER_URL", "http://jaeger:16686/")
    assert Jaeger().link("1") == "http://jaeger:16686/trace/1"
    assert Jaeger("http://other").link("1") == "http://other/trace/1"
    monkeypatch.setenv("PODYARD_JAEGER_LINK_URL", "http://localhost:1")
    assert Jaeger().link("1") == "http://localhost:1/trace/1"
    with pytest.raises(InputError, match="not a web address"):
        Jaeger("jaeger:16686")
