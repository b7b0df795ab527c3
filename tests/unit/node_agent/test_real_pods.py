"""Pods of a host that are processes: what is ordered of the host, and what follows from what it tells."""

from collections.abc import Sequence
from typing import Any

import pytest

from podyard.node_agent.core import effects, messages
from podyard.node_agent.core.effects import LookUpPod, StartContainer, StopPod
from podyard.node_agent.core.messages import ContainerEnded, ContainerStarted, Found, Planned, PodGone, Run, RunEnd
from podyard.node_agent.core.programs import Bounds, Faults, Program
from podyard.node_agent.core.real_pod import RealPod
from podyard.objects.pod import Pod
from podyard.proto.facts import PodStatusFact
from tests.unit.node_agent.host_stage import HostStage, asked, measured
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, deleted, node, pod, view

NEVER = {"restartPolicy": "Never"}
ALWAYS = {"restartPolicy": "Always"}


class Stage(HostStage):
    """A host that was read, and runs pods as processes; `at` is now."""

    def __init__(self, *runs: Run) -> None:
        super().__init__(runs=True)
        self.at = 0.0
        self.last: list[effects.Effect] = []
        self.facts: dict[str, PodStatusFact] = {}
        if runs:
            self.tell(Found({"uid-web": runs}))

    def played(self, *bound: Any) -> "Stage":
        """The node is there with these pods, and was read."""
        self._keep(self.node_seen(node(), bound, self.at))
        first = self.last
        self.round(self.at, measured())
        self.last = first
        return self

    def tell(self, message: messages.Message) -> list[effects.Effect]:
        return self._keep(self.step(message, self.at))

    def bind(self, stored: Pod, **more: Any) -> list[effects.Effect]:
        return self._keep(self.pod_seen(view(stored, **more), self.at, self.at))

    def wait(self, seconds: float) -> list[effects.Effect]:
        self.at += seconds
        return self._keep(self.tick(self.at))

    def plan(self, *containers: str, uid: str = "uid-web") -> list[effects.Effect]:
        """Its object was read; it is due at once."""
        found = self.tell(Planned(uid, {name: Program(argv=("run", name)) for name in containers or ("main",)}))
        return self._keep([*found, *self.tick(self.at)])

    def starts(self, name: str = "main", attempt: int = 0) -> list[effects.Effect]:
        return self.tell(ContainerStarted("uid-web", name, attempt, self.at))

    def ends(self, code: int, name: str = "main", attempt: int = 0, **more: Any) -> list[effects.Effect]:
        return self.tell(ContainerEnded("uid-web", name, attempt, self.at, RunEnd(code, self.at, **more)))

    def running(self, **spec: Any) -> "Stage":
        """A pod web of one container runs."""
        self.played()
        self.bind(pod("web", spec=spec))
        self.plan()
        self.starts()
        return self

    def _keep(self, found: list[effects.Effect]) -> list[effects.Effect]:
        self.last = found
        self.facts |= {one.fact.name: one.fact for one in found if isinstance(one, effects.PutPodStatus)}
        return found

    @property
    def fact(self) -> PodStatusFact:
        return self.facts["web"]

    @property
    def real(self) -> RealPod:
        found = self.pods.get("uid-web")
        assert isinstance(found, RealPod)
        return found


def orders(found: Sequence[effects.Effect]) -> list[effects.Effect]:
    return [one for one in found if isinstance(one, LookUpPod | StartContainer | effects.LimitPod | StopPod)]


def started(found: Sequence[effects.Effect]) -> list[tuple[str, int]]:
    return [(one.container, one.attempt) for one in found if isinstance(one, StartContainer)]


def main(fact: PodStatusFact) -> Any:
    return fact.containers[0]


# ---- a life


def test_a_pod_is_looked_up_admitted_and_started():
    stage = Stage().played()
    (order,) = orders(stage.bind(pod("web", spec=ALWAYS)))
    assert isinstance(order, LookUpPod)
    assert (order.about.namespace, order.about.name, order.about.uid) == ("default", "web", "uid-web")
    found = stage.plan()
    assert started(found) == [("main", 0)]
    (start,) = orders(found)
    assert isinstance(start, StartContainer)
    assert (start.program.argv, start.bounds, start.about.uid) == (("run", "main"), Bounds(), "uid-web")
    assert (stage.fact.phase, main(stage.fact).reason) == ("Pending", "ContainerCreating")
    found = stage.starts()
    assert [type(one) for one in found] == [effects.PodStarted, effects.PutPodStatus]
    assert (stage.fact.phase, main(stage.fact).ready) == ("Running", True)
    assert stage.core.wake_at == pytest.approx(stage.core.nodes.next_due()), "its end is told"


