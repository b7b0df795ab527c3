"""Containers: their order, restarts by policy with a growing back-off, exit codes, readiness, and what a
status says of them."""

import itertools
from typing import Any

import msgspec
import pytest

from podyard.node_agent.core import effects
from podyard.proto.facts import ContainerFact, PodStatusFact
from tests.unit.node_agent.make import Playing, agent, deleted, node, pod, view

START_S = 1.0
"""What a container of these agents takes to start."""


@pytest.fixture
def playing() -> Playing:
    found = agent()
    found.node_seen(node(), (), 0.0)
    return found


def having(*, policy: str = "Always", init: Any = (), names: tuple[str, ...] = ("main",), **annotations: str):
    """A pod whose annotations are `run_duration="5s"` and, of one container, `seed__exit_code="1"`."""
    containers = [{"name": name, "image": "i"} for name in names]
    spec = {"containers": containers, "initContainers": list(init), "restartPolicy": policy}
    said = {}
    for name, text in annotations.items():
        container, _, rest = name.rpartition("__")
        said[f"{f'{container}.' if container else ''}podyard.io/{rest.replace('_', '-')}"] = text
    return pod("web", spec=spec, annotations=said)


def init(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


def sidecar(name: str) -> dict[str, Any]:
    return init(name, restartPolicy="Always")


def facts(found: list[effects.Effect]) -> list[PodStatusFact]:
    return [one.fact for one in found if isinstance(one, effects.PutPodStatus)]


def play(playing: Playing, until: float, *, at: float = 0.0) -> list[tuple[float, PodStatusFact]]:
    """All facts with their times, until then; nothing is asked for before it is due."""
    found: list[tuple[float, PodStatusFact]] = []
    while (due := playing.pods.next_due()) is not None and due <= until:
        found += [(round(due - at, 3), fact) for fact in facts(playing.tick(due))]
    return found


def shown(one: ContainerFact) -> str:
    """A container in a word."""
    if one.end is not None:
        return f"{one.end.reason}:{one.end.exit_code}"
    return "runs" if one.started_at else one.reason


def story(playing: Playing, stored: Any, until: float) -> list[tuple[Any, ...]]:
    """(time, phase, init containers, containers) of each fact."""
    playing.pod_seen(view(stored), 0.0, 0.0)
    return [
        (at, fact.phase, *(shown(one) for one in (*fact.init_containers, *fact.containers)))
        for at, fact in play(playing, until)
    ]


def conditions(fact: PodStatusFact) -> dict[str, str]:
    return {one.type: one.status for one in fact.conditions}


def test_init_containers_run_one_after_the_other_and_then_all_others(playing: Playing):
    two = having(init=[init("first"), init("second")], names=("a", "b"), first__run_duration="3s")
    assert story(playing, two, 100.0) == [
        (1.0, "Pending", "runs", "PodInitializing", "PodInitializing", "PodInitializing"),
        (4.0, "Pending", "Completed:0", "ContainerCreating", "PodInitializing", "PodInitializing"),
        (5.0, "Pending", "Completed:0", "Completed:0", "ContainerCreating", "ContainerCreating"),
        (6.0, "Running", "Completed:0", "Completed:0", "runs", "runs"),
    ]


def test_until_its_init_containers_are_done_a_pod_says_which_are_not(playing: Playing):
    playing.pod_seen(view(having(init=[init("first"), init("second")], first__run_duration="3s")), 0.0, 0.0)
    told = [fact for _, fact in play(playing, 100.0)]
    assert conditions(told[0]) == {
        "Initialized": "False", "Ready": "False", "ContainersReady": "False", "PodScheduled": "True",
    }  # fmt: skip
    (initialized,) = [one for one in told[0].conditions if one.type == "Initialized"]
    assert (initialized.reason, initialized.message) == (
        "ContainersNotInitialized", "containers with incomplete status: [first second]",
    )  # fmt: skip
    assert set(conditions(told[-1]).values()) == {"True"}
    assert [one.ready for one in told[-1].init_containers] == [True, True]


def test_a_sidecar_lets_the_next_begin_when_it_runs_and_ends_after_the_others(playing: Playing):
    """The pod takes its 2 s to end; that a sidecar was killed makes it no failure."""
    with_proxy = having(policy="Never", init=[sidecar("proxy"), init("last")], run_duration="5s")
    assert story(playing, with_proxy, 100.0) == [
        (1.0, "Pending", "runs", "ContainerCreating", "PodInitializing"),
        (2.0, "Pending", "runs", "Completed:0", "ContainerCreating"),
        (3.0, "Running", "runs", "Completed:0", "runs"),
        (8.0, "Running", "runs", "Completed:0", "Completed:0"),
        (10.0, "Succeeded", "Error:143", "Completed:0", "Completed:0"),
    ]


@pytest.mark.parametrize(
    ("first", "code", "told"),
    [
        ("0", "0", ("Succeeded", "True", "PodCompleted")),
        ("0", "1", ("Failed", "True", "")),
        ("1", "0", ("Failed", "False", "ContainersNotInitialized")),
    ],
)
def test_a_pod_that_has_ended_says_whether_it_was_initialized(
    playing: Playing, first: str, code: str, told: tuple[str, str, str]
):
    """Who shows the pod must not call it starting because of a sidecar that was ended with it."""
    stored = having(policy="Never", init=[init("first")], run_duration="5s", exit_code=code, first__exit_code=first)
    playing.pod_seen(view(stored), 0.0, 0.0)
    _, last = play(playing, 100.0)[-1]
    (initialized,) = (one for one in last.conditions if one.type == "Initialized")
    assert (last.phase, initialized.status, initialized.reason) == told


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Pending"), ("Always", "Pending")])
def test_an_init_container_that_fails_ends_a_pod_that_is_never_restarted(playing: Playing, policy: str, phase: str):
    told = story(playing, having(policy=policy, init=[init("first")], first__exit_code="3"), 1.5)
    assert told == [(1.0, phase, "Error:3", "PodInitializing")]


def test_an_init_container_that_succeeds_is_not_started_again(playing: Playing):
    assert len(story(playing, having(init=[init("first")]), 10_000.0)) == 2


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True),
        ("Never", 0, False), ("Never", 1, False),
    ],
)  # fmt: skip
def test_what_ends_is_started_again_by_the_restart_policy(playing: Playing, policy: str, code: int, again: bool):
    told = story(playing, having(policy=policy, run_duration="5s", exit_code=str(code)), 7.0)
    how = f"{'Error' if code else 'Completed'}:{code}"
    if again:
        assert told == [(1.0, "Running", "runs"), (6.0, "Running", how), (7.0, "Running", "runs")]
    else:
        assert told == [(1.0, "Running", "runs"), (6.0, "Failed" if code else "Succeeded", how)]


