"""Pods that wait for room on a node they preempted for count against others there, as
RunFilterPluginsWithNominatedPods has it."""

from typing import Any

import numpy as np
import pytest

from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework import status as statuses
from podyard.framework.cycle import Cycle
from podyard.framework.cycle_state import CycleState
from podyard.framework.feasibility import Feasibility
from podyard.framework.interfaces import PreFilterResult
from podyard.framework.one_node import filter_one
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.row_judge import RowJudge
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.plugins.node_affinity.args import Args as AffinityArgs
from podyard.plugins.node_affinity.plugin import NodeAffinity
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.framework.builders import make_node, make_pod, on, required, table_of, term


def profile(*plugins: Any) -> Profile:
    return resolve("test", [Enabled(plugin=one) for one in (PrioritySort(), NodeResourcesFit(FitArgs()), *plugins)])


def cluster(*rivals: PodView) -> Snapshot:
    """Nodes a and b with 4 CPUs each, and these nominated pods."""
    return Snapshot(table_of(make_node("a"), make_node("b")), nominated=Nominations(rivals))


def rival(name: str = "rival", priority: int = 5, cpu: str = "3", node: str = "a") -> PodView:
    return make_pod(name, cpu=cpu, priority=priority, nominated=node)


@pytest.mark.parametrize(
    ("priority", "passes"),
    [
        pytest.param(4, False, id="lower priority"),
        pytest.param(5, False, id="equal priority"),
        pytest.param(6, True, id="higher priority"),
    ],
)
def test_room_is_kept_for_nominated_pods_of_equal_or_higher_priority(priority: int, *, passes: bool) -> None:
    snapshot = cluster(rival())
    pod = make_pod("p", cpu="2", priority=priority)
    feasibility = Feasibility(profile(), pod, snapshot)
    feasibility.refresh(pod)
    status = feasibility.status(snapshot.nodes.row_of["a"])
    assert (status is None) is passes
    assert status is None or status.reasons == ("Insufficient cpu",)
    assert filter_one(profile(), "a", pod, snapshot).ok is passes
    assert feasibility.status(snapshot.nodes.row_of["b"]) is None


def test_a_pod_does_not_count_against_itself_nor_one_that_is_placed() -> None:
    own = rival("p")
    snapshot = cluster(own)
    assert filter_one(profile(), "a", own, snapshot).ok
    assert Cycle(profile(), snapshot).run(own).node == "a"
    snapshot = cluster(rival())
    snapshot.nodes.place(on(rival(), "b"))
    pod = make_pod("p", cpu="2")
    assert filter_one(profile(), "a", pod, snapshot).ok
    assert not filter_one(profile(), "b", pod, snapshot).ok
    assert Cycle(profile(), snapshot).run(pod).node == "a"


def test_pods_of_equal_signature_and_other_priority_share_nothing_while_pods_are_nominated() -> None:
    snapshot = cluster(rival())
    snapshot.nodes.remove_node("b")
    cycle = Cycle(profile(), snapshot)
    assert cycle.run(make_pod("low", cpu="2")).node == ""
    assert cycle.run(make_pod("high", cpu="2", priority=9)).node == "a"
    assert cycle.run(make_pod("other", cpu="2")).node == ""
    snapshot.nominated.follow("uid-rival", None)
    assert cycle.run(make_pod("again", cpu="2")).node == "a"


