"""What is kept and brought up to date is what a fresh computation gives, whatever changed: rows, tokens,
nominations, feasible nodes.

With plugins that change their mind (`moody`) between those of the default profile that look at one node only.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle
from podyard.framework.feasibility import Feasibility
from podyard.framework.one_node import filter_one
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.scoring import Scoreboard
from podyard.framework.snapshot import Snapshot
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.plugins.taint_toleration.plugin import TaintToleration
from tests.unit.framework.builders import make_node, make_pod, on, table_of
from tests.unit.framework.moody import Crowd, Liking, Mood, Ranked, Sized

NAMES = tuple(f"n{number}" for number in range(20))
"""More than are judged, or told to have moved, row by row."""


class World:
    """A table, nominations, and plugins whose minds can be changed."""

    def __init__(self) -> None:
        self.mood, self.liking, self.sized = Mood(), Liking(), Sized()
        self.table = table_of()
        self.nominated = Nominations()
        self.snapshot = Snapshot(self.table, nominated=self.nominated)
        self._pods = 0

    def profile(self) -> Profile:
        plugins: tuple[Any, ...] = (
            PrioritySort(), TaintToleration(), self.mood, NodeResourcesFit(FitArgs()), Crowd(), self.liking, self.sized, Ranked(),
        )  # fmt: skip
        return resolve("moody", [Enabled(plugin=plugin, weight=2) for plugin in plugins])

    def rival(self, number: int, pod: PodView) -> PodView:
        """A pod like `pod`, that waits where it is nominated to."""
        name = f"rival-{number}"
        cpu = pod.stored.spec.containers[0].resources.requests["cpu"]
        return make_pod(name, cpu=cpu, priority=pod.priority, nominated=self.nominated.node_of(f"uid-{name}"))

    def carry_out(self, step: tuple[Any, ...]) -> None:
        """One change."""
        match step:
            case ("node", name, cpu, taint):
                taints = (
                    [("soft", "", "PreferNoSchedule")] if taint == 1 else [("hard", "", "NoSchedule")] * (taint == 2)
                )
                self.table.set_node(make_node(name, cpu=str(cpu), taints=taints))
            case ("gone", name):
                self.table.remove_node(name)
            case ("pod", name, cpu):
                self._pods += 1
                self.table.place(on(make_pod(f"placed-{self._pods}", cpu=str(cpu)), name))
            case ("ends", number):
                self.table.remove(f"uid-placed-{number}")
            case ("mood", number):
                self.mood.mood = number
            case ("taste", number):
                self.liking.taste = number
            case ("scale", number):
                self.sized.scale = number
            case ("wave", cpu):
                for name in NAMES:
                    self.carry_out(("pod", name, cpu))
            case ("nominate", number, name, priority):
                pod = make_pod(f"rival-{number}", cpu="1", priority=priority, nominated=name)
                self.nominated.follow(pod.uid, pod)
            case ("forget", number):
                self.nominated.follow(f"uid-rival-{number}", None)
            case ("assume", number, name):
                self.table.place(on(make_pod(f"rival-{number}", cpu="1"), name))
            case ("keep", number, name):
                self.table.keep(on(make_pod(f"rival-{number}", cpu="1"), name))
            case ("unkeep", number):
                self.table.unkeep(f"uid-rival-{number}")
            case _:
                raise AssertionError(step)


names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("pod"), names, st.integers(0, 2)),
    st.tuples(st.just("pod"), names, st.integers(0, 2)),
    st.tuples(st.just("node"), names, st.integers(1, 5), st.integers(0, 2)),
    st.tuples(st.just("gone"), names),
    st.tuples(st.just("ends"), st.integers(1, 12)),
    st.tuples(st.just("mood"), st.integers(0, 15)),
    st.tuples(st.just("taste"), st.integers(0, 9)),
    st.tuples(st.just("scale"), st.integers(1, 4)),
    st.tuples(st.just("wave"), st.integers(0, 1)),
    st.tuples(st.just("nominate"), st.integers(0, 3), names, st.integers(0, 3)),
    st.tuples(st.just("forget"), st.integers(0, 3)),
    st.tuples(st.just("assume"), st.integers(0, 3), names),
    st.tuples(st.just("keep"), st.integers(0, 3), names),
    st.tuples(st.just("unkeep"), st.integers(0, 3)),
)
nodes = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=len(NAMES), max_size=len(NAMES))
pods = st.builds(
    lambda cpu, priority, nominated: make_pod("incoming", cpu=str(cpu), priority=priority, nominated=nominated),
    st.integers(0, 2),
    st.sampled_from((0, 2)),
    st.sampled_from(("", "", "n1", "n3", "elsewhere")),
)


askers = st.one_of(st.none(), st.none(), st.integers(0, 3))
"""Who asks next: one of those who may be nominated, or `None`: nobody of them."""


@settings(max_examples=300, deadline=None)
@given(sizes=nodes, rounds=st.lists(st.tuples(askers, st.lists(steps, max_size=4)), min_size=1, max_size=8), pod=pods)
def test_kept_results_are_those_computed_from_scratch_whoever_of_the_signature_asks(
    sizes: list[tuple[int, int]], rounds: list[tuple[int | None, list[tuple[Any, ...]]]], pod: PodView
) -> None:
    world = World()
    for name, (cpu, taint) in zip(NAMES, sizes, strict=True):
        world.carry_out(("node", name, cpu, taint))
    profile = world.profile()
    kept = Feasibility(profile, pod, world.snapshot)
    board = Scoreboard(profile, kept, world.snapshot)
    for asker, changes in [(None, []), *rounds]:
        for change in changes:
            world.carry_out(change)
        check(world, profile, pod if asker is None else world.rival(asker, pod), kept, board)


def check(world: World, profile: Profile, pod: PodView, kept: Feasibility, board: Scoreboard) -> None:
    """Everything that can be read of the kept results."""
    kept.refresh(pod)
    snapshot = Snapshot(world.table, nominated=world.nominated)
    assert world.snapshot.rivals.by_row(pod) == snapshot.rivals.by_row(pod)
    fresh = Feasibility(profile, pod, snapshot)
    fresh.refresh(pod)
    rows = world.table.row_of
    assert {name: kept.status(row) for name, row in rows.items()} == {
        name: fresh.status(row) for name, row in rows.items()
    }
    assert kept.mask.tolist() == fresh.mask.tolist()
    assert kept.feasible.tolist() == fresh.feasible.tolist()
    assert kept.rejections() == fresh.rejections()
    assert kept.takes_nominated(pod) == fresh.takes_nominated(pod)
    before, after = kept.diagnosis(), fresh.diagnosis()
    assert before.message() == after.message()
    assert before.unschedulable_plugins == after.unschedulable_plugins
    assert before.codes.tolist() == after.codes.tolist()
    assert {name: before.code(row) for name, row in rows.items()} == {
        name: 0 if status is None else status.code for name, row in rows.items() for status in [kept.status(row)]
    }
    if fresh.feasible_count:
        board.refresh(pod)
        again = Scoreboard(profile, fresh, snapshot)
        again.refresh(pod)
        feasible = fresh.feasible.tolist()
        assert {row: board.points(row) for row in feasible} == {row: again.points(row) for row in feasible}
        assert {row: board.total(row) for row in rows.values()} == {row: again.total(row) for row in rows.values()}
        assert all(board.total(row) == sum(board.points(row).values()) for row in feasible)
        assert board.best() == again.best()
        assert board.leaders(board.best_at(0), 3) == again.leaders(again.best_at(0), 3)


def test_who_is_placed_elsewhere_is_no_rival_any_more() -> None:
    world, pod = World(), make_pod("p")
    for step in ("node", "n0", 4, 0), ("node", "n1", 4, 0), ("nominate", 0, "n0", 1):
        world.carry_out(step)
    assert [one.name for one in world.snapshot.rivals.by_row(pod)[world.table.row_of["n0"]]] == ["rival-0"]
    world.carry_out(("assume", 0, "n1"))
    assert world.snapshot.rivals.by_row(pod) == {}


@settings(max_examples=100, deadline=None)
@given(sizes=nodes, changes=st.lists(steps, max_size=12), pod=pods)
def test_one_node_is_judged_as_all_nodes_are_with_nominated_pods(
    sizes: list[tuple[int, int]], changes: list[tuple[Any, ...]], pod: PodView
) -> None:
    world = World()
    for name, (cpu, taint) in zip(NAMES, sizes, strict=True):
        world.carry_out(("node", name, cpu, taint))
    for change in changes:
        world.carry_out(change)
    profile = world.profile()
    feasibility = Feasibility(profile, pod, world.snapshot)
    feasibility.refresh(pod)
    own = world.table.row_of.get(pod.nominated_node)
    for name, row in world.table.row_of.items():
        alone, expected = filter_one(profile, name, pod, world.snapshot), feasibility.status(row)
        if expected is not None and expected.plugin == "" and own is not None:
            # its reason also lists who rejects the pod's own nominated node
            assert alone.code == expected.code
        elif row != own or feasibility.pre_filtered.node_names is None:
            assert (None if alone.ok else alone) == expected, name


@settings(max_examples=100, deadline=None)
@given(
    sizes=nodes,
    rounds=st.lists(st.tuples(st.lists(steps, max_size=2), st.integers(0, 2), st.integers(0, 3)), max_size=8),
)
def test_pods_that_share_results_get_the_node_that_they_would_get_alone(
    sizes: list[tuple[int, int]], rounds: list[tuple[list[tuple[Any, ...]], int, int]]
) -> None:
    world = World()
    for name, (cpu, taint) in zip(NAMES, sizes, strict=True):
        world.carry_out(("node", name, cpu, taint))
    profile = world.profile()
    shared = Cycle(profile, world.snapshot)
    for number, (changes, cpu, priority) in enumerate(rounds):
        for change in changes:
            world.carry_out(change)
        pod = make_pod(f"p{number}", cpu=str(cpu), priority=priority)
        result, alone = shared.run(pod), Cycle(profile, world.snapshot).run(pod)
        assert (result.node, result.scores, result.message) == (alone.node, alone.scores, alone.message)
        if result.node:
            world.table.place(on(pod, result.node))


def test_points_that_were_forgotten_while_a_node_was_not_feasible_are_asked_for_again() -> None:
    world = World()
    for number, name in enumerate(NAMES):
        world.carry_out(("node", name, number % 5 + 1, 0))
    profile, pod = world.profile(), make_pod("p")
    kept = Feasibility(profile, pod, world.snapshot)
    board = Scoreboard(profile, kept, world.snapshot)
    for change in (("mood", 0), ("mood", 6), ("scale", 3), ("mood", 0), ("scale", 2), ("mood", 6), ("mood", 7)):
        world.carry_out(change)
        check(world, profile, pod, kept, board)


@pytest.mark.parametrize("many", [False, True], ids=["few rows", "many rows"])
def test_a_plugin_that_did_not_change_its_mind_is_asked_for_changed_rows_only(*, many: bool) -> None:
    world = World()
    for name in NAMES:
        world.carry_out(("node", name, 4, 0))
    asked: list[str] = []

    class Counting(Mood):
        name = "Counting"
        scope = "row"

        def filter_one(self, state: Any, pod: Any, cluster: Snapshot, row: int) -> int:
            asked.append(cluster.nodes.names[row])
            return 0

    profile = resolve("test", [Enabled(plugin=plugin) for plugin in (PrioritySort(), Counting(), world.mood)])
    pod = make_pod("p")
    feasibility = Feasibility(profile, pod, world.snapshot)
    feasibility.refresh(pod)
    asked.clear()
    world.carry_out(("mood", 6))
    for name in NAMES if many else NAMES[:2]:
        world.carry_out(("pod", name, 0))
    feasibility.refresh(pod)
    assert sorted(asked) == sorted(NAMES if many else NAMES[:2])
    asked.clear()
    world.carry_out(("mood", 7))
    feasibility.refresh(pod)
    assert asked == []
