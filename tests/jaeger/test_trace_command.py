"""`podyard trace POD` as a person runs it, against a real Jaeger."""

import json

import pytest

from podyard.cli.demo.evidence import Evidence
from podyard.cli.jaeger.api import Jaeger
from tests.e2e.stage import Done, cli
from tests.jaeger.reading import until
from tests.jaeger.server import JaegerServer
from tests.jaeger.test_story import attempts

pytestmark = pytest.mark.asyncio(loop_scope="session")

VAIN = ("attempt", "schedule cycle", "Filter")
GOOD = ("attempt", "came from attempt", "schedule cycle", "bind", "start pod")
"""How lines begin, in order, for an attempt in vain and the one after it."""


async def trace(server: JaegerServer, monkeypatch: pytest.MonkeyPatch, *words: str) -> Done:
    monkeypatch.setenv("PODYARD_JAEGER_URL", server.url)
    return await cli("trace", *words)


async def test_it_shows_the_tree_the_links_and_the_page(
    told: Evidence, jaeger: Jaeger, jaeger_server: JaegerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = attempts(jaeger, "trainer", 2)
    until("the pod's start", lambda: any(span.name == "start pod" for span in attempts(jaeger, "trainer", 2)[1].spans))
    done = await trace(jaeger_server, monkeypatch, "trainer")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "Pod default/trainer  3 traces", "its two attempts, and what it waited for between them"
    pages = [line.split()[-1] for line in lines if "/trace/" in line]
    assert [pages[0], pages[2]] == [jaeger.link(one.trace_id) for one in traces]
    starts = iter([line.lstrip(" │├└─") for line in lines])
    for name in (*VAIN, *GOOD):
        assert any(line.startswith(name) for line in starts), f"{name} is not there, or not in order:\n{done.out}"
    assert "rejected by" in done.out
    assert "TaintToleration" in done.out
    assert "woken by NodeUpdateNodeTaint of node-6, TaintToleration's hint: " in done.out
    assert "came from apply (api: “the pool is free for all” nodes node-6), trace " in done.out


async def test_json_has_every_span(
    told: Evidence, jaeger: Jaeger, jaeger_server: JaegerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = attempts(jaeger, "trainer", 2)
    done = await trace(jaeger_server, monkeypatch, "pod/trainer", "-o", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [found[0]["trace_id"], found[2]["trace_id"]] == [one.trace_id for one in stored]
    assert [span["name"] for span in found[1]["spans"]][:2] == ["wait before attempt", "parked"]
    assert found[0]["spans"][0]["attributes"]["podyard.outcome"] == "unschedulable"


async def test_a_pod_without_traces_and_a_jaeger_that_is_not_there_say_what_to_do(
    told: Evidence, jaeger_server: JaegerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = await trace(jaeger_server, monkeypatch, "nobody")
    assert nothing.code == 1
    assert 'has no trace of pod "nobody" in namespace "default"' in nothing.err
    assert "podyard explain pod nobody" in nothing.err
    monkeypatch.setenv("PODYARD_JAEGER_URL", "http://127.0.0.1:9")
    gone = await cli("trace", "nobody")
    assert gone.code == 1
    assert "no Jaeger answers at http://127.0.0.1:9" in gone.err
    assert "PODYARD_JAEGER_URL" in gone.err
