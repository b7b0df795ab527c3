"""What virtual nodes say of themselves, and their eviction loops."""

import msgspec
import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core import node_facts as facts
from podyard.node_agent.core.messages import Listed, StoredStatus
from podyard.node_agent.core.selection import Selection
from podyard.proto.facts import Condition, NodeStatusFact
from podyard.proto.signals import AskedOfNode, Failing, NodeSignals, NodeUsage, PodUsage, SignalValue
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, Playing, agent, node, pod, signals, view

LOW, PLENTY = 50 * MEBIBYTE, 4 * GIBIBYTE


@pytest.fixture
def playing() -> Playing:
    """Three pods run on n1: a uses 1 GiB, b 2, c 3."""
    found = agent(hard={"memory.available": "100Mi"})
    found.node_seen(node(), (), 0.0)
    for name in ("a", "b", "c"):
        found.pod_seen(view(pod(name)), 0.0, 0.0)
    found.tick(1.0)
    return found


USAGE = tuple(
    PodUsage(namespace="default", name=name, memory_bytes=size * GIBIBYTE)
    for name, size in (("a", 1), ("b", 2), ("c", 3))
)


def evicted(found: list[effects.Effect]) -> list[str]:
    return [one.name for one in found if isinstance(one, effects.PodEvicted)]


def node_facts(found: list[effects.Effect]) -> list[NodeStatusFact]:
    return [one.fact for one in found if isinstance(one, effects.PutNodeStatus)]


def conditions(fact: NodeStatusFact) -> dict[str, str]:
    return {one.type: one.status for one in fact.conditions}


def test_a_new_node_is_ready_and_calm_and_says_so_once():
    playing = agent()
    (fact,) = node_facts(playing.node_seen(node(), (), 50.0))
    assert conditions(fact) == {
        "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"
    }  # fmt: skip
    assert (fact.node_uid, fact.taints) == ("uid-n1", ())
    assert node_facts(playing.node_seen(node(status=fact), (), 60.0)) == []
    assert node_facts(playing.tick(100.0)) == []


def said(*conditions: tuple[str, str], uid: str = "u") -> NodeStatusFact:
    return NodeStatusFact(
        node="n1", node_uid=uid, conditions=tuple(Condition(type=name, status=status) for name, status in conditions)
    )


CALM = said(("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True"))


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        pytest.param(None, CALM, (), id="what a node says first is told from its status"),
        pytest.param(said(uid="other"), CALM, (), id="so is what another node of that name said"),
        pytest.param(said(("Ready", "False"), uid="other"), CALM, (), id="or said of itself"),
        pytest.param(said(("Ready", "True")), CALM, (), id="and conditions that it says for the first time"),
        pytest.param(CALM, said(("MemoryPressure", "True")), ("NodeHasInsufficientMemory",), id="memory"),
        pytest.param(said(("MemoryPressure", "True")), CALM, ("NodeHasSufficientMemory",), id="memory again"),
        pytest.param(CALM, said(("DiskPressure", "True")), ("NodeHasDiskPressure",), id="disk"),
        pytest.param(said(("DiskPressure", "True")), CALM, ("NodeHasNoDiskPressure",), id="disk again"),
        pytest.param(CALM, said(("PIDPressure", "True")), ("NodeHasInsufficientPID",), id="processes"),
        pytest.param(said(("PIDPressure", "True")), CALM, ("NodeHasSufficientPID",), id="processes again"),
        pytest.param(CALM, said(("Ready", "False")), ("NodeNotReady",), id="not ready"),
        pytest.param(said(("Ready", "False")), CALM, ("NodeReady",), id="ready"),
        pytest.param(said(("ReadingsStale", "False")), said(("ReadingsStale", "True")), (), id="told by its own event"),
    ],
)
def test_a_condition_that_turns_is_an_event_of_the_kubelet(
    before: NodeStatusFact | None, now: NodeStatusFact, told: tuple[str, ...]
):
    assert facts.turns(before, now) == told


def test_after_a_restart_the_same_fact_is_not_stored_again():
    (fact,) = node_facts(agent().node_seen(node(), (), 50.0))
    assert node_facts(agent().node_seen(node(status=fact), (), 60.0)) == []


def test_a_fact_about_an_earlier_node_of_that_name_is_replaced():
    (fact,) = node_facts(agent().node_seen(node(), (), 50.0))
    (new,) = node_facts(agent().node_seen(node(status=fact, uid="second"), (), 60.0))
    assert new.node_uid == "second"


