"""Sampling at one percent, as Jaeger sees it: every attempt in vain is there, of the good ones the
sampled."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from podyard.cli.jaeger.api import Jaeger
from podyard.telemetry import traceparent
from tests.e2e.stage import node, pod, stand
from tests.jaeger.conftest import exporting
from tests.jaeger.reading import until
from tests.jaeger.server import JaegerServer, running

GOOD = 200
BAD = 50


@pytest.fixture
def server(program: Path, tmp_path: Path) -> Iterator[JaegerServer]:
    """A Jaeger that has seen nothing else."""
    with running(program, tmp_path / "jaeger.log") as found:
        yield found


async def test_at_one_percent_every_unschedulable_attempt_is_kept(server: JaegerServer, tmp_path: Path) -> None:
    jaeger = Jaeger(server.url)
    async with stand(tmp_path, environment=exporting(server, 0.01)) as here:
        good, bad = [f"good-{n}" for n in range(GOOD)], [f"vain-{n}" for n in range(BAD)]
        nodes = [node(f"sampled-{n}", cpu="64", memory="256Gi") for n in range(4)]
        await here.do.apply(nodes, "the test's nodes")
        for start in range(0, GOOD, 100):
            await here.do.apply([pod(name) for name in good[start : start + 100]], "good ones")
        await here.do.apply([pod(name, cpu="99") for name in bad], "too large for any node")
        await here.running(*good)
        for name in bad:
            await here.attempted(name)
        stored = {_trace_id(record.trace) for record in here.seen.attempts if record.name.startswith("vain-")}
        sampled = {view.name for view in here.seen.view.pods.values() if _bound_sampled(view.bound)}
    assert len(stored) >= BAD
    tags = {"podyard.outcome": "unschedulable", "podyard.rejected_by.NodeResourcesFit": "true"}

    def kept() -> set[str]:
        return {trace.trace_id for trace in jaeger.search("podyard-queue", "attempt", tags, limit=1000)}

    until(f"all {len(stored)} unschedulable attempts", lambda: kept() >= stored)
    scheduled = jaeger.search("podyard-queue", "attempt", {"podyard.outcome": "scheduled"}, limit=1000)
    names = {str(span.attributes.get("k8s.pod.name")) for trace in scheduled for span in trace.spans}
    assert {name for name in names if name.startswith("good-")} == sampled
    assert len(sampled) < GOOD / 5, "one percent of the good ones, give or take chance"


def _bound_sampled(bound: object) -> bool:
    found = traceparent.parse(getattr(bound, "trace", ""))
    return found is not None and found.sampled


def _trace_id(trace: str) -> str:
    found = traceparent.parse(trace)
    assert found is not None
    return f"{found.trace_id:032x}"


def test_a_trace_that_is_not_there_is_told_apart_from_a_failure(server: JaegerServer) -> None:
    assert Jaeger(server.url).trace("0" * 31 + "1") is None