def test_people_are_told_that_images_and_annotations_of_virtual_containers_are_not_used():
    stage = Stage().played()
    stage.bind(pod("web", annotations={"podyard.io/run-duration": "5s"}))
    told = [one for one in stage.plan() if isinstance(one, effects.Announce)]
    assert [(one.reason, one.warning) for one in told] == [("InvalidAnnotation", True), ("ImageIgnored", False)]
    assert told[0].message == "annotation podyard.io/run-duration is ignored: the pod runs as processes"


def test_what_cannot_run_here_is_refused_with_all_that_is_wrong():
    stage = Stage().played()
    stage.bind(pod("web"))
    found = stage.tell(Planned("uid-web", Faults(("spec.volumes: a", "spec.containers[0].command: b"))))
    assert orders(found) == [], "nothing of it is on the host"
    assert (stage.fact.phase, stage.fact.ended, stage.fact.reason) == ("Failed", True, "UnsupportedByProcesses")
    assert stage.fact.message == "Pod was rejected: spec.volumes: a; spec.containers[0].command: b"


def test_a_pod_that_finds_no_room_is_refused_as_on_any_node():
    stage = Stage().played()
    stage.bind(pod("web", requests={"cpu": "100"}))
    assert orders(stage.plan()) == []
    assert stage.fact.reason == "OutOfcpu"


def test_what_ends_well_ends_the_pod_when_nothing_of_it_is_left():
    """docs/rules.md, a-real-pod-ends-when-nothing-of-it-runs."""
    stage = Stage().running(**NEVER)
    stage.at = 7.0
    assert orders(stage.ends(0)) == [StopPod("uid-web", 0.0)]
    assert not stage.fact.ended
    found = stage.tell(PodGone("uid-web"))
    assert orders(found) == []
    assert (stage.fact.phase, stage.fact.ended) == ("Succeeded", True)
    assert main(stage.fact).end.exit_code == 0


def test_reasons_of_an_end_are_those_of_the_host():
    stage = Stage().running(**NEVER)
    stage.ends(137, reason="OOMKilled")
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, main(stage.fact).end.reason) == ("Failed", "OOMKilled")


def test_a_container_that_ends_is_started_again_with_the_back_off_of_any():
    """docs/rules.md, restarts-back-off."""
    stage = Stage().running(**ALWAYS)
    stage.wait(5.0)
    stage.ends(3)
    assert started(stage.wait(0.0)) == [("main", 1)], "the first time at once"
    stage.starts(attempt=1)
    assert (main(stage.fact).restarts, main(stage.fact).last.exit_code) == (1, 3)
    found = stage.ends(4, attempt=1)
    assert [one.reason for one in found if isinstance(one, effects.Announce)] == ["BackOff"]
    assert main(stage.fact).reason == "CrashLoopBackOff"
    assert started(stage.wait(9.0)) == []
    assert started(stage.wait(1.0)) == [("main", 2)]


def test_what_cannot_be_started_is_told_and_tried_again():
    stage = Stage().played()
    stage.bind(pod("web", spec=ALWAYS))
    stage.plan()
    found = stage.ends(128, reason="StartError", why="no such file")
    (told,) = [one for one in found if isinstance(one, effects.Announce)]
    assert (told.reason, told.message) == ("Failed", "Error: container main: no such file")
    assert started(stage.wait(0.0)) == [("main", 1)]
    stage.ends(128, attempt=1, reason="StartError", why="no such file")
    assert (main(stage.fact).last.reason, main(stage.fact).restarts) == ("StartError", 1)


def test_init_containers_run_one_after_the_other_and_sidecars_beside_the_others():
    inits = [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}, {"name": "last"}]
    stage = Stage().played()
    stage.bind(pod("web", spec={**NEVER, "initContainers": inits}))
    assert started(stage.plan("first", "side", "last", "main")) == [("first", 0)]
    stage.starts("first")
    stage.ends(0, "first")
    assert started(stage.wait(0.0)) == [("side", 0)]
    stage.starts("side")
    assert started(stage.wait(0.0)) == [("last", 0)]
    stage.starts("last")
    stage.ends(0, "last")
    assert started(stage.wait(0.0)) == [("main", 0)]
    stage.starts()
    assert stage.fact.phase == "Running"
    assert orders(stage.ends(0)) == [StopPod("uid-web", 30.0, ("side",))], "the sidecar has its time"
    stage.ends(143, "side")
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, stage.fact.ended) == ("Succeeded", True)
    assert {one.name: one.end.exit_code for one in stage.fact.init_containers if one.end} == {
        "first": 0, "side": 143, "last": 0
    }  # fmt: skip


