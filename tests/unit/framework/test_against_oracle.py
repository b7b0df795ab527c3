"""The vectorised code against a plain reading of the rules, and kept results against fresh ones, on random
clusters."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.framework import scoring
from podyard.framework.cycle import Cycle
from podyard.framework.feasibility import NOT_JUDGED, Feasibility
from podyard.framework.one_node import filter_one
from podyard.framework.scoring import Scoreboard
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from tests.unit.framework import builders, clusters, oracle

PROFILE = builders.profile_of(*oracle.PLUGINS)
World = tuple[dict[str, oracle.Manifest], dict[str, list[oracle.Manifest]], Snapshot]


class Cluster:
    """One random cluster twice: for the oracle and for the table."""

    def __init__(self) -> None:
        self.nodes: dict[str, oracle.Manifest] = {}
        self.placed: dict[str, dict[str, oracle.Manifest]] = {}
        self.snapshot = Snapshot(NodeTable())
        self._pods = 0

    def set_node(self, node: oracle.Manifest) -> None:
        self.nodes[node["name"]] = node
        self.snapshot.nodes.set_node(clusters.node_object(node))

    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.snapshot.nodes.remove_node(name)

    def place(self, pod: oracle.Manifest, node: str) -> None:
        self._pods += 1
        view = clusters.pod_view(pod, f"placed{self._pods}")
        self.placed.setdefault(node, {})[view.uid] = pod
        self.snapshot.nodes.place(builders.on(view, node))

    def unplace(self, choice: int) -> None:
        everybody = [(node, uid) for node, pods in self.placed.items() for uid in pods]
        if everybody:
            node, uid = everybody[choice % len(everybody)]
            del self.placed[node][uid]
            self.snapshot.nodes.remove(uid)

    def on(self, name: str) -> list[oracle.Manifest]:
        return list(self.placed.get(name, {}).values())


steps = st.one_of(
    st.sampled_from(clusters.NAMES).flatmap(clusters.nodes).map(lambda node: ("node", node)),
    st.sampled_from(clusters.NAMES).map(lambda name: ("gone", name)),
    st.tuples(st.just("pod"), clusters.pods(), st.sampled_from(clusters.NAMES)),
    st.tuples(st.just("ends"), st.integers(0, 100)),
)


def carry_out(cluster: Cluster, step: Any) -> None:
    match step:
        case ("node", node):
            cluster.set_node(node)
        case ("gone", name):
            cluster.remove_node(name)
        case ("pod", pod, name):
            cluster.place(pod, name)
        case (_, choice):
            cluster.unplace(choice)


def as_verdict(status: Status | None) -> oracle.Verdict:
    return None if status is None else (status.plugin, status.code.label, tuple(sorted(status.reasons)))


def check_filter(cluster: Cluster, pod: oracle.Manifest, feasibility: Feasibility) -> list[oracle.Manifest]:
    """Every node's verdict is the oracle's; returns the feasible ones."""
    table = cluster.snapshot.nodes
    feasible: list[oracle.Manifest] = []
    for name, node in cluster.nodes.items():
        row = table.row_of[name]
        if feasibility.rejector(row)[0] == NOT_JUDGED:
            names = feasibility.pre_filtered.node_names
            assert not feasibility.pre_filtered.status.ok or (names is not None and name not in names)
            assert oracle.verdict(node, pod, cluster.on(name)) is not None
            continue
        expected = oracle.verdict(node, pod, cluster.on(name))
        assert as_verdict(feasibility.status(row)) == expected, name
        if expected is None:
            feasible.append(node)
    assert feasibility.feasible_count == len(feasible)
    return feasible


@settings(max_examples=200, deadline=None)
@given(history=st.lists(steps, max_size=12), pod=clusters.pods())
def test_filter_and_scores_are_those_of_the_plain_reading(history: list[Any], pod: oracle.Manifest) -> None:
    cluster = Cluster()
    for step in history:
        carry_out(cluster, step)
    view = clusters.pod_view(pod, "incoming")
    feasibility = Feasibility(PROFILE, view, cluster.snapshot)
    feasibility.refresh(view)
    feasible = check_filter(cluster, pod, feasibility)
    if not feasible:
        return
    scoreboard = Scoreboard(PROFILE, feasibility, cluster.snapshot)
    scoreboard.refresh(view)
    expected = oracle.totals(feasible, pod, {node["name"]: cluster.on(node["name"]) for node in feasible})
    rows = cluster.snapshot.nodes.row_of
    assert {name: scoreboard.total(rows[name]) for name in expected} == expected
    best = sorted(name for name, total in expected.items() if total == max(expected.values()))
    assert [cluster.snapshot.nodes.names[row] for row in scoreboard.best()] == best


@settings(max_examples=200, deadline=None)
@given(history=st.lists(steps, max_size=12), pod=clusters.pods())
def test_one_node_is_judged_as_all_nodes_are(history: list[Any], pod: oracle.Manifest) -> None:
    cluster = Cluster()
    for step in history:
        carry_out(cluster, step)
    view = clusters.pod_view(pod, "incoming")
    feasibility = Feasibility(PROFILE, view, cluster.snapshot)
    feasibility.refresh(view)
    for name, row in cluster.snapshot.nodes.row_of.items():
        alone = filter_one(PROFILE, name, view, cluster.snapshot)
        expected = feasibility.status(row)
        assert (None if alone.ok else alone) == expected, name


def check_kept_results(cluster: Cluster, pod: oracle.Manifest, rounds: list[list[Any]]) -> None:
    """After every round, what was kept and brought up to date is what a fresh computation gives."""
    view = clusters.pod_view(pod, "incoming")
    kept = Feasibility(PROFILE, view, cluster.snapshot)
    board = Scoreboard(PROFILE, kept, cluster.snapshot)
    for steps_between in [[], *rounds]:
        for step in steps_between:
            carry_out(cluster, step)
        kept.refresh(view)
        fresh = Feasibility(PROFILE, view, cluster.snapshot)
        fresh.refresh(view)
        nodes = cluster.snapshot.nodes
        assert {name: kept.status(row) for name, row in nodes.row_of.items()} == {
            name: fresh.status(row) for name, row in nodes.row_of.items()
        }
        assert kept.mask.tolist() == fresh.mask.tolist()
        assert kept.feasible_count == fresh.feasible_count
        assert kept.diagnosis().message() == fresh.diagnosis().message()
        assert {(r.plugin, r.reason, r.unresolvable): r.nodes for r in kept.rejections()} == {
            (r.plugin, r.reason, r.unresolvable): r.nodes for r in fresh.rejections()
        }
        if fresh.feasible_count:
            board.refresh(view)
            again = Scoreboard(PROFILE, fresh, cluster.snapshot)
            again.refresh(view)
            assert all(board.total(row) == again.total(row) for row in nodes.row_of.values())
            assert all(board.points(row) == again.points(row) for row in fresh.feasible.tolist())
            assert board.best() == again.best()
            assert [board.best_at(index) for index in range(board.best_count())] == board.best()
            row = board.best_at(board.best_count() // 2)
            others = sorted({*fresh.feasible.tolist()} - {row}, key=lambda one: (-board.total(one), nodes.names[one]))
            expected = tuple([board.node_score(one) for one in (row, *others[:2])])
            assert board.leaders(row, 3) == again.leaders(row, 3) == expected


@settings(max_examples=150, deadline=None)
@given(first=st.lists(steps, max_size=8), rounds=st.lists(st.lists(steps, max_size=4), max_size=6), pod=clusters.pods())
def test_kept_results_are_those_computed_from_scratch(
    first: list[Any], rounds: list[list[Any]], pod: oracle.Manifest
) -> None:
    cluster = Cluster()
    for step in first:
        carry_out(cluster, step)
    check_kept_results(cluster, pod, rounds)


@pytest.fixture(scope="module", params=[scoring.MANY_BEST, 0], ids=["best are listed", "best are a mask"])
def many_best(request: pytest.FixtureRequest) -> Iterator[None]:
    """How the best nodes are held, of few and of many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "MANY_BEST", request.param)
        patch.setattr(scoring, "BLOCK", 2)
        yield


