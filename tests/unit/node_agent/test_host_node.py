"""The node that is the host itself: rounds that ask and are answered."""

import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.effects import KillPod
from podyard.node_agent.core.eviction.dialogue import DONE, Failed, Question
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.messages import Answered, Asked, Noticed, Tick
from podyard.proto.agents_api import PreviewRequest
from podyard.proto.facts import NodeStatusFact
from tests.unit.node_agent.host_stage import PLENTY, HostStage, asked, asks, measured, ready
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, node, pod, signals, view

LOW = 50 * MEBIBYTE


def node_facts(found: list[effects.Effect]) -> list[NodeStatusFact]:
    return [one.fact for one in found if isinstance(one, effects.PutNodeStatus)]


def evicted(found: list[effects.Effect]) -> list[str]:
    return [one.name for one in found if isinstance(one, effects.PodEvicted)]


def running(stage: HostStage, *names: str) -> HostStage:
    """The host was read, and its pods run."""
    stage.begun()
    stage.round(0.0, measured())
    for name in names:
        stage.pod_seen(view(pod(name)), 0.0, 0.0)
    stage.tick(1.0)
    return stage


def test_a_host_is_not_ready_until_it_was_read():
    stage = HostStage()
    (claim,) = node_facts(stage.node_seen(node(), (), 0.0))
    assert ready(claim) == ("False", "nothing was read of the host yet")
    assert stage.core.wake_at == 0.0, "it is looked at at once"
    (fact,) = node_facts(stage.round(0.0, measured()))
    assert ready(fact)[0] == "True"


def test_what_cannot_be_read_at_first_is_why_it_is_not_ready():
    stage = HostStage().begun()
    (fact,) = node_facts(stage.round(0.0, Failed("memory.stat is not there")))
    assert ready(fact) == ("False", "eviction manager: failed to get summary stats: memory.stat is not there")
    assert [one.type for one in fact.conditions if one.type == "ReadingsStale"]


def test_a_round_asks_one_thing_after_the_other():
    stage = HostStage().begun()
    (first,) = asks(stage.tick(0.0))
    (second,) = asks(stage.answer(first, Layout.SINGLE, 0.1))
    assert (first.ask, second.ask) == (Question.LAYOUT, Question.READING)
    assert not asks(stage.answer(second, measured(), 0.2))
    assert stage.core.wake_at is not None
    assert asked(stage.tick(10.2)) == [Question.READING], "the layout is known"


def test_no_round_begins_while_one_is_under_way():
    stage = HostStage().begun()
    assert asked(stage.tick(0.0)) == [Question.LAYOUT]
    assert not asks([*stage.tick(100.0), *stage.step(Noticed("n1"), 100.0)])


def test_virtual_nodes_go_on_while_the_host_is_asked():
    stage = HostStage().begun()
    assert asked(stage.tick(0.0)) == [Question.LAYOUT]
    stage.node_seen(node("n2"), (), 0.0)
    stage.pod_seen(view(pod("a"), "n2"), 0.0, 0.0)
    stage.tick(1.0)
    assert evicted(stage.observe(signals(LOW, node="n2", at=1.0), 1.0)) == ["a"]


def test_a_layout_that_is_not_found_is_told_and_asked_again():
    stage = HostStage().begun()
    (ask,) = asks(stage.tick(0.0))
    found = stage.answer(ask, Failed("no such file system"), 0.1)
    (told,) = [one for one in found if isinstance(one, effects.RoundFailed)]
    assert told.fault == "eviction manager: failed to get HasDedicatedImageFs: no such file system"
    assert asked(stage.tick(10.2)) == [Question.LAYOUT]


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (Failed("no answer within 10 s"), "no answer within 10 s"),
        (measured(9 * GIBIBYTE), f"memory.available is impossible: {9 * GIBIBYTE} left of {8 * GIBIBYTE}"),
        (measured(-1), f"memory.available is impossible: -1 of {8 * GIBIBYTE}"),
    ],
)
def test_without_a_reading_of_use_nothing_is_evicted_and_the_conditions_stay(read, why):
    stage = running(HostStage(), "a")
    (low,) = node_facts(stage.round(10.0, measured(LOW, at=10.0)))
    found = stage.round(41.0, read)
    (fact,) = node_facts(found)
    assert [one.message for one in fact.conditions if one.type == "ReadingsStale"] == [
        f"eviction manager: failed to get summary stats: {why}"
    ]
    pressure = [[one.status for one in said.conditions if one.type == "MemoryPressure"] for said in (low, fact)]
    assert pressure == [["True"], ["True"]]
    assert ready(fact)[0] == "True"
    assert not evicted(found)
    assert not any(
        one.type == "ReadingsStale" for one in node_facts(stage.round(51.0, measured(at=51.0)))[0].conditions
    )