def test_containers_start_together_and_each_once():
    stage = Stage().played()
    stage.bind(pod("web", spec={**ALWAYS, "containers": [{"name": "one"}, {"name": "two"}]}))
    assert started(stage.plan("one", "two")) == [("one", 0), ("two", 0)]
    assert started([*stage.starts("one"), *stage.wait(1.0)]) == [], "the other is being started"


def test_an_init_container_that_fails_for_good_fails_the_pod():
    stage = Stage().played()
    stage.bind(pod("web", spec={**NEVER, "initContainers": [{"name": "first"}]}))
    stage.plan("first", "main")
    stage.starts("first")
    assert orders(stage.ends(1, "first")) == [StopPod("uid-web", 0.0)]
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, stage.fact.ended) == ("Failed", True)


# ---- ends


def test_a_deleted_pod_has_its_grace_period_and_less_only_makes_it_sooner():
    stage = Stage().running(**ALWAYS)
    stored = pod("web", spec=ALWAYS)
    assert orders(stage.bind(deleted(stored, "2026-01-01T00:00:00Z", 20))) == [StopPod("uid-web", 20)]
    stage.at = 5.0
    assert orders(stage.bind(deleted(stored, "2026-01-01T00:00:00Z", 30))) == []
    assert orders(stage.bind(deleted(stored, "2026-01-01T00:00:00Z", 0))) == [StopPod("uid-web", 0)]
    assert stage.ends(143) == [], "it is said when nothing of it is left"
    assert started(stage.wait(1.0)) == [], "it is not started again"
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, stage.fact.ended, main(stage.fact).end.exit_code) == ("Failed", True, 143)


def test_an_evicted_pod_is_killed_within_a_second_and_says_why():
    stage = Stage().running(**ALWAYS)
    read = measured(50 * MEBIBYTE, {"web": GIBIBYTE}, at=10.0)
    stage.at = 10.0
    found = stage._keep(stage.round(10.0, read))
    assert orders(found) == [StopPod("uid-web", 1)]
    assert asked(found) == []
    stage.ends(137)
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.reason, stage.fact.ended) == ("Evicted", True)
    assert any(one.type == "DisruptionTarget" for one in stage.fact.conditions)


@pytest.mark.parametrize("how", ["its object is gone", "its place is gone", "the node is gone"])
def test_nothing_of_a_pod_that_is_given_up_stays_on_the_host(how: str):
    stage = Stage().running(**ALWAYS)
    if how == "its object is gone":
        found = stage._keep(stage.pod_gone("uid-web", 1.0))
    elif how == "its place is gone":
        found = stage.bind(pod("web", spec=ALWAYS), released=True)
    else:
        found = stage._keep(stage.node_gone("n1", 1.0))
    assert orders(found) == [StopPod("uid-web", 0.0)]
    assert orders(stage.tell(PodGone("uid-web"))) == []


def test_a_pod_that_ends_before_it_is_known_what_it_runs_leaves_nothing_to_do():
    stage = Stage().played()
    stored = pod("web")
    stage.bind(stored)
    assert orders(stage.bind(deleted(stored, "2026-01-01T00:00:00Z", 30))) == [StopPod("uid-web", 30)]
    assert started(stage.plan()) == []
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, stage.fact.ended) == ("Failed", True)


def test_new_limits_of_a_bound_pod_are_those_of_its_processes():
    stage = Stage().running(**ALWAYS)
    found = stage.bind(pod("web", limits={"memory": "64Mi"}, spec=ALWAYS))
    (order,) = orders(found)
    assert isinstance(order, effects.LimitPod)
    assert order.bounds["main"].memory_bytes == 64 * MEBIBYTE


# ---- what comes late


def test_what_is_told_of_another_run_or_of_no_pod_changes_nothing():
    stage = Stage().running(**ALWAYS)
    stage.wait(1.0)
    stage.ends(1)
    stage.wait(0.0)
    assert stage.starts(attempt=0) == []
    assert stage.ends(1, attempt=0) == [], "told before"
    assert stage.starts("other") == []
    for message in (
        PodGone("uid-no"),
        Planned("uid-no", {}),
        ContainerStarted("uid-no", "main", 0, 1.0),
        PodGone("uid-web"),
    ):
        assert stage.tell(message) == []
    assert stage.tell(Planned("uid-web", Faults(("late",)))) == []
    assert stage.starts(attempt=1), "and it goes on"


