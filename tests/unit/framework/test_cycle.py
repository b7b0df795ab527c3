"""One cycle: what is picked, what is said, and what plugins' answers and faults do to it."""

import itertools
from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
import pytest

from podyard.framework import status as statuses
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.diagnosis import NO_NODES
from podyard.framework.interfaces import PermitResult, PostFilterResult, PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.one_at_a_time import FilterAllNodes, FilterOneNode, ScoreAllNodes, ScoreOneNode
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.framework.builders import make_node, make_pod, on, profile, required, snapshot_of, term


def with_plugins(*plugins: Any) -> Profile:
    """NodeResourcesFit and these."""
    return resolve(
        "test", [Enabled(plugin=plugin) for plugin in (PrioritySort(), NodeResourcesFit(FitArgs()), *plugins)]
    )


def run(snapshot: Snapshot, pod: Any, *plugins: Any) -> CycleResult:
    return Cycle(with_plugins(*plugins), snapshot).run(pod)


def test_equal_nodes_are_picked_by_the_uid_alone() -> None:
    nodes = [make_node(f"n{number}") for number in range(20)]
    chosen = {
        uid: Cycle(profile(), snapshot_of(*nodes)).run(make_pod("p", uid=uid)).node for uid in map(str, range(40))
    }
    again = {uid: Cycle(profile(), snapshot_of(*nodes[::-1])).run(make_pod("q", uid=uid)).node for uid in chosen}
    assert chosen == again
    assert len(set(chosen.values())) > 10


def test_the_emptiest_node_wins_and_leads_the_scores() -> None:
    snapshot = snapshot_of(make_node("a", cpu="2"), make_node("b", cpu="8"), make_node("c", cpu="4"))
    result = Cycle(profile(), snapshot).run(make_pod("p", cpu="1"))
    assert result.node == "b"
    assert [score.node for score in result.scores] == ["b", "c", "a"]
    points = result.scores[0].plugins
    assert (points["TaintToleration"], points["NodeResourcesFit"]) == (300, 92)
    assert result.scores[0].total == sum(points.values())
    assert (result.nodes_total, result.nodes_feasible) == (3, 3)


def test_a_single_feasible_node_is_taken_without_scores() -> None:
    result = Cycle(profile(), snapshot_of(make_node("a", cpu="1"), make_node("b"))).run(make_pod("p", cpu="2"))
    assert (result.node, result.scores, result.nodes_feasible) == ("b", (), 1)
    assert [(one.plugin, one.reason, one.nodes) for one in result.rejections] == [
        ("NodeResourcesFit", "Insufficient cpu", 1)
    ]


def test_no_nodes_at_all_is_an_error() -> None:
    result = Cycle(profile(), snapshot_of()).run(make_pod("p"))
    assert (result.error, result.message, result.diagnosis) == (NO_NODES, NO_NODES, None)


def test_the_nominated_node_is_taken_at_once_if_it_will_do() -> None:
    nodes = make_node("a", cpu="64"), make_node("b"), make_node("c", cpu="1")
    assert Cycle(profile(), snapshot_of(*nodes)).run(make_pod("p", cpu="2", nominated="b")).node == "b"
    assert Cycle(profile(), snapshot_of(*nodes)).run(make_pod("p", cpu="2", nominated="c")).node == "a"
    assert Cycle(profile(), snapshot_of(*nodes)).run(make_pod("p", cpu="2", nominated="gone")).node == "a"


def test_nodes_outside_the_named_ones_are_counted_in_the_message() -> None:
    snapshot = snapshot_of(make_node("a", cpu="1"), make_node("b"), make_node("c"))
    pod = make_pod("p", cpu="2", spec=required(term("metadata.name", "In", "a", field=True)))
    result = Cycle(profile(), snapshot).run(pod)
    assert result.diagnosis is not None
    assert result.diagnosis.message() == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert result.diagnosis.unschedulable_plugins == ("NodeAffinity", "NodeResourcesFit")


