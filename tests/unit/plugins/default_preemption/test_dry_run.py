"""One node tried out: who would have to go."""

from typing import ClassVar

import numpy as np

from podyard.cluster.node_table import PlacedPod
from podyard.cluster.pods import PodView
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import PreFilterResult
from podyard.framework.one_at_a_time import FilterOneNode
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.plugins import registry
from podyard.plugins.default_preemption.dry_run import NO_VICTIMS
from podyard.plugins.default_preemption.plugin import dry_run, potential_rows
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.plugins.default_preemption.scenes import Scene, budget, placed


def me(cpu: str = "2", **more: int) -> PodView:
    return make_pod("me", cpu=cpu, **{"priority": 10, **more})  # pyright: ignore[reportArgumentType] - priorities


def test_the_least_important_pods_go_and_only_as_many_as_needed() -> None:
    pods = [
        placed("old", "a", cpu="1", start="00:01"),
        placed("new", "a", cpu="1", start="00:09"),
        placed("high", "a", cpu="1", priority=5, start="00:09"),
        placed("middle", "a", cpu="1", start="00:05"),
    ]
    scene = Scene([make_node("a")], pods)
    assert scene.tried(me("1"), "a") == (["new"], 0)
    assert scene.tried(me("2"), "a") == (["middle", "new"], 0)
    assert scene.tried(me("4"), "a") == (["high", "old", "middle", "new"], 0)


def test_a_large_important_pod_goes_where_small_ones_can_stay_beside_it_only_after_it() -> None:
    pods = [placed("large", "a", cpu="3", priority=5), placed("small", "a", cpu="1", priority=1)]
    assert Scene([make_node("a")], pods).tried(me("2"), "a") == (["large"], 0)


def test_pods_of_equal_or_higher_priority_are_no_victims() -> None:
    pods = [placed("equal", "a", cpu="3", priority=10), placed("low", "a", cpu="1", priority=9)]
    scene = Scene([make_node("a")], pods)
    assert scene.tried(me("1"), "a") == (["low"], 0)
    refused = scene.tried(me("2"), "a")
    assert isinstance(refused, Status)
    assert (refused.code, refused.reasons) == (Code.UNSCHEDULABLE, ("Insufficient cpu",))
    assert Scene([make_node("a")], pods[:1]).tried(me("2"), "a") is NO_VICTIMS


def test_pods_that_break_a_budget_are_spared_first() -> None:
    pods = [
        placed("guarded", "a", cpu="2", priority=1, labels={"app": "web"}),
        placed("free", "a", cpu="2", priority=5),
    ]
    assert Scene([make_node("a")], pods, budgets=[budget(0, {"app": "web"})]).tried(me(), "a") == (["free"], 0)
    assert Scene([make_node("a")], pods, budgets=[budget(1, {"app": "web"})]).tried(me(), "a") == (["guarded"], 0)


def test_victims_are_in_order_of_importance_again_after_the_budgets() -> None:
    pods = [
        placed("guarded", "a", cpu="2", priority=1, labels={"app": "web"}),
        placed("free", "a", cpu="2", priority=5),
    ]
    scene = Scene([make_node("a")], pods, budgets=[budget(0, {"app": "web"})])
    assert scene.tried(me("4"), "a") == (["free", "guarded"], 1)


def test_a_terminating_pod_can_be_a_victim() -> None:
    assert Scene([make_node("a")], [placed("going", "a", cpu="4", deleting=True)]).tried(me(), "a") == (["going"], 0)


def test_room_that_a_pod_of_equal_or_higher_priority_waits_for_is_not_taken() -> None:
    pods = [placed("p", "a", cpu="2"), placed("q", "a", cpu="2")]
    rival = make_pod("rival", cpu="2", priority=10, nominated="a")
    assert Scene([make_node("a")], pods, nominated=[rival]).tried(me("2"), "a") == (["p", "q"], 0)
    refused = Scene([make_node("a")], pods, nominated=[rival]).tried(me("3"), "a")
    assert isinstance(refused, Status)
    lower = make_pod("lower", cpu="2", priority=9, nominated="a")
    assert Scene([make_node("a")], pods, nominated=[lower]).tried(me("2"), "a") == (["q"], 0)


def test_a_dry_run_leaves_table_and_state_as_they_were() -> None:
    pods = [placed("p", "a", cpu="2"), placed("q", "a", cpu="2")]
    scene = Scene([make_node("a")], pods)
    table = scene.snapshot.nodes
    before = table.version, table.room.requested.copy(), list(table.pods_on("a"))
    first = scene.tried(me(), "a")
    assert scene.tried(me(), "a") == first
    assert (table.version, list(table.pods_on("a"))) == (before[0], before[2])
    assert (table.room.requested == before[1]).all()


def test_room_on_other_nodes_is_not_looked_at() -> None:
    """Two nodes with 2 free together: no victims are sought across them."""
    pods = [placed("p", "a", cpu="4", priority=10), placed("q", "b", cpu="1")]
    scene = Scene([make_node("a"), make_node("b", cpu="2")], pods)
    assert scene.tried(me("2"), "a") is NO_VICTIMS
    assert scene.tried(me("2"), "b") == (["q"], 0)