def test_a_node_that_was_taken_for_lost_says_that_it_lives():
    playing = agent()
    (fact,) = node_facts(playing.node_seen(node(), (), 50.0))
    lost = NodeStatusFact(node="n1", node_uid="uid-n1", conditions=(Condition(type="Ready", status="Unknown"),))
    (again,) = node_facts(playing.node_seen(node(status=lost), (), 60.0))
    assert conditions(again) == conditions(fact)


def test_only_selected_nodes_are_played():
    playing = agent(selection=Selection(names=frozenset({"n1", "n2"}), labels={"zone": "a"}))
    playing.node_seen(node("n1", labels={"zone": "a"}), (), 0.0)
    playing.node_seen(node("n2", labels={"zone": "b"}), (), 0.0)
    playing.node_seen(node("n3", labels={"zone": "a"}), (), 0.0)
    assert [name for name in ("n1", "n2", "n3") if name in playing.nodes] == ["n1"]


def test_an_external_node_is_another_agents():
    playing = agent()
    playing.node_seen(node(), (), 0.0)
    found = playing.node_seen(node(annotations={"podyard.io/agent": "external"}), (), 10.0)
    assert found == [], "what is stored about it is now the other agent's"
    assert "n1" not in playing.nodes


def test_a_node_that_is_to_be_played_again_is_played_once_its_pods_are_known():
    """What was said of them since the first listing is not followed."""
    playing = agent()
    playing.node_seen(node(), (), 0.0)
    bound = view(pod("a", spec={"restartPolicy": "Never"}))
    playing.pod_seen(bound, 0.0, 0.0)
    (said,) = [one.fact for one in playing.tick(1.0) if isinstance(one, effects.PutPodStatus)]
    ours = playing.known.nodes["n1"].status
    playing.node_seen(node(status=ours, annotations={"podyard.io/agent": "external"}), [bound], 10.0)
    assert playing.node_seen(node(status=ours), [bound], 20.0) == [effects.ListAgain(["n1"])]
    assert "n1" not in playing.nodes
    playing.known.bound["n1"] = {"uid-a": view(bound.stored, status=said)}
    found = playing.step(Listed((), ()), 21.0)
    assert "n1" in playing.nodes
    assert not [one for one in (*found, *playing.tick(30.0)) if isinstance(one, effects.PutPodStatus)], "it runs on"


LISTED = Listed(("gone",), (StoredStatus("n1", "default", "a", "uid-a"), StoredStatus("gone", "default", "b", "uid-b")))


def test_what_was_said_of_nodes_and_pods_that_went_while_nobody_looked_goes_too():
    playing = agent()
    playing.node_seen(node(), (), 0.0)
    assert playing.step(LISTED, 10.0) == [
        effects.RemoveNodeStatus("gone"),
        effects.RemovePodStatus("n1", "default", "a", "uid-a"),
        effects.RemovePodStatus("gone", "default", "b", "uid-b"),
    ]


@pytest.mark.parametrize(
    ("selection", "nodes"),
    [
        pytest.param(Selection(labels={"zone": "a"}), [], id="labels: the node may have been another agent's"),
        pytest.param(Selection(names=frozenset({"n1", "gone"})), ["gone"], id="names: only those are listed"),
    ],
)
def test_an_agent_of_some_nodes_removes_what_it_knows_to_be_its_own(selection: Selection, nodes: list[str]):
    playing = agent(selection=selection)
    playing.node_seen(node(labels={"zone": "a"}), (), 0.0)
    assert playing.step(LISTED, 10.0) == [
        *(effects.RemoveNodeStatus(name) for name in nodes),
        effects.RemovePodStatus("n1", "default", "a", "uid-a"),
    ]


def test_what_was_said_of_pods_on_a_node_of_another_agent_stays():
    playing = agent()
    playing.node_seen(node(annotations={"podyard.io/agent": "external"}), (), 0.0)
    assert playing.step(Listed((), LISTED.pods[:1]), 10.0) == []


def test_heartbeats_come_once_an_interval_and_are_spread():
    playing = agent(heartbeat_s=10.0)
    for index in range(200):
        playing.node_seen(node(f"n{index}"), (), 0.0)
    seen: list[str] = []
    moments: set[float] = set()
    for tenth in range(111):
        beats = [one.node for one in playing.tick(tenth / 10) if isinstance(one, effects.Heartbeat)]
        seen += beats
        moments |= {tenth / 10} if beats else set()
    assert set(seen) == {f"n{index}" for index in range(200)}
    assert 200 <= len(seen) <= 240
    assert 30 <= len(moments) <= 45, "in groups, not each on its own"