def test_a_rejection_by_prefilter_is_said_once_for_all_nodes() -> None:
    conflict = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]}]
    result = Cycle(profile(), snapshot_of(make_node("a"), make_node("b"))).run(make_pod("p", spec=required(*conflict)))
    assert result.message.startswith("0/2 nodes are available: pod affinity terms conflict.")
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == ("NodeAffinity",)


class Narrow:
    """PreFilter that names nodes."""

    def __init__(self, name: str, *names: str) -> None:
        self.name = name
        self._names = frozenset(names)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        return PreFilterResult(node_names=self._names)


@pytest.mark.parametrize(
    ("plugins", "reason"),
    [
        pytest.param([Narrow("One")], "node(s) didn't satisfy plugin One", id="one"),
        pytest.param(
            [Narrow("Two", "a"), Narrow("One", "b")],
            "node(s) didn't satisfy plugin(s) [One Two] simultaneously",
            id="two",
        ),
    ],
)
def test_names_that_leave_no_node(plugins: list[Any], reason: str) -> None:
    result = run(snapshot_of(make_node("a"), make_node("b")), make_pod("p"), *plugins)
    assert result.message == f"0/2 nodes are available: {reason}."
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == tuple(sorted(plugin.name for plugin in plugins))


class Second(FilterOneNode):
    """Takes nodes with an even row only; sees no node that others rejected."""

    name: ClassVar[str] = "Second"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        self.asked.append(cluster.nodes.names[row])
        return 9 if row % 2 else 0

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable(f"code {code}")


def test_a_rejected_node_is_not_shown_to_the_next_plugin() -> None:
    plugin = Second()
    result = run(snapshot_of(make_node("a"), make_node("b"), make_node("c", cpu="1")), make_pod("p", cpu="2"), plugin)
    assert sorted(plugin.asked) == ["a", "b"]
    assert result.node == "a"
    assert {(one.plugin, one.reason) for one in result.rejections} == {
        ("Second", "code 9"),
        ("NodeResourcesFit", "Insufficient cpu"),
    }


class Broken(FilterAllNodes):
    """Fails while `bad`."""

    name: ClassVar[str] = "Broken"
    bad = True

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        if self.bad:
            raise ZeroDivisionError("division by zero")
        return np.zeros(len(rows), dtype=np.int64)

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.error("never")


def test_a_plugin_that_raises_fails_the_attempt_under_its_name_and_leaves_nothing_behind() -> None:
    plugin = Broken()
    cycle = Cycle(with_plugins(plugin), snapshot_of(make_node("a"), make_node("b")))
    result = cycle.run(make_pod("p"))
    assert result.error == 'running "Broken" filter plugin: ZeroDivisionError: division by zero'
    assert (result.node, result.diagnosis) == ("", None)
    plugin.bad = False
    assert cycle.run(make_pod("p")).node


class Failing(FilterOneNode):
    """Cannot tell about one node."""

    name: ClassVar[str] = "Failing"

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(cluster.nodes.names[row] == "b")

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.error("disk on fire")


def test_an_error_for_one_node_is_an_error_of_the_attempt() -> None:
    result = run(snapshot_of(make_node("a"), make_node("b")), make_pod("p"), Failing())
    assert result.error == 'running "Failing" filter plugin: disk on fire'


class Liking(ScoreOneNode):
    """As many points as the node's cpu."""

    name: ClassVar[str] = "Liking"

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(cluster.nodes.room.allocatable[0, row]) // 1000


def test_points_without_normalisation_must_be_in_range() -> None:
    fine = snapshot_of(make_node("a", cpu="99"), make_node("b", cpu="98"))
    assert run(fine, make_pod("p"), Liking()).node == "a"
    result = run(snapshot_of(make_node("a", cpu="101"), make_node("b")), make_pod("p"), Liking())
    assert "Liking" in result.error
    assert "invalid score 101" in result.error