class Alone:
    """Takes no node with a pod called noisy. What PreFilter finds tells so; trials change it."""

    name = "Alone"
    scope = "cluster"

    def __init__(self, *, skips: bool = False, fails: bool = False) -> None:
        self.skips, self.fails = skips, fails
        self.told: list[str] = []

    def signature(self, pod: PodInfo) -> None:
        return None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        return PreFilterResult(status=statuses.SKIP if self.skips else statuses.SUCCESS)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodView, row: int, cluster: Snapshot) -> Status:
        assert added.uid in cluster.nodes.pods_on(cluster.nodes.names[row])  # the trial comes first
        self.told.append(f"+{added.name}")
        return statuses.error("no idea") if self.fails else statuses.SUCCESS

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodView, row: int, cluster: Snapshot) -> Status:
        self.told.append(f"-{removed.name}")
        return statuses.error("no idea") if self.fails else statuses.SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Any) -> Any:
        return np.array([self.filter_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(any(one.name == "noisy" for one in cluster.nodes.pods_on(cluster.nodes.names[row]).values()))

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable("noisy")


def test_a_node_must_take_the_pod_with_and_without_the_nominated_ones() -> None:
    plugin = Alone()
    snapshot = cluster(rival("quiet", cpu="1"))
    snapshot.nodes.place(on(make_pod("noisy"), "a"))
    pod = make_pod("p")
    assert filter_one(profile(plugin), "a", pod, snapshot).reasons == ("noisy",)
    snapshot.nodes.remove("uid-noisy")
    assert filter_one(profile(plugin), "a", pod, snapshot).ok
    snapshot.nominated.follow("uid-noisy", rival("noisy", cpu="1"))
    plugin.told.clear()
    assert filter_one(profile(plugin), "a", pod, snapshot).reasons == ("noisy",)
    assert plugin.told == ["+quiet", "+noisy"]
    assert snapshot.nodes.pods_on("a") == {}
    assert int(snapshot.nodes.pod_count.sum()) == 0


def test_a_skipped_plugin_is_not_told_of_nominated_pods() -> None:
    plugin = Alone(skips=True)
    assert filter_one(profile(plugin), "a", make_pod("p"), cluster(rival("noisy"))).ok
    assert plugin.told == []


def test_a_plugin_that_cannot_count_a_nominated_pod_ends_the_attempt() -> None:
    text = 'running AddPod on PreFilter plugin "Alone": no idea'
    snapshot = cluster(rival())
    assert Cycle(profile(Alone(fails=True)), snapshot).run(make_pod("p")).error == text
    assert filter_one(profile(Alone(fails=True)), "a", make_pod("p"), snapshot).message == text


def test_trials_tell_all_plugins_and_say_which_failed() -> None:
    snapshot = cluster()
    snapshot.nodes.place(on(make_pod("noisy"), "a"))
    plugin, pod, row = Alone(), make_pod("p"), snapshot.nodes.row_of["a"]
    judge, state = RowJudge(profile(plugin), snapshot), CycleState()
    NodeResourcesFit(FitArgs()).pre_filter(state, pod, snapshot)
    assert judge.passes(state, pod, row).by("") == statuses.unschedulable("noisy")
    with snapshot.nodes.trial(row) as trial:
        victim = trial.remove("uid-noisy")
        assert judge.remove_pod(state, pod, victim, row).ok
        assert judge.passes(state, pod, row).ok
        trial.add(victim)
        assert judge.add_pod(state, pod, victim, row).ok
        assert judge.passes(state, pod, row).code == Code.UNSCHEDULABLE
    assert plugin.told == ["-noisy", "+noisy"]
    plugin.fails = True
    assert judge.remove_pod(state, pod, victim, row).message == (
        'running RemovePod on PreFilter plugin "Alone": no idea'
    )
    state = CycleState()
    missing = judge.passes(state, pod, row)
    assert (missing.code, missing.plugin) == (Code.ERROR, "NodeResourcesFit")


def outside(pod_cpu: str) -> tuple[Any, Snapshot]:
    """A pod that names node b and is nominated to a."""
    affinity = NodeAffinity(AffinityArgs())
    pod = make_pod("p", cpu=pod_cpu, nominated="a", spec=required(term("metadata.name", "In", "b", field=True)))
    snapshot = Snapshot(table_of(make_node("a"), make_node("b", cpu="1"), make_node("c")))
    return Cycle(profile(affinity), snapshot).run(pod), snapshot


def test_a_nominated_node_that_prefilter_left_out_keeps_its_own_reason_and_its_plugin_is_listed() -> None:
    result, _ = outside("64")  # NodeResourcesFit comes before NodeAffinity in this profile
    assert result.message == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit], 2 Insufficient cpu."
    )
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == ("NodeAffinity", "NodeResourcesFit")
    result, _ = outside("2")
    assert result.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_what_was_found_of_one_pods_nominated_node_is_not_told_of_another_pod() -> None:
    spec = required(term("metadata.name", "In", "b", field=True))
    snapshot = Snapshot(table_of(make_node("a"), make_node("b", cpu="1")))
    cycle = Cycle(profile(NodeAffinity(AffinityArgs())), snapshot)
    first = cycle.run(make_pod("p", cpu="2", nominated="a", spec=spec))
    assert "didn't match Pod's node affinity" in first.message
    assert cycle.run(make_pod("q", cpu="2", spec=spec)).message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


class Befriended(Alone):
    """Takes only nodes with a pod called friend."""

    name = "Befriended"

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(all(one.name != "friend" for one in cluster.nodes.pods_on(cluster.nodes.names[row]).values()))


def test_a_nominated_pod_that_may_never_come_does_not_make_a_node_fit() -> None:
    snapshot = cluster(rival("friend", cpu="1"))
    assert not filter_one(profile(Befriended()), "a", make_pod("p"), snapshot).ok
    assert Cycle(profile(Befriended()), snapshot).run(make_pod("p")).node == ""
    snapshot.nodes.place(on(make_pod("friend"), "a"))
    assert Cycle(profile(Befriended()), snapshot).run(make_pod("p")).node == "a"


class Pinning:
    """PreFilter that names node b."""

    name = "Pinning"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset(("b",)))


def test_a_nominated_node_that_prefilter_left_out_is_taken_if_it_will_do() -> None:
    assert Cycle(profile(Pinning()), cluster()).run(make_pod("p", nominated="a")).node == "a"
    assert Cycle(profile(Pinning()), cluster()).run(make_pod("p", cpu="64", nominated="a")).node == ""
    assert Cycle(profile(Pinning()), cluster()).run(make_pod("p")).node == "b"