def test_fresh_signals_are_looked_at_at_once(playing: Playing):
    """docs/rules.md, no-gap-before-the-taint: no gap of a monitoring interval between observation and
    taint."""
    found = playing.observe(signals(LOW, *USAGE), 100.0)
    assert evicted(found) == ["c"]
    (fact,) = node_facts(found)
    assert conditions(fact)["MemoryPressure"] == "True"
    assert [(one.key, one.effect) for one in fact.taints] == [("node.kubernetes.io/memory-pressure", "NoSchedule")]
    told = [one for one in found if isinstance(one, effects.Announce)]
    assert [(one.reason, one.message, one.warning) for one in told] == [
        ("NodeHasInsufficientMemory", "Node n1 status is now: NodeHasInsufficientMemory", False),
        ("EvictionThresholdMet", "Attempting to reclaim memory", True),
        ("Killing", "Stopping container main", False),
    ]
    assert {one.node for one in told} == {"n1"}


def test_or_at_the_next_look_if_so_set():
    playing = agent(hard={"memory.available": "100Mi"}, on_signals=False)
    playing.node_seen(node(), (), 0.0)
    playing.pod_seen(view(pod("a")), 0.0, 0.0)
    assert playing.observe(signals(LOW), 3.0) == []
    assert evicted(playing.tick(12.9)) == []
    assert evicted(playing.tick(13.0)) == ["a"]


def test_an_evicted_pod_is_gone_within_a_second_and_says_why(playing: Playing):
    playing.observe(signals(LOW, *USAGE), 100.0)
    assert not [one for one in playing.tick(100.9) if isinstance(one, effects.PutPodStatus)]
    (put,) = [one for one in playing.tick(101.0) if isinstance(one, effects.PutPodStatus)]
    assert (put.fact.phase, put.fact.reason, put.fact.ended) == ("Failed", "Evicted", True)
    assert put.fact.message.startswith("The node was low on resource: memory. Threshold quantity: 100Mi")
    assert [one.reason for one in put.fact.conditions if one.type == "DisruptionTarget"] == ["TerminationByKubelet"]


def test_a_pod_over_its_own_limit_is_no_disruption_though_the_node_has_room():
    playing = agent(hard={"memory.available": "100Mi"})
    playing.node_seen(node(), (), 0.0)
    playing.pod_seen(view(pod("a", limits={"ephemeral-storage": "1Gi"})), 0.0, 0.0)
    playing.tick(1.0)
    usage = PodUsage(namespace="default", name="a", disk_bytes=2 * GIBIBYTE)
    assert evicted(playing.observe(signals(PLENTY, usage), 100.0)) == ["a"]
    (put,) = [one for one in playing.tick(101.0) if isinstance(one, effects.PutPodStatus)]
    assert put.fact.message == "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
    assert [one for one in put.fact.conditions if one.type == "DisruptionTarget"] == []


def test_the_same_signals_once_more_evict_nobody(playing: Playing):
    """docs/rules.md, an-observation-is-acted-on-once."""
    assert evicted(playing.observe(signals(LOW, *USAGE, at=100.0), 100.0)) == ["c"]
    playing.tick(101.0)
    assert evicted(playing.observe(signals(LOW, *USAGE, at=100.0), 110.0)) == []
    assert evicted(playing.observe(signals(LOW, *USAGE, at=111.0), 111.0)) == ["b"]


def failed(found: list[effects.Effect]) -> list[str]:
    return [one.fault for one in found if isinstance(one, effects.RoundFailed)]


def unable(what: AskedOfNode, why: str, at: float) -> NodeSignals:
    return msgspec.structs.replace(signals(LOW, *USAGE, at=at), failing=(Failing(what=what, why=why),))


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("layout", "eviction manager: failed to get HasDedicatedImageFs: no device"),
        ("reading", "eviction manager: failed to get summary stats: no device"),
    ],
)
def test_why_a_round_finds_out_nothing_is_told_once_until_one_goes_well(playing: Playing, what: AskedOfNode, told: str):
    first = playing.observe(unable(what, "no device", 100.0), 100.0)
    assert (failed(first), evicted(first)) == ([told], [])
    assert failed(playing.tick(110.0)) == []
    assert failed(playing.observe(unable(what, "asleep", 120.0), 120.0)) == [told.replace("no device", "asleep")]
    assert evicted(playing.observe(signals(LOW, *USAGE, at=130.0), 130.0)) == ["c"]