def test_without_processes_a_pod_ends_as_on_a_virtual_node():
    stage = running(HostStage(), "a")
    stage.pod_seen(view(pod("urgent", priority=10)), 0.0, 1.0)
    assert evicted(stage.round(10.0, measured(LOW, at=10.0))) == ["a"]


def test_a_kill_is_asked_where_pods_are_processes_and_counts_when_it_has_begun():
    stage = running(HostStage(runs=True), "a", "b")
    (reading,) = asks(stage.tick(10.0))
    read = measured(LOW, {"a": GIBIBYTE, "b": 2 * GIBIBYTE}, at=10.0)
    found = stage.answer(reading, read, 10.0)
    (kill,) = asks(found)
    assert kill.ask == KillPod("uid-b", 1)
    assert not evicted(found)
    assert evicted(stage.answer(kill, DONE, 10.1)) == ["b"]


def test_a_kill_that_fails_is_told_and_the_pod_stays():
    stage = running(HostStage(runs=True), "a")
    (reading,) = asks(stage.tick(10.0))
    (kill,) = asks(stage.answer(reading, measured(LOW, {"a": GIBIBYTE}, at=10.0), 10.0))
    found = stage.answer(kill, Failed("may not signal"), 10.1)
    (told,) = [one for one in found if isinstance(one, effects.RoundFailed)]
    assert told.fault == "default/a could not be killed: may not signal"
    assert not evicted(found)


def test_what_a_collection_relieves_costs_no_pod():
    stage = HostStage(hard={"nodefs.available": "10%"}).begun()
    stage.round(0.0, measured(disk=50 * GIBIBYTE))
    stage.pod_seen(view(pod("a")), 0.0, 0.0)
    stage.tick(1.0)
    (reading,) = asks(stage.tick(10.0))
    found = stage.answer(reading, measured(disk=GIBIBYTE, at=10.0), 10.0)
    collected = []
    while asks(found)[0].ask in (Collector.CONTAINERS, Collector.IMAGES):
        (ask,) = asks(found)
        collected.append(ask.ask)
        found = stage.answer(ask, DONE, 10.0)
    assert collected == [Collector.CONTAINERS, Collector.IMAGES]
    (again,) = asks(found)
    found = stage.answer(again, measured(disk=50 * GIBIBYTE, at=10.1), 10.1)
    assert not evicted(found)
    assert not asks(found)


def test_what_the_kernel_notices_is_looked_at_at_once():
    stage = running(HostStage(monitoring_s=600.0), "a")
    assert evicted(stage.round(20.0, measured(LOW, at=20.0), message=Noticed("n1"))) == ["a"]


def test_what_has_hardly_passed_a_threshold_when_it_is_noticed_is_looked_at_again_soon():
    stage = running(HostStage(monitoring_s=600.0), "a")
    assert not evicted(stage.round(20.0, measured(101 * MEBIBYTE, at=20.0), message=Noticed("n1")))
    assert evicted(stage.round(20.5, measured(LOW, at=20.5))) == ["a"]
    assert not asks(stage.tick(20.9))