# ---- plugins with a state of their own

PLACED = StateKey[int]("PreFilterCounting")


class Counting(FilterOneNode):
    """A node takes a pod while fewer than `most` are on it, by its own count, which trials must keep up."""

    name: ClassVar[str] = "Counting"

    def __init__(self, most: int, *, fails: str = "") -> None:
        self._most = most
        self._fails = fails

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        state.write(PLACED, sum(len(cluster.nodes.pods_on(name)) for name in cluster.nodes.row_of))
        return PreFilterResult()

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status:
        state.write(PLACED, state.read(PLACED) + 1)
        return statuses.error("no way back") if self._fails == "add" else statuses.SUCCESS

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot) -> Status:
        state.write(PLACED, state.read(PLACED) - 1)
        return statuses.error("cannot") if self._fails == "remove" else statuses.SUCCESS

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(state.read(PLACED) >= self._most)

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable("too many")


def counting(most: int, *, fails: str = "") -> Profile:
    found = {entry.name: entry for entry in registry.IN_TREE}
    plugins = [registry.create(found[name]) for name in ("PrioritySort", "DefaultPreemption")]
    return resolve("counting", [Enabled(plugin=plugin) for plugin in (*plugins, Counting(most, fails=fails))])


def test_a_plugin_is_told_who_goes_and_who_comes_back() -> None:
    pods = [placed(f"p{number}", "a", priority=number) for number in range(4)]
    scene = Scene([make_node("a")], pods, use=counting(3))
    assert scene.tried(me(), "a") == (["p1", "p0"], 0)
    assert scene.tried(me(), "a") == (["p1", "p0"], 0), "the count of the cycle was changed"


def test_a_plugin_that_fails_makes_the_node_an_error() -> None:
    pods = [placed("p", "a")]
    removed = Scene([make_node("a")], pods, use=counting(1, fails="remove")).tried(me(), "a")
    assert isinstance(removed, Status)
    assert (removed.code, removed.plugin) == (Code.ERROR, "Counting")
    assert removed.message == 'running RemovePod on PreFilter plugin "Counting": cannot'
    added = Scene([make_node("a")], pods, use=counting(1, fails="add")).tried(me(), "a")
    assert isinstance(added, Status)
    assert added.message == 'running AddPod on PreFilter plugin "Counting": no way back'


# ---- the search


def searched(scene: Scene, pod: PodView, wanted: int) -> tuple[list[tuple[str, int]], list[str]]:
    """Candidates with their broken budgets, and the nodes that are none."""
    feasibility = scene.cycle.judge(pod)
    found = feasibility.diagnosis()
    run = dry_run(feasibility.state.clone(), pod, scene.snapshot, found)
    ended = run.search(np.array(potential_rows(scene.snapshot, found), dtype=np.intp), wanted)
    candidates = [(one.node, len(one.violating)) for one in ended.candidates]
    return candidates, [scene.snapshot.nodes.names[row] for row in ended.statuses]


def many(*guarded: str, nodes: str = "abcdef") -> Scene:
    """Nodes with one pod each; those named have a budget that allows nothing."""
    pods = [placed(f"on-{node}", node, cpu="4", labels={"guard": str(node in guarded)}) for node in nodes]
    return Scene([make_node(node) for node in nodes], pods, budgets=[budget(0, {"guard": "True"})])


def test_the_search_ends_with_enough_candidates() -> None:
    assert searched(many(), me(), 2) == ([("a", 0), ("b", 0)], [])
    assert len(searched(many(), me(), 6)[0]) == 6


def test_the_search_goes_on_until_one_candidate_breaks_no_budget() -> None:
    assert searched(many("a", "b", "c"), me(), 2) == ([("d", 0), ("a", 1), ("b", 1)], [])
    assert searched(many("b"), me(), 2) == ([("a", 0), ("b", 1)], [])
    assert searched(many(*"abcdef"), me(), 1) == ([("a", 1)], [])


def test_each_node_is_tried_on_the_state_of_the_cycle() -> None:
    pods = [placed(f"{node}{number}", node, priority=number) for node in "ab" for number in range(2)]
    scene = Scene([make_node("a"), make_node("b")], pods, use=counting(4))
    assert searched(scene, me(), 2) == ([("a", 0), ("b", 0)], [])


def test_where_there_is_no_candidate_each_node_is_told() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    pods = [placed("p", "a", cpu="3", priority=10), placed("q", "b", cpu="3"), placed("r", "c", cpu="3", priority=99)]
    scene = Scene(nodes, pods)
    assert searched(scene, me(), 3)[0] == [("b", 0)]
    assert isinstance(scene.tried(me(), "b"), tuple)
    assert searched(Scene(nodes, [*pods[::2], placed("q", "b", cpu="3", priority=10)]), me(), 3) == (
        [],
        ["a", "b", "c"],
    )