def test_a_failed_reading_is_told_again_after_a_good_one(playing: Playing):
    assert failed(playing.observe(unable("reading", "no answer", 100.0), 100.0))
    playing.observe(signals(PLENTY, *USAGE, at=110.0), 110.0)
    assert failed(playing.observe(unable("reading", "no answer", 120.0), 120.0))


def test_a_pod_that_could_not_be_killed_runs_on_and_that_is_told_once_until_a_kill_succeeds(playing: Playing):
    """As the reference, the manager waits for the pod all the same, and chooses it again."""
    first = playing.observe(unable("kill", "no runtime", 100.0), 100.0)
    assert (failed(first), evicted(first)) == (["default/c could not be killed: no runtime"], [])
    playing.observe(unable("kill", "no runtime", 101.0), 101.0)
    again = playing.tick(130.0)
    assert (failed(again), evicted(again)) == ([], [])
    playing.observe(signals(LOW, *USAGE, at=161.0), 161.0)
    assert evicted(playing.tick(161.0)) == ["c"]
    playing.tick(162.0)
    last = playing.observe(unable("kill", "no runtime", 200.0), 200.0)
    assert failed(last) == ["default/b could not be killed: no runtime"]


def test_what_cannot_be_collected_is_told_and_a_pod_goes():
    playing = agent(hard={"nodefs.available": "10%"})
    playing.node_seen(node(), (), 0.0)
    playing.pod_seen(view(pod("a")), 0.0, 0.0)
    playing.tick(1.0)
    full = {"nodefs.available": SignalValue(available=1, capacity=100)}
    said = tuple(Failing(what=what, why="busy") for what in ("containers", "images"))
    found = playing.observe(NodeSignals(node="n1", signals=full, failing=said), 100.0)
    assert failed(found) == ["containers could not be collected: busy", "images could not be collected: busy"]
    assert evicted(found) == ["a"]


def test_signals_wait_while_an_evicted_pod_is_cleaned_up(playing: Playing):
    playing.observe(signals(LOW, *USAGE, at=100.0), 100.0)
    assert evicted(playing.observe(signals(LOW, *USAGE, at=100.5), 100.5)) == []
    assert evicted(playing.tick(101.0)) == ["b"], "at once when it is gone, not after 10 s"


def test_the_manager_waits_30_seconds_at_most():
    playing = agent(hard={"memory.available": "100Mi"})
    playing.node_seen(node(), (), 0.0)
    for name in ("a", "b"):
        playing.pod_seen(view(pod(name)), 0.0, 0.0)
    playing.observe(signals(LOW, *USAGE, at=1.0), 0.0)
    stuck = playing.pods.get("uid-b")
    assert stuck is not None
    stuck.stop_at = 1e9
    playing.pods._timers.cancel("uid-b")  # pyright: ignore[reportPrivateUsage] - a pod that does not end
    playing.observe(signals(LOW, *USAGE, at=2.0), 5.0)
    looks = [second for second in range(6, 40) if evicted(playing.tick(float(second)))]
    assert looks == [30]


def test_the_same_observation_evicts_no_second_pod(playing: Playing):
    playing.observe(signals(LOW, *USAGE, at=100.0), 100.0)
    found = [name for second in range(101, 200) for name in evicted(playing.tick(float(second)))]
    assert found == []


def test_signals_of_a_clock_that_was_set_back_count_all_the_same(playing: Playing):
    assert evicted(playing.observe(signals(LOW, *USAGE, at=4000.0), 100.0)) == ["c"]
    playing.tick(101.0)
    assert evicted(playing.observe(signals(LOW, *USAGE, at=400.0), 120.0)) == ["b"], (
        "a later one, whatever time it says"
    )