def test_an_end_that_is_told_before_the_start_counts_as_both():
    stage = Stage().played()
    stage.bind(pod("web", spec=NEVER))
    stage.plan()
    stage.ends(0)
    assert stage.starts() == []
    stage.tell(PodGone("uid-web"))
    assert stage.fact.phase == "Succeeded"


# ---- another agent before this one


def fact_of(stage: Stage) -> PodStatusFact:
    return stage.fact


def again(*runs: Run, fact: PodStatusFact | None, **spec: Any) -> Stage:
    """Another agent takes over 100 s later, and finds these runs."""
    stage = Stage(*runs)
    stage.at = 100.0
    return stage.played(view(pod("web", spec=spec), status=fact))


def test_what_runs_is_found_again_and_goes_on():
    fact = Stage().running(**ALWAYS).fact
    stage = again(Run("main", 0, 1.0), fact=fact, **ALWAYS)
    assert [type(one) for one in orders(stage.last)] == [LookUpPod]
    assert started([*stage.plan(), *stage.wait(50.0)]) == []
    stage.ends(2)
    assert started(stage.wait(0.0)) == [("main", 1)]


def test_what_ended_meanwhile_has_its_code_and_is_started_again():
    fact = Stage().running(**ALWAYS).fact
    stage = again(Run("main", 0, 1.0, RunEnd(9, 50.0)), fact=fact, **ALWAYS)
    assert started(stage.plan()) == [("main", 1)]
    stage.starts(attempt=1)
    assert (main(stage.fact).last.exit_code, main(stage.fact).restarts) == (9, 1)


def test_what_was_told_as_ended_is_not_counted_twice():
    one = Stage().running(**ALWAYS)
    one.wait(1.0)
    one.ends(9)
    one.wait(0.0)
    one.starts(attempt=1)
    one.ends(9, attempt=1)
    assert main(one.fact).reason == "CrashLoopBackOff"
    stage = again(Run("main", 1, 1.0, RunEnd(9, 1.0)), fact=one.fact, **ALWAYS)
    assert started(stage.plan()) == [("main", 2)]
    stage.starts(attempt=2)
    assert main(stage.fact).restarts == 2


def test_of_what_ran_and_is_not_found_nobody_knows_how_it_ended():
    fact = Stage().running(**ALWAYS).fact
    stage = again(fact=fact, **ALWAYS)
    stage.plan()
    stage.starts(attempt=1)
    assert (main(stage.fact).last.exit_code, main(stage.fact).last.reason) == (137, "ContainerStatusUnknown")


def test_a_pod_that_had_ended_while_nobody_looked_has_ended():
    fact = Stage().running(**NEVER).fact
    stage = again(Run("main", 0, 1.0, RunEnd(0, 50.0)), fact=fact, **NEVER)
    assert StopPod("uid-web", 0.0) in orders(stage.last)
    stage.tell(PodGone("uid-web"))
    assert (stage.fact.phase, stage.fact.ended) == ("Succeeded", True)


def test_a_pod_that_was_started_and_not_told_of_is_taken_over():
    stage = again(Run("main", 0, 99.0), fact=None, **ALWAYS)
    assert started([*stage.plan(), *stage.wait(1.0)]) == []
    stage.ends(1)
    assert (stage.fact.phase, main(stage.fact).end.exit_code) == ("Running", 1)


def test_what_runs_and_is_bound_no_more_is_killed():
    stage = Stage(Run("main", 0, 1.0))
    stage.played()
    assert orders(stage.last) == [StopPod("uid-web", 0.0)]


def test_what_was_left_of_a_pod_that_has_ended_is_killed():
    one = Stage().running(**NEVER)
    one.ends(0)
    one.tell(PodGone("uid-web"))
    stage = again(Run("main", 0, 1.0), fact=one.fact, **NEVER)
    assert orders(stage.last) == [StopPod("uid-web", 0.0)]


def test_a_pod_that_runs_and_may_not_any_more_is_ended():
    fact = Stage().running(**ALWAYS).fact
    stage = again(Run("main", 0, 1.0), fact=fact, **ALWAYS)
    found = stage.tell(Planned("uid-web", Faults(("metadata.namespace: default is none of those",))))
    assert orders(found) == [StopPod("uid-web", 30)]
    stage.tell(PodGone("uid-web"))
    assert stage.fact.reason == "UnsupportedByProcesses"
