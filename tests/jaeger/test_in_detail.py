"""At one percent sampling, in a lab whose scheduler tells of each call of a plugin: pods that wait for a
volume, and what plugins said."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from podyard.cli.jaeger.api import Jaeger
from podyard.cli.jaeger.model import Link, Span, Trace
from podyard.telemetry.conventions import POD
from tests.e2e.provisioner import Provisioner
from tests.e2e.stage import Stand, node, stand
from tests.e2e.test_volumes import claim, marked, storage_class, user
from tests.jaeger.conftest import exporting
from tests.jaeger.reading import one, until
from tests.jaeger.server import JaegerServer, running
from tests.jaeger.test_followed_to_the_end import preempted
from tests.jaeger.test_pages import SAVED, asked
from tests.jaeger.test_trace_command import trace as shown
from tests.support.holding import held

pytestmark = pytest.mark.asyncio(loop_scope="module")

IN_DETAIL = {"PODYARD_SCHEDULER_SPANS_BY_PLUGIN": "true"}
WAIT = "wait for volume"
PLUGIN = "podyard.plugin"
ROUNDED_S = 1.5e-6
"""Jaeger has whole microseconds, and a span lasts one at least."""


class Place(NamedTuple):
    """The lab, and the Jaeger that it sends its spans to."""

    lab: Stand
    server: JaegerServer
    jaeger: Jaeger

    async def twice(self, name: str, *needs: str) -> None:
        """A pod whose first attempt is in vain, so that its second is kept whole: it fits on two new nodes.

        :param needs: claims
        """
        where = {"pool": name}
        await self.lab.join(node(f"{name}-small", cpu="1", labels=where))
        await self.lab.do.apply([user(self.lab, name, *needs, cpu="2", nodeSelector=where)], "too large")
        await self.lab.attempted(name)
        await self.lab.join(*(node(f"{name}-{number}", cpu="8", labels=where) for number in range(2)))

    def attempt(self, pod: str, number: int, *names: str) -> Trace:
        """The trace of an attempt, once it has spans of these names: the last ones that their senders
        send."""
        tags = {POD: pod, "podyard.attempt.number": str(number)}

        def found() -> Trace | None:
            traces = self.jaeger.search("podyard-queue", "attempt", tags)
            return traces[0] if traces and {span.name for span in traces[0].spans} >= {*names} else None

        return until(f"attempt {number} of {pod} with {', '.join(names)}", found)

    def waits(self, pod: str) -> Trace:
        """The trace of a pod that waits for a volume."""

        def found() -> Trace | None:
            traces = self.jaeger.search("podyard-binder", WAIT, {POD: pod})
            return traces[0] if traces else None

        return until(f"{pod} waiting", found)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(program: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("detail")
    with running(program, folder / "jaeger.log") as server:
        async with held(stand(folder, environment=exporting(server, 0.01) | IN_DETAIL)) as lab:
            await lab.join(node("node-1"), node("node-2"))
            await lab.do.apply([storage_class("made", "csi.example.com")], "somebody else makes volumes")
            yield Place(lab, server, Jaeger(server.url))


# ---- waiting for a volume ----------------------------------------------------------------------------------


async def test_a_pod_can_be_seen_while_it_waits_for_its_volume(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = here.lab
    await lab.do.apply([claim(lab, "disk"), user(lab, "slow", "disk")], "a pod with a claim")
    place = await marked(lab, "disk")
    told = one(here.waits("slow"), WAIT)
    assert (told.service, told.attributes["k8s.node.name"]) == ("podyard-binder", place)
    assert (told.attributes["podyard.bind.result"], told.attributes["podyard.bind.cause"]) == (
        "waiting",
        "VolumeBinding",
    )
    assert "waiting for the volumes of PVC" in told.attributes["podyard.bind.reasons"]
    assert not told.error
    [saved] = [item["url"] for item in SAVED["items"] if item["label"] == "Pods that wait for a volume"]
    assert told.trace_id in {trace.trace_id for trace in asked(here.jaeger, saved)}
    page = await shown(here.server, monkeypatch, "slow")
    assert page.code == 0, page.err
    assert here.jaeger.link(told.trace_id) in page.out
    assert WAIT in page.out
    assert f"waiting VolumeBinding on {place}" in page.out
    assert here.jaeger.search("podyard-queue", "attempt", {POD: "slow"}) == [], "an attempt is told at its end"
    assert lab.bound_to("slow") == "", "it waits still: nobody has made its volume"
    await Provisioner(lab.bus, lab.namespace).make("disk")
    await lab.running("slow")


async def test_a_wait_for_a_volume_stands_between_the_cycle_and_the_pods_start(here: Place) -> None:
    lab = here.lab
    await lab.do.apply([claim(lab, "late")], "a claim")
    await here.twice("patient", "late")
    await marked(lab, "late")
    waiting = one(here.waits("patient"), WAIT)
    assert lab.bound_to("patient") == ""
    await Provisioner(lab.bus, lab.namespace).make("late")
    await lab.running("patient")
    trace = here.attempt("patient", 2, "schedule cycle", "commit", "start pod")
    cycle, wait, bind = (one(trace, name) for name in ("schedule cycle", WAIT, "bind"))
    assert wait == waiting
    assert [wait.links, bind.links] == [(Link(trace.trace_id, cycle.span_id),)] * 2
    assert wait.attributes["podyard.attempt"] == bind.attributes["podyard.attempt"]
    assert wait.start == bind.start, "both begin when the binder gets the decision"
    assert wait.start + wait.duration_s < one(trace, "commit").start
    assert trace.above(one(trace, "start pod")) == bind.span_id


# ---- what plugins said -------------------------------------------------------------------------------------


def calls(trace: Trace) -> list[Span]:
    """Spans of calls of plugins, each within what stands above it and named for its extension point."""
    found = [span for span in trace.spans if PLUGIN in span.attributes]
    for span in found:
        above = trace.span(span.parent_id)
        assert above is not None, span
        assert span.start >= above.start - ROUNDED_S, (span, above)
        assert span.start + span.duration_s <= above.start + above.duration_s + ROUNDED_S, (span, above)
        point, _, plugin = span.name.partition(" ")
        assert (span.service, plugin) == ("podyard-scheduler", span.attributes[PLUGIN])
        if PLUGIN not in above.attributes:
            assert point.startswith(above.name), (span, above)
    return found


def said(trace: Trace, name: str) -> list[str]:
    """What the calls of that name answered."""
    return [span.attributes["podyard.status"] for span in calls(trace) if span.name == name]


async def test_each_call_of_a_plugin_stands_below_its_extension_point(here: Place) -> None:
    await here.twice("large")
    await here.lab.running("large")
    vain, good = here.attempt("large", 1, "PostFilter DefaultPreemption"), here.attempt("large", 2, "Permit")
    assert said(vain, "PreFilter VolumeBinding") == ["Skip"], "it has no claim"
    assert said(vain, "Filter TaintToleration") == ["Success"]
    assert said(vain, "Filter NodeResourcesFit") == ["Unschedulable"]
    assert said(vain, "PostFilter DefaultPreemption") == ["Unschedulable"]
    for name in ("Score NodeResourcesFit", "Score TaintToleration", "ScoreExtensionNormalize TaintToleration"):
        assert said(good, name) == ["Success"], name
    assert said(good, "Reserve VolumeBinding") == ["Success"]
    rejects = {"podyard.status": "Unschedulable"}
    found = here.jaeger.search("podyard-scheduler", "Filter NodeResourcesFit", rejects)
    assert vain.trace_id in {trace.trace_id for trace in found}
    assert here.jaeger.search("podyard-scheduler", "Filter TaintToleration", rejects) == []


async def test_what_a_preemption_tries_stands_below_it(here: Place) -> None:
    await preempted(here.lab)
    trace = here.attempt("urgent", 1, "preempt pod")
    preemption = one(trace, "PostFilter DefaultPreemption")
    assert preemption.parent_id == one(trace, "PostFilter").span_id
    tried = [span for span in calls(trace) if span.parent_id == preemption.span_id]
    fits = [span.attributes["podyard.status"] for span in tried if span.name == "Filter NodeResourcesFit"]
    assert fits == ["Success", "Unschedulable"], "without the victim it fits, with it it does not"
    assert {span.name.partition(" ")[0] for span in tried} == {"Filter"}
