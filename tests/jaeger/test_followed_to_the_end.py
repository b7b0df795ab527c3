"""At one percent sampling, after a run with evictions, a preemption, a refused decision and a rollout:
every pod that was unschedulable, evicted or refused is followed to its end by links alone."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import pytest_asyncio

from podyard.cli.jaeger.api import Jaeger
from podyard.cli.jaeger.model import Link, Span, Trace
from podyard.cluster.pods import PodView
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import EvictRequest, ObjectsReply
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from tests.e2e.stage import WITHIN_S, Stand, node, paused, stand
from tests.jaeger.conftest import exporting
from tests.jaeger.reading import until
from tests.jaeger.server import running
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads"
MOST: Final = 1500
"""Traces of one service that are asked for; the run makes some hundred."""
TRIES: Final = 5
CLOCKS_DIFFER_S: Final = 0.002
"""Each process has a clock of its own."""


class Web(NamedTuple):
    """All that Jaeger has: traces by id, and which traces have a span that links to which."""

    traces: Mapping[str, Trace]
    linked_from: Mapping[str, set[str]]

    def spans(self) -> Iterator[Span]:
        """Of all traces."""
        for trace in self.traces.values():
            yield from trace.spans

    def of(self, name: str, **attributes: Any) -> list[Span]:
        """Spans of that name; a dot in an attribute's name is written as two underscores."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return [
            span
            for span in self.spans()
            if span.name == name and all(span.attributes.get(key) == value for key, value in wanted.items())
        ]

    def leads_nowhere(self) -> list[tuple[Span, Link]]:
        """Links to traces that Jaeger does not have, although nobody said that they were not kept."""
        return [
            (span, link)
            for span in self.spans()
            for link in span.links
            if link.trace_id not in self.traces and link.trace_id not in span.attributes.get("podyard.links", "")
        ]

    def after(self, span: Span) -> Iterator[Span]:
        """Spans of its trace, and of every trace that is reached from there by links, in the direction of
        time."""
        seen, waiting = {span.trace_id}, [span.trace_id]
        while waiting:
            trace_id = waiting.pop()
            yield from self.traces[trace_id].spans
            found = self.linked_from.get(trace_id, set()) - seen
            seen |= found
            waiting += found


def read(jaeger: Jaeger) -> Web:
    """Everything, by the query API."""
    traces: dict[str, Trace] = {}
    for service in jaeger.services():
        traces |= {trace.trace_id: trace for trace in jaeger.search(service, limit=MOST)}
    linked_from: dict[str, set[str]] = {}
    for trace in traces.values():
        for span in trace.spans:
            for link in span.links:
                linked_from.setdefault(link.trace_id, set()).add(trace.trace_id)
    return Web(traces, linked_from)


def uid(span: Span) -> str:
    return str(span.attributes.get("k8s.pod.uid", ""))


def ends(span: Span) -> bool:
    """Whether a pod's story has its end there: it runs, or is no more."""
    return span.name in ("start pod", "leave queue", "end pod")


# ---- the run -----------------------------------------------------------------------------------------------


def deployment(here: Stand, version: str) -> dict[str, Any]:
    labels = {"app": "web"}
    template = here.pod("web", cpu="500m", terminationGracePeriodSeconds=1)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": here.namespace},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": {**labels, "version": version}}, "spec": template["spec"]},
        },
    }