def test_restarts_back_off_from_ten_seconds_to_five_minutes(playing: Playing):
    """The first restart is made at once. Source: pkg/kubelet/kuberuntime, doBackOff."""
    playing.pod_seen(view(having(run_duration="1s", exit_code="1")), 0.0, 0.0)
    told = play(playing, 2_000.0)
    runs = [at for at, fact in told if fact.containers[0].started_at]
    pauses = [round(after - before - 1.0 - START_S, 3) for before, after in itertools.pairwise(runs)]
    assert pauses[:9] == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    assert [fact.containers[0].restarts for _, fact in told if fact.containers[0].started_at][:3] == [0, 1, 2]


def test_a_container_that_waits_for_its_restart_says_so(playing: Playing):
    playing.pod_seen(view(having(run_duration="1s", exit_code="7")), 0.0, 0.0)
    found: list[effects.Effect] = []
    for now in (1.0, 2.0, 3.0, 4.0):
        found += playing.tick(now)
    (container,) = facts(found)[-1].containers
    assert (container.reason, container.message, container.ready) == (
        "CrashLoopBackOff", "back-off 10s restarting failed container=main pod=web_default(uid-web)", False,
    )  # fmt: skip
    assert container.last is not None
    assert (container.last.exit_code, container.last.reason) == (7, "Error")
    assert container.last.finished_at == "1970-01-01T00:00:04Z"
    assert conditions(facts(found)[-1])["Ready"] == "False"
    assert [(one.reason, one.message) for one in found if isinstance(one, effects.Announce)] == [
        ("BackOff", "Back-off restarting failed container main in pod web_default(uid-web)")
    ]