roomy = st.sampled_from(clusters.NAMES).flatmap(clusters.roomy_nodes)
small_steps = st.one_of(
    st.tuples(st.just("pod"), clusters.modest_pods(), st.sampled_from(clusters.NAMES)),
    st.tuples(st.just("pod"), clusters.modest_pods(), st.sampled_from(clusters.NAMES)),
    st.tuples(st.just("ends"), st.integers(0, 100)),
    roomy.map(lambda node: ("node", node)),
)


@pytest.mark.usefixtures("many_best")
@settings(max_examples=200, deadline=None)
@given(
    nodes=st.tuples(*[clusters.roomy_nodes(name) for name in clusters.NAMES]),
    rounds=st.lists(st.lists(small_steps, max_size=3), min_size=1, max_size=8),
    pod=clusters.modest_pods(),
)
def test_kept_points_are_those_computed_from_scratch(
    nodes: tuple[oracle.Manifest, ...], rounds: list[list[Any]], pod: oracle.Manifest
) -> None:
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(node)
    check_kept_results(cluster, pod, rounds)


@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, max_size=10), pods=st.lists(clusters.pods(), min_size=1, max_size=6))
def test_no_node_is_overcommitted_when_what_is_chosen_is_assumed(
    history: list[Any], pods: list[oracle.Manifest]
) -> None:
    cluster = Cluster()
    for step in history:
        carry_out(cluster, step)
    cycle = Cycle(PROFILE, cluster.snapshot)
    for number, pod in enumerate([*pods, *pods]):
        view = clusters.pod_view(pod, f"p{number}")
        node = cycle.run(view).node
        if node:
            assert oracle.verdict(cluster.nodes[node], pod, cluster.on(node)) is None
            cluster.place(pod, node)