def priority(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


async def unschedulable(here: Stand) -> None:
    """One that a new node helps, and one that is deleted while it waits."""
    await here.do.apply([here.pod("big", cpu="9"), here.pod("never", cpu="99")], "too large")
    await here.attempted("big")
    await here.attempted("never")
    await here.join(node("node-3", cpu="16", labels={"pool": "large"}))
    await here.running("big")
    await here.do.delete("pods", here.namespace, "never", "nobody needs it")


async def refused(here: Stand) -> None:
    """A decision that the binder refuses, since its node was cordoned meanwhile.

    The binder is asked before the cordoned node is written. A binder that answers before it reads of the
    cordoned node, which is its right, binds the pod there; then another pod is tried.
    """
    for number in range(TRIES):
        if await decided_too_late(here, number):
            return
        await here.do.delete("pods", here.namespace, "late", "not late enough")
        await here.seen.until("no pod late", lambda: here.known("late") is None, WITHIN_S)
    raise AssertionError(f"{TRIES} times the binder answered before it read of the cordoned node")


async def decided_too_late(here: Stand, number: int) -> bool:
    """Whether a pod got another node than the one that was cordoned while the binder was asked."""
    first, other, pool = f"first-{number}", f"other-{number}", {"pool": f"late-{number}"}

    async def is_decided() -> bool:
        asked = codec.encode(QueueListRequest(name="late"))
        answer = await here.bus.request(subjects.queue_verb("list"), asked)
        return any(pod.pool == "binding" for pod in codec.decode(QueueListReply, answer.payload).pods)

    await here.join(node(first, cpu="4", labels=pool))
    with paused(here.lab, "binder"):
        await here.do.apply([here.pod("late", nodeSelector=pool)], "a pod")
        await eventually("the pod decided", is_decided, WITHIN_S)
        cordoned = node(first, cpu="4", labels=pool, unschedulable=True)
        await here.do.apply([cordoned, node(other, cpu="4", labels=pool)], "one node goes, another one comes")
    await here.running("late")
    return here.bound_to("late") == other


async def rolled_out(here: Stand) -> None:
    """A Deployment that is written once more, of which one pod is evicted then."""
    await here.do.apply([deployment(here, "1")], "web, the first")
    await here.seen.until("three pods of web", lambda: len(here.seen.running("web")) == 3, WITHIN_S)
    await here.do.apply([deployment(here, "2")], "web, the second")

    def newest() -> list[PodView]:
        pods = here.seen.running("web")
        return pods if len(pods) == 3 and all(pod.labels.get("version") == "2" for pod in pods) else []

    [old, *_] = await here.seen.until("three pods of the second web", newest, WITHIN_S)
    target = ObjectRef(resource="pods", namespace=here.namespace, name=old.name)
    asked = codec.encode(EvictRequest(pods=(target,), who="test", why="it is in the way"))
    reply = codec.decode(ObjectsReply, (await here.bus.request(subjects.OBJECTS_EVICT, asked)).payload)
    assert [one.outcome for one in reply.results] == ["evicted"]

    def replaced() -> bool:
        pods = newest()
        return bool(pods) and old.uid not in {pod.uid for pod in pods}

    await here.seen.until("another pod in its place", replaced, WITHIN_S)


async def preempted(here: Stand) -> None:
    await here.do.apply([priority("low", -10), priority("high", 1000)], "classes")
    await here.join(node("node-6", cpu="4", labels={"pool": "full"}))
    where = {"nodeSelector": {"pool": "full"}}
    low = here.pod("low", cpu="3", priorityClassName="low", terminationGracePeriodSeconds=1, **where)
    await here.do.apply([low], "what fills it")
    await here.running("low")
    await here.do.apply([here.pod("urgent", cpu="3", priorityClassName="high", **where)], "what matters")
    await here.running("urgent")


async def gated(here: Stand) -> None:
    await here.do.apply([here.pod("gated", schedulingGates=[{"name": "example.com/later"}])], "not yet")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(program: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    """What Jaeger has after the run."""
    folder = tmp_path_factory.mktemp("followed")
    with running(program, folder / "jaeger.log") as server:
        jaeger = Jaeger(server.url)
        async with stand(folder, services=SERVICES, environment=exporting(server, 0.01)) as here:
            await here.join(node("node-1"), node("node-2"))
            for act in (unschedulable, refused, rolled_out, preempted, gated):
                await act(here)
            until("the end of the victim", lambda: read(jaeger).of("end pod", k8s__pod__name="low"))
            until("the gated pod", lambda: read(jaeger).of("gate pod"))
            until("the preemptor's start", lambda: read(jaeger).of("start pod", k8s__pod__name="urgent"))
        # each service sends its spans at a time of its own, the last as it ends, and Jaeger shows them later
        with suppress(AssertionError):  # which link it is, a test says
            until("a trace for every link", lambda: not read(jaeger).leads_nowhere())
        yield read(jaeger)


# ---- what it shows -----------------------------------------------------------------------------------------


async def test_every_unschedulable_pod_is_followed_to_its_end(web: Web) -> None:
    vain = [span for span in web.of("attempt") if span.attributes["podyard.outcome"] != "scheduled"]
    assert {span.attributes["k8s.pod.name"] for span in vain} >= {"big", "never", "urgent"}
    for span in vain:
        reached = [one for one in web.after(span) if ends(one) and uid(one) == uid(span)]
        assert reached, f"{span.attributes['k8s.pod.name']}: {span.attributes}"


async def test_every_refused_decision_is_followed_to_the_pods_start(web: Web) -> None:
    found = [span for span in web.of("bind") if span.attributes["podyard.bind.result"] == "conflict"]
    assert [span.attributes["k8s.pod.name"] for span in found] == ["late"]
    [trace] = [web.traces[span.trace_id] for span in found]
    names = [span.name for span in trace.spans]
    assert names.count("schedule cycle") == names.count("bind") == 2, names
    assert {"attempt", "start pod"} <= set(names)


async def test_every_evicted_pod_is_followed_to_its_end_and_to_what_replaces_it(web: Web) -> None:
    gone = [*web.of("evict pod"), *web.of("preempt pod")]
    assert len(gone) == 2
    for span in gone:
        name, after = span.attributes["k8s.pod.name"], list(web.after(span))
        told = {one.name for one in after if one.attributes.get("k8s.pod.name") == name}
        assert {"end pod", "release pod"} <= told, f"{name}: {told}"
    [evicted] = web.of("evict pod")
    [replacement] = [
        one
        for one in web.after(evicted)
        if one.attributes.get("podyard.replaces") == evicted.attributes["k8s.pod.name"] and one.name == "attempt"
    ]
    assert replacement.attributes["k8s.deployment.name"] == "web"
    assert "start pod" in {span.name for span in web.traces[replacement.trace_id].spans}


async def test_whom_the_room_woke_links_to_the_preemption_that_made_it(web: Web) -> None:
    [preemption] = web.of("preempt pod")
    attempts = sorted(web.of("attempt", k8s__pod__name="urgent"), key=lambda one: one.start)
    first, last = attempts[0], attempts[-1]
    assert (first.attributes["podyard.outcome"], last.attributes["podyard.outcome"]) == ("unschedulable", "scheduled")
    assert Link(preemption.trace_id, preemption.span_id) in last.links
    assert last.attributes["podyard.woken_by.object"].endswith("/low")
    assert preemption.attributes["podyard.preemptor"].endswith("/urgent")
    assert web.traces[preemption.trace_id].above(preemption) in {
        span.span_id for span in web.of("schedule cycle", k8s__pod__name="urgent")
    }


async def test_what_somebody_did_leads_to_the_pods_that_a_controller_made_of_it(web: Web) -> None:
    [change] = web.of("apply", podyard__why="web, the second")
    told = [span for span in web.after(change) if span.trace_id == change.trace_id]
    assert {"sync deployment", "sync replicaset"} <= {span.name for span in told}
    made = {event.attributes["k8s.pod.name"] for span in told for event in span.events if event.name == "pod made"}
    assert len(made) >= 3


async def test_a_gated_pod_can_be_seen_while_it_waits(web: Web) -> None:
    [span] = web.of("gate pod")
    assert (span.attributes["k8s.pod.name"], span.attributes["podyard.gated_by"]) == ("gated", "SchedulingGates")


async def test_children_lie_within_their_parents_and_last(web: Web) -> None:
    for trace in web.traces.values():
        for span in trace.spans:
            assert span.duration_s >= 1e-6, span
            above = trace.span(span.parent_id)
            if above is not None:
                assert span.start >= above.start - CLOCKS_DIFFER_S, (span, above)
                end, last = span.start + span.duration_s, above.start + above.duration_s
                assert end <= last + CLOCKS_DIFFER_S, (span, above)


async def test_only_faults_are_errors_and_no_link_leads_nowhere(web: Web) -> None:
    assert [(span.name, span.error) for span in web.spans() if span.error] == []
    assert web.leads_nowhere() == []


async def test_of_good_first_attempts_only_the_sampled_are_there(web: Web) -> None:
    """Else the others prove nothing: everything would be there."""
    applied = {"web, the first", "a pod"}
    first = [span for span in web.of("attempt") if span.attributes["podyard.attempt.number"] == 1]
    good = [span for span in first if span.attributes["podyard.outcome"] == "scheduled"]
    assert len(good) <= 4, f"late, the replacement, and what chance kept of 8 of {applied}: {good}"