def test_what_is_noticed_during_a_round_or_soon_after_is_looked_at_half_a_second_later():
    stage = running(HostStage(monitoring_s=600.0))
    (ask,) = asks(stage.step(Noticed("n1"), 20.0))
    assert not asks(stage.step(Noticed("n1"), 20.1))
    stage.answer(ask, measured(at=20.2), 20.2)
    assert not asks(stage.tick(20.4))
    (ask,) = asks(stage.tick(20.5))
    stage.answer(ask, measured(at=20.6), 20.6)
    assert not asks(stage.step(Noticed("n1"), 20.7))
    assert asked(stage.tick(21.0)) == [Question.READING]


def test_while_a_pod_is_cleaned_up_nothing_else_goes():
    """docs/rules.md, one-pod-a-step."""
    stage = running(HostStage(runs=True), "a", "b")
    assert evicted(stage.round(10.0, measured(LOW, {"a": 1, "b": 2}, at=10.0))) == ["b"]
    assert not asks(stage.step(Noticed("n1"), 10.2))
    assert not asks(stage.tick(10.9))


def test_an_answer_that_nobody_waits_for_changes_nothing():
    stage = HostStage().begun()
    (ask,) = asks(stage.tick(0.0))
    stage.answer(ask, Layout.SINGLE, 0.1)
    assert stage.step(Answered(ask.ticket, Layout.SINGLE), 0.2) == [], "it was answered"
    assert stage.step(Answered(77, DONE), 0.2) == []
    stage.node_gone("n1", 1.0)
    assert stage.step(Answered(ask.ticket + 1, measured()), 1.1) == [], "the node is gone"
    stage.begun(2.0)
    (again,) = asks(stage.tick(2.0))
    stage.core.close()
    assert stage.step(Answered(again.ticket, Layout.SINGLE), 2.1) == [], "the term has ended"


def test_a_host_is_played_though_its_object_says_that_another_agent_has_it():
    assert "n1" in HostStage().begun().nodes


def test_signals_of_people_are_not_kept():
    stage = running(HostStage(), "a")
    (told,) = stage.observe(signals(LOW, at=5.0), 5.0)
    assert isinstance(told, effects.Announce)
    assert (told.reason, told.message) == (
        "UnknownSignal", "node n1 is a host, which is read itself: its signals are not kept"
    )  # fmt: skip


def test_usage_is_published_from_the_first_reading_on():
    stage = HostStage(runs=True).begun()
    assert not [one for one in stage.step(Tick(), 10.0) if isinstance(one, effects.PublishUsage)]
    stage = running(HostStage(runs=True), "a")
    found = stage.round(10.0, measured(PLENTY, {"a": GIBIBYTE}, at=10.0))
    (usage,) = [one.usage for one in found if isinstance(one, effects.PublishUsage)]
    assert usage.memory_bytes == 4 * GIBIBYTE
    (used,) = usage.pods
    assert (used.name, used.memory_bytes, used.processes, used.inodes) == ("a", GIBIBYTE, 2, 4)
    assert used.containers[0].disk_bytes == 10 * MEBIBYTE


def test_the_preview_of_a_host_stands_on_its_last_reading():
    stage = running(HostStage(runs=True), "a", "b")
    stage.round(10.0, measured(PLENTY, {"a": GIBIBYTE, "b": 2 * GIBIBYTE}, at=10.0))
    (reply,) = stage.step(Asked(1, PreviewRequest(node="n1", signals={"memory.available": "50Mi"})), 12.0)
    assert isinstance(reply, effects.Reply)
    assert [one.name for one in reply.reply.pods] == ["b", "a"]
    assert reply.reply.pods[0].used == 2 * GIBIBYTE
    (calm,) = stage.step(Asked(2, PreviewRequest(node="n1")), 12.0)
    assert isinstance(calm, effects.Reply)
    assert (calm.reply.pods, calm.reply.faults) == ((), ())


def test_a_preview_before_the_first_reading_says_that_there_is_none():
    (reply,) = HostStage().begun().step(Asked(1, PreviewRequest(node="n1")), 1.0)
    assert isinstance(reply, effects.Reply)
    assert reply.reply.faults == ("eviction manager: failed to get summary stats: nothing was read of the host yet",)