def test_the_condition_passes_after_the_transition_period(playing: Playing):
    playing.observe(signals(LOW, at=100.0), 100.0)
    playing.tick(101.0)
    playing.observe(signals(PLENTY, at=110.0), 110.0)
    changed: list[int] = []
    for second in range(111, 450):
        found = playing.tick(float(second))
        if second % 10 == 0:
            found += playing.observe(signals(PLENTY, at=float(second)), float(second))
        changed += [second] if node_facts(found) else []
    (at,) = changed
    assert 401 <= at <= 411
    fact = playing.nodes.get("n1").fact  # type: ignore[union-attr]
    assert fact is not None
    assert conditions(fact)["MemoryPressure"] == "False"
    assert fact.taints == ()
    ready = next(one for one in fact.conditions if one.type == "Ready")
    assert ready.last_transition_time == "1970-01-01T00:00:00Z", "what did not change keeps its time"


def test_a_restart_under_pressure_keeps_taint_and_refuses_only_what_pressure_refuses(playing: Playing):
    playing.observe(signals(LOW, at=100.0), 100.0)
    fact = playing.nodes.get("n1").fact  # type: ignore[union-attr]
    again = agent(hard={"memory.available": "100Mi"})
    assert node_facts(again.node_seen(node(status=fact), (), 200.0)) == []
    refused = again.pod_seen(view(pod("best-effort")), 200.0, 200.0)
    (put,) = [one for one in refused if isinstance(one, effects.PutPodStatus)]
    assert (put.fact.phase, put.fact.reason, put.fact.ended) == ("Failed", "Evicted", True)
    assert again.pod_seen(view(pod("burstable", requests={"cpu": "1"})), 200.0, 200.0) == []
    passed = [second for second in range(201, 600) if node_facts(again.tick(float(second)))]
    assert len(passed) == 1
    assert 500 <= passed[0] <= 511


def published(found: list[effects.Effect]) -> list[NodeUsage]:
    return [one.usage for one in found if isinstance(one, effects.PublishUsage)]


def test_usage_is_published_on_a_change_of_five_percent_and_every_thirty_seconds(playing: Playing):
    steady = [PodUsage(namespace="default", name="a", memory_bytes=100 * GIBIBYTE // 100, cpu_nanocores=1000)]
    (first,) = published(playing.observe(signals(PLENTY, *steady, at=99.0), 100.0))
    assert (first.memory_bytes, first.cpu_nanocores, first.at) == (8 * GIBIBYTE - PLENTY, 1000, 100.0)
    little = [msgspec.structs.replace(steady[0], cpu_nanocores=1049)]
    assert published(playing.observe(signals(PLENTY, *little, at=101.0), 101.0)) == []
    enough = [msgspec.structs.replace(steady[0], cpu_nanocores=1051)]
    (second,) = published(playing.observe(signals(PLENTY, *enough, at=102.0), 102.0))
    assert second.pods[0].cpu_nanocores == 1051
    again = [at for at in range(103, 143) if published(playing.tick(float(at)))]
    assert len(again) == 1
    assert again[0] >= 132, "it is said again with the first heartbeat after 30 s, or at a look"


def test_an_idle_node_says_that_it_uses_nothing(playing: Playing):
    found = [one for at in range(1, 45) for one in published(playing.tick(float(at)))]
    assert len(found) == 2
    assert {(one.node, one.cpu_nanocores, one.memory_bytes, one.pods) for one in found} == {("n1", 0, 0, ())}


def test_a_pod_that_the_signals_do_not_name_is_idle(playing: Playing):
    assert evicted(playing.observe(signals(LOW, USAGE[0]), 100.0)) == ["a"]


def test_signals_of_no_node_are_told_and_those_of_another_agent_s_are_not(playing: Playing):
    (told,) = playing.observe(signals(LOW, node="elsewhere"), 100.0)
    assert isinstance(told, effects.Announce)
    assert (told.about.name, told.reason) == ("elsewhere", "UnknownSignal")
    playing.node_seen(node("other", annotations={"podyard.io/agent": "external"}), (), 100.0)
    assert playing.observe(signals(LOW, node="other"), 100.0) == []


def test_a_node_that_must_evict_says_how_old_what_it_goes_by_is():
    playing = agent(hard={"memory.available": "100Mi"}, on_signals=False, monitoring_s=10.0)
    playing.node_seen(node(), (), 0.0)
    playing.pod_seen(view(pod("a")), 0.0, 0.0)
    playing.tick(1.0)
    assert evicted(playing.observe(signals(LOW, *USAGE[:1], at=2.0), 2.0)) == []
    found = playing.tick(12.0)
    assert evicted(found) == ["a"]
    assert [one for one in found if isinstance(one, effects.MustEvict)] == [
        effects.MustEvict((("memory.available", 10.0),))
    ]