def test_a_run_of_more_than_ten_minutes_forgets_the_back_off(playing: Playing):
    playing.pod_seen(view(having(run_duration="601s", exit_code="1")), 0.0, 0.0)
    assert not [fact for _, fact in play(playing, 4_000.0) if fact.containers[0].reason == "CrashLoopBackOff"]
    other = agent()
    other.node_seen(node(), (), 0.0)
    other.pod_seen(view(having(run_duration="600s", exit_code="1")), 0.0, 0.0)
    assert [fact for _, fact in play(other, 4_000.0) if fact.containers[0].reason == "CrashLoopBackOff"]


def test_a_container_may_have_a_policy_and_rules_of_its_own(playing: Playing):
    """Source: pkg/api/v1/pod/util.go, ContainerShouldRestart."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    ruled = {"name": "ruled", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    stored = pod(
        "web",
        spec={
            "containers": [ruled, {"name": "other", "image": "i", "restartPolicy": "Never"}],
            "restartPolicy": "Always",
        },
        annotations={
            "podyard.io/run-duration": "2s",
            "ruled.podyard.io/exit-code": "42",
            "other.podyard.io/exit-code": "1",
        },
    )
    assert story(playing, stored, 4.5) == [
        (1.0, "Running", "runs", "runs"), (3.0, "Running", "Error:42", "Error:1"), (4.0, "Running", "runs", "Error:1"),
    ]  # fmt: skip


def test_a_pod_ends_when_all_its_containers_have_and_fails_if_one_did(playing: Playing):
    stored = having(policy="Never", names=("a", "b"), a__run_duration="2s", b__run_duration="4s", a__exit_code="1")
    assert story(playing, stored, 100.0) == [
        (1.0, "Running", "runs", "runs"),
        (3.0, "Running", "Error:1", "runs"),
        (5.0, "Failed", "Error:1", "Completed:0"),
    ]


def test_a_pod_is_ready_when_all_its_containers_are(playing: Playing):
    playing.pod_seen(view(having(names=("a", "b"), init=[sidecar("proxy")], b__ready_delay="5s")), 0.0, 0.0)
    told = play(playing, 100.0)
    assert [(at, conditions(fact)["Ready"]) for at, fact in told] == [(1.0, "False"), (2.0, "False"), (7.0, "True")]
    (ready,) = [one for one in told[1][1].conditions if one.type == "ContainersReady"]
    assert (ready.reason, ready.message) == ("ContainersNotReady", "containers with unready status: [b]")
    (ready,) = [one for one in told[2][1].conditions if one.type == "Ready"]
    assert ready.last_transition_time == "1970-01-01T00:00:07Z"


@pytest.mark.parametrize(("grace_s", "code"), [(30, 143), (1, 137)])
def test_a_container_that_is_asked_to_end_is_killed_if_its_grace_is_short(playing: Playing, grace_s: int, code: int):
    playing.pod_seen(view(having()), 0.0, 0.0)
    play(playing, 1.0)
    playing.pod_seen(view(deleted(having(), "1970-01-01T00:00:30Z", grace_s)), 0.0, 10.0)
    (last,) = [fact for _, fact in play(playing, 100.0)]
    assert (last.phase, shown(last.containers[0])) == ("Failed", f"Error:{code}")


def test_a_pod_that_is_being_deleted_starts_nothing_again(playing: Playing):
    loops = having(run_duration="1s", exit_code="1", stop_delay="20s")
    playing.pod_seen(view(loops), 0.0, 0.0)
    play(playing, 4.0)
    playing.pod_seen(view(deleted(loops, "1970-01-01T00:00:30Z", 30)), 0.0, 5.0)
    (last,) = [fact for _, fact in play(playing, 1_000.0)]
    assert (last.phase, last.ended, shown(last.containers[0])) == ("Failed", True, "Error:1")


def test_after_a_restart_of_the_agent_containers_go_on_as_they_were_told():
    """Who waited for a restart waits no more: the kubelet does not keep its back-off either."""
    stored = having(names=("steady", "loops"), init=[init("first")], loops__run_duration="1s", loops__exit_code="1")
    before = agent()
    before.node_seen(node(), (), 0.0)
    before.pod_seen(view(stored), 0.0, 0.0)
    at, told = play(before, 5.0)[-1]
    assert (at, [shown(one) for one in told.containers]) == (5.0, ["runs", "CrashLoopBackOff"])
    after = agent()
    after.node_seen(node(), [view(stored, status=told)], 8.0)
    at, next_ = play(after, 100.0)[0]
    assert (at, next_.phase, [shown(one) for one in next_.containers]) == (9.0, "Running", ["runs", "runs"])
    assert [one.restarts for one in next_.containers] == [0, 2]
    assert next_.containers[0].started_at == told.containers[0].started_at
    assert shown(next_.init_containers[0]) == "Completed:0"


def test_after_a_restart_of_the_agent_what_was_to_be_started_again_at_once_is():
    stored = having(policy="OnFailure", run_duration="5s", exit_code="1")
    before = agent()
    before.node_seen(node(), (), 0.0)
    before.pod_seen(view(stored), 0.0, 0.0)
    at, told = play(before, 6.0)[-1]
    assert (at, told.phase, shown(told.containers[0])) == (6.0, "Running", "Error:1")
    after = agent()
    after.node_seen(node(), [view(stored, status=told)], 8.0)
    at, next_ = play(after, 10.0)[0]
    assert (at, shown(next_.containers[0]), next_.containers[0].restarts) == (9.0, "runs", 1)


@pytest.mark.parametrize("alone", [False, True], ids=["sidecars run", "nothing runs"])
def test_after_a_restart_of_the_agent_a_pod_whose_work_is_done_ends(alone: bool):
    stored = having(policy="Never", init=[sidecar("proxy")], run_duration="5s")
    before = agent()
    before.node_seen(node(), (), 0.0)
    before.pod_seen(view(stored), 0.0, 0.0)
    at, told = play(before, 7.0)[-1]
    assert (at, told.phase, shown(told.init_containers[0])) == (7.0, "Running", "runs")
    if alone:
        stored, told = having(policy="Never"), msgspec.structs.replace(told, init_containers=())
    after = agent()
    after.node_seen(node(), [view(stored, status=told)], 8.0)
    ((at, last),) = play(after, 100.0)
    assert (at, last.phase, last.ended) == (8.0 if alone else 10.0, "Succeeded", True)


def test_after_a_restart_of_the_agent_a_pod_has_been_unready_for_as_long_as_before():
    stored = having(names=("slow", "loops"), slow__ready_delay="1h", loops__run_duration="1s", loops__exit_code="1")
    before = agent()
    before.node_seen(node(), (), 0.0)
    before.pod_seen(view(stored), 0.0, 0.0)
    _, told = play(before, 5.0)[-1]
    after = agent()
    after.node_seen(node(), [view(stored, status=told)], 8.0)
    _, again = play(after, 100.0)[0]
    (first,), (second,) = ([one for one in fact.conditions if one.type == "Ready"] for fact in (told, again))
    assert (first.status, second.status) == ("False", "False")
    assert first.last_transition_time == second.last_transition_time


def test_after_a_restart_of_the_agent_an_init_container_goes_on():
    stored = having(init=[init("first"), init("second")], second__run_duration="10s")
    before = agent()
    before.node_seen(node(), (), 0.0)
    before.pod_seen(view(stored), 0.0, 0.0)
    at, told = play(before, 2.0)[-1]
    assert (at, told.phase, [shown(one) for one in told.init_containers]) == (2.0, "Pending", ["Completed:0", "runs"])
    after = agent()
    assert facts(after.node_seen(node(), [view(stored, status=told)], 8.0)) == []
    assert [at for at, _ in play(after, 100.0)] == [12.0, 13.0]


def test_what_an_agent_said_that_told_of_no_containers_is_understood():
    stored = having(init=[init("first")], run_duration="20s")
    fact = PodStatusFact(
        namespace="default", name="web", uid="uid-web", node="n1", phase="Running", at="1970-01-01T00:00:05Z"
    )
    after = agent()
    after.node_seen(node(), [view(stored, status=fact)], 8.0)
    at, told = play(after, 100.0)[0]
    assert (at, shown(told.init_containers[0]), shown(told.containers[0])) == (25.0, "Completed:0", "Completed:0")


@pytest.mark.parametrize("text", ["256", "-1", "one", "", "0x1"])
def test_an_exit_code_that_is_none_is_told_and_ignored(playing: Playing, text: str):
    stored = having(policy="Never", main__exit_code=text, run_duration="1s")
    (told,) = [one for one in playing.pod_seen(view(stored), 0.0, 0.0) if isinstance(one, effects.Announce)]
    assert told.message == (
        f"annotation main.podyard.io/exit-code is ignored: {text!r} is no exit code; write a number from 0 to 255"
    )
    assert [fact.phase for _, fact in play(playing, 10.0)] == ["Running", "Succeeded"]
