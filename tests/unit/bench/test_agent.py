"""`bench agent`: what it stores is what an agent plays, and the report says what was measured."""

import io

import msgspec
import pytest
from rich.console import Console

from podyard.bench import agent
from podyard.bench.render import agent as shown_agent
from podyard.bus import Delivery
from podyard.cli.__main__ import main
from podyard.cluster.view import ClusterView
from podyard.proto import codec, headers
from podyard.proto.facts import Condition, NodeStatusFact
from podyard.proto.signals import NodeUsage, PodUsage

RESULT = agent.AgentResult(
    nodes=5000,
    pods=50_000,
    begins_s=25.0,
    begins_cpu_s=8.0,
    idle_s=30.0,
    idle_cores=0.008,
    pss_mib=271.1,
    pressed=100,
    notices_s=0.2,
    pressed_cores=0.2,
    round_cpu_s=1.92,
    pressed_pss_mib=650.0,
)
FIRST = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: "0"}


def test_every_node_gets_as_many_pods_and_its_signals_name_them():
    view = ClusterView()
    view.begin_listing()
    for sequence, message in enumerate((*agent._nodes(4), *agent._pods(4, 12)), 1):
        view.apply(Delivery(message.subject, message.payload, sequence, 0.0, FIRST))
    view.end_listing(16)
    for number, name in enumerate(sorted(view.nodes)):
        signals = agent._signals(number, 4, 12, agent.LOW)
        assert signals.node == name
        assert {pod.name for pod in signals.pods} == {pod.name for pod in view.pods_on(name).values()}
        assert len(signals.pods) == 3
        assert signals.signals == {"memory.available": agent.LOW}
        assert signals.standing, "it is looked at in every interval"


def test_a_node_was_looked_at_when_the_usage_of_its_pods_is_told():
    watching = agent.Watching()
    watching.on_usage("usage.a", codec.encode(NodeUsage(node="a")), "")
    assert watching.looked_at == set()
    used = (PodUsage(namespace="d", name="a"),)
    watching.on_usage("usage.a", codec.encode(NodeUsage(node="a", pods=used)), "")
    assert watching.looked_at == {"usage.a"}


def test_who_is_under_pressure_is_told_by_facts():
    watching = agent.Watching()
    low = Condition(type="MemoryPressure", status="True")
    for fact in (NodeStatusFact(node="a"), NodeStatusFact(node="b", conditions=(low,))):
        watching.on_node("", codec.encode(fact), "")
    assert (watching.ready, watching.pressed) == ({"a", "b"}, {"b"})


def test_the_report_shows_figures_beside_their_goals():
    out = io.StringIO()
    Console(file=out, width=80).print(shown_agent.report(RESULT))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("271.1 MiB", "600 MiB", "0.008", "650.0 MiB", "10 s", "1.9 s"):
        assert words in text
    assert msgspec.json.encode(RESULT)


def test_a_cluster_that_nobody_can_fill_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "agent", "--nodes", "10", "--pods", "5"]) == 2
    assert "one for each node" in capsys.readouterr().err
