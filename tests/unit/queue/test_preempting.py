"""What the queue does for preemptions: its gate, and nominations that end for a pod of higher priority."""

from typing import Any

import msgspec
import pytest

from podyard.cluster.view import ClusterView
from podyard.framework.profile import Profile
from podyard.proto.message import PodRef
from podyard.proto.queue_api import PoppedPod, PreemptingRequest, QueueReply
from podyard.queue import assembly
from podyard.queue.core.effects import Nominated
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.settings import QueueSettings
from tests.unit.framework.builders import profile, profile_of
from tests.unit.queue.play import node_event, queued
from tests.unit.queue.test_leader import Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def reference(name: str) -> PodRef:
    return PodRef(namespace="default", name=name, uid=f"uid-{name}")


def preempting(stage: Stage, name: str, *, running: bool, attempt: str = "", session: str = "s", **more: Any) -> None:
    request = PreemptingRequest(session=session, pod=reference(name), running=running, attempt=attempt, **more)
    assert stage.leader.preempting(request, stage.now).refused == ""


def failed(stage: Stage, popped: PoppedPod, **more: Any) -> None:
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnNodes",), **more)


def woken(stage: Stage, name: str) -> QueuedPod:
    """Something happens that helps the pod."""
    stage.queue.move_all(node_event(name), stage.now)
    return stage.queue.pods[f"uid-{name}"]


def test_an_end_that_overtakes_the_attempts_result_activates_the_pod_when_it_comes_back(stage: Stage) -> None:
    stage.add("a")
    popped = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt)
    preempting(stage, "a", running=False, attempt=popped.attempt)
    failed(stage, popped)
    assert stage.queue.pods["uid-a"].pool in ("activeQ", "backoffQ")


def test_a_start_that_is_repeated_after_its_end_gates_nobody(stage: Stage) -> None:
    """A request that was sent twice, for want of an answer, may arrive a second time when all is over."""
    stage.add("a")
    popped = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt)
    failed(stage, popped)
    preempting(stage, "a", running=False, attempt=popped.attempt)
    again = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt)
    failed(stage, again)
    stage.now += 60
    assert woken(stage, "a").pool == "activeQ"


def test_a_start_for_an_earlier_leader_gates_nobody_and_is_asked_for_again(stage: Stage) -> None:
    """It may be a repetition that comes late: its end was told to the leader before."""
    leader = stage.leader
    leader.epoch = 7
    stage.add("a")
    popped = stage.take()
    late = PreemptingRequest(session="s", pod=reference("a"), running=True, attempt="6-1", epoch=6)
    assert leader.preempting(late, stage.now) == QueueReply(epoch=7, outdated=True)
    failed(stage, popped)
    stage.now += 60
    assert woken(stage, "a").pool == "activeQ"
    again = stage.take()
    assert not leader.preempting(msgspec.structs.replace(late, epoch=7), stage.now).outdated
    failed(stage, again)
    stage.now += 60
    assert woken(stage, "a").pool == "gated"


def test_an_end_counts_whichever_leader_it_is_for(stage: Stage) -> None:
    stage.leader.epoch = 7
    stage.add("a")
    popped = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt, epoch=7)
    failed(stage, popped)
    preempting(stage, "a", running=False, attempt=popped.attempt, epoch=6)
    assert stage.queue.pods["uid-a"].pool in ("activeQ", "backoffQ")


def test_a_later_attempt_of_the_pod_may_preempt_again(stage: Stage) -> None:
    stage.add("a")
    popped = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt)
    failed(stage, popped)
    preempting(stage, "a", running=False, attempt=popped.attempt)
    again = stage.take()
    assert again.woken_by is not None
    assert (again.woken_by.event, again.woken_by.reason) == ("ForceActivate", "the preemption for it is over")
    preempting(stage, "a", running=True, attempt=again.attempt)
    failed(stage, again)
    stage.now += 60
    assert woken(stage, "a").pool == "gated"


def test_a_victim_that_is_named_later_opens_the_gate_when_it_goes(stage: Stage) -> None:
    stage.add("a")
    popped = stage.take()
    preempting(stage, "a", running=True, attempt=popped.attempt)
    failed(stage, popped)
    preempting(stage, "a", running=True, attempt=popped.attempt, victim=reference("v"))
    stage.going.add("uid-v")
    stage.now += 60
    assert woken(stage, "a").pool == "activeQ"


def test_nominations_of_lower_priority_end_with_the_result_of_the_pod_that_preempts(stage: Stage) -> None:
    lower = queued("lower", stage.now)
    stage.queue.add(lower, stage.now)
    failed(stage, stage.take(), nominated_node="n1")
    stage.add("other", "a", priority=9)
    stage.done(stage.take(), "scheduled", node="n2")
    stage.queue.take_effects()
    failed(stage, stage.take(), nominated_node="n1", cleared=(reference("lower"), reference("gone")))
    told = [(one.pod.uid, one.node) for one in stage.queue.take_effects() if isinstance(one, Nominated)]
    assert told == [("uid-a", "n1"), ("uid-lower", "")]
    assert (stage.queue.nominator.node_of("uid-lower"), stage.queue.nominator.node_of("uid-a")) == ("", "n1")


def test_a_pod_that_is_gone_when_its_result_comes_is_not_nominated(stage: Stage) -> None:
    stage.add("a")
    popped = stage.take()
    stage.queue.delete("uid-a")
    failed(stage, popped, nominated_node="n1")
    assert stage.queue.nominator.node_of("uid-a") == ""
    assert not [one for one in stage.queue.take_effects() if isinstance(one, Nominated)]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        pytest.param(profile(), "gated", id="enabled"),
        pytest.param(profile_of("PrioritySort", "NodeResourcesFit"), "activeQ", id="disabled"),
    ],
)
def test_the_gate_stands_where_the_plugin_is_enabled(use: Profile, expected: str) -> None:
    leader = assembly.build_leader(
        (use,),
        assembly.registries((use,)),
        QueueSettings(),
        epoch=1,
        view=ClusterView(),
        new_trace=lambda keep: "",
        timer=lambda: 0.0,
    )
    pod = queued("a", 0.0)
    pod.profile = use.name
    leader.preempting(PreemptingRequest(session="s", pod=reference("a"), running=True), 0.0)
    leader.queue.add(pod, 0.0)
    assert pod.pool == expected