class Crowd(ScoreAllNodes):
    """Depends on all nodes: as many points as there are nodes with pods."""

    name: ClassVar[str] = "Crowd"
    scope: ClassVar[Scope] = "cluster"

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return np.full(len(rows), np.count_nonzero(cluster.nodes.pod_count), dtype=np.int64)


def test_a_plugin_of_cluster_scope_is_asked_again_for_all_rows() -> None:
    snapshot = snapshot_of(make_node("a"), make_node("b"), make_node("c"))
    cycle = Cycle(with_plugins(Crowd()), snapshot)
    for expected in range(3):
        result = cycle.run(make_pod("p"))
        assert {score.plugins["Crowd"] for score in result.scores} == {expected}
        snapshot.nodes.place(on(make_pod(f"q{expected}"), "abc"[expected]))


class Asked:
    """Takes nodes of 2 CPUs or more, and likes those of 4; notes which it is asked about, one by one."""

    name: ClassVar[str] = "Asked"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return (cluster.nodes.room.allocatable[0, rows] < 2000).astype(np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        self.filtered.append(cluster.nodes.names[row])
        return int(cluster.nodes.room.allocatable.item(0, row) < 2000)

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable("small")

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return np.minimum(cluster.nodes.room.allocatable[0, rows] // 1000, 4)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        self.scored.append(cluster.nodes.names[row])
        return min(cluster.nodes.room.allocatable.item(0, row) // 1000, 4)


@pytest.mark.parametrize(("scope", "again"), [("row", ["a"]), ("node", [])])
def test_what_is_placed_on_a_node_is_nothing_to_a_plugin_of_node_scope(scope: Scope, again: list[str]) -> None:
    asked = Asked(scope)
    snapshot = snapshot_of(make_node("a", cpu="8"), make_node("b", cpu="8"), make_node("c", cpu="8"))
    cycle = Cycle(with_plugins(asked), snapshot)
    cycle.run(make_pod("p"))
    snapshot.nodes.place(on(make_pod("q"), "a"))
    cycle.run(make_pod("p"))
    assert (asked.filtered, asked.scored) == (again, again)


def test_a_plugin_of_node_scope_is_asked_again_about_a_node_that_is_another() -> None:
    asked = Asked("node")
    snapshot = snapshot_of(make_node("a", cpu="8"), make_node("b", cpu="8"), make_node("c", cpu="8"))
    cycle = Cycle(with_plugins(asked), snapshot)
    cycle.run(make_pod("p"))
    snapshot.nodes.set_node(make_node("b", cpu="3"))
    snapshot.nodes.place(on(make_pod("q"), "b"))
    result = cycle.run(make_pod("p"))
    assert (asked.filtered, asked.scored) == (["b"], ["b"])
    assert {score.node: score.plugins["Asked"] for score in result.scores} == {"a": 4, "b": 3, "c": 4}
    snapshot.nodes.set_node(make_node("b", cpu="1"))
    assert cycle.run(make_pod("p")).nodes_feasible == 2
    snapshot.nodes.remove_node("b")
    snapshot.nodes.set_node(make_node("d", cpu="3"))  # in the row of b
    assert {score.node: score.plugins["Asked"] for score in cycle.run(make_pod("p")).scores} == {"a": 4, "c": 4, "d": 3}


class Unsigned(FilterOneNode):
    """Reads the pod's name and does not say so: its pods must share nothing."""

    name: ClassVar[str] = "Unsigned"

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(cluster.nodes.names[row] != pod.name)

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable("other name")


def test_pods_share_nothing_if_a_plugin_does_not_say_what_it_reads() -> None:
    cycle = Cycle(with_plugins(Unsigned()), snapshot_of(make_node("a"), make_node("b")))
    assert [cycle.run(make_pod(name)).node for name in ("a", "b", "a")] == ["a", "b", "a"]


KEY = StateKey[list[str]]("log")


class Reserving:
    """Reserve and Permit that log."""

    def __init__(
        self, name: str, log: list[str], *, reserve: Status = statuses.SUCCESS, permit: Status = statuses.SUCCESS
    ):
        self.name = name
        self._log = log
        self._reserve = reserve
        self._permit = permit

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        self._log.append(f"reserve {self.name}")
        return self._reserve

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        self._log.append(f"unreserve {self.name}")

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        self._log.append(f"permit {self.name}")
        return PermitResult(status=self._permit, timeout_s=3.0)


def confirmed(*plugins: Reserving) -> tuple[bool, CycleResult]:
    cycle = Cycle(with_plugins(*plugins), snapshot_of(make_node("a")))
    pod = make_pod("p")
    result = cycle.run(pod)
    return cycle.confirm(pod, result), result


def test_what_was_reserved_is_unreserved_in_reverse_when_permit_says_no() -> None:
    log: list[str] = []
    no = statuses.unschedulable("not yet")
    ok, result = confirmed(Reserving("A", log), Reserving("B", log, permit=no))
    assert not ok
    assert log == ["reserve A", "reserve B", "permit A", "permit B", "unreserve B", "unreserve A"]
    assert result.rejection == no.by("B")
    assert (result.node, result.message) == ("", "not yet")


def test_a_failed_reserve_unreserves_all_and_asks_no_further() -> None:
    log: list[str] = []
    ok, result = confirmed(Reserving("A", log, reserve=statuses.error("boom")), Reserving("B", log))
    assert not ok
    assert log == ["reserve A", "unreserve B", "unreserve A"]
    assert (result.error, result.rejection) == ("boom", None)


def test_waits_are_handed_to_the_caller() -> None:
    ok, result = confirmed(Reserving("A", [], permit=Status(code=Code.WAIT)), Reserving("B", []))
    assert ok
    assert (result.node, result.waits) == ("a", {"A": 3.0})


class Preempting:
    """PostFilter that nominates."""

    def __init__(self, name: str, answer: PostFilterResult) -> None:
        self.name = name
        self._answer = answer

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Any) -> PostFilterResult:
        return self._answer


def test_postfilter_adds_to_the_message_or_nominates() -> None:
    nothing = Preempting("Nothing", PostFilterResult(status=statuses.unschedulable("no new claims to deallocate")))
    found = Preempting("Found", PostFilterResult(status=statuses.SUCCESS, nominated_node="a"))
    pod = make_pod("p", cpu="64")
    said = run(snapshot_of(make_node("a")), pod, nothing)
    assert said.message == "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    assert said.nominated_node is None
    helped = run(snapshot_of(make_node("a")), pod, nothing, found)
    assert helped.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert helped.nominated_node == "a"


def test_an_error_of_postfilter_is_all_it_says_and_the_pod_is_parked_all_the_same() -> None:
    nothing = Preempting("Nothing", PostFilterResult(status=statuses.unschedulable("nothing to do")))
    lost = Preempting("Lost", PostFilterResult(status=statuses.error("not found")))
    found = Preempting("Found", PostFilterResult(status=statuses.SUCCESS, nominated_node="a"))
    result = run(snapshot_of(make_node("a")), make_pod("p", cpu="64"), nothing, lost, found)
    assert (result.error, result.nominated_node) == ("", None)
    assert result.message == "0/1 nodes are available: 1 Insufficient cpu. not found"
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == ("NodeResourcesFit",)


def test_extension_points_are_timed_in_order() -> None:
    ticks = iter(range(100))
    cycle = Cycle(profile(), snapshot_of(make_node("a"), make_node("b")), lambda: float(next(ticks)))
    times = cycle.run(make_pod("p")).times
    assert [one.point for one in times] == ["PreFilter", "Filter", "PreScore", "Score"]
    assert all(before.end <= after.start for before, after in itertools.pairwise(times))
