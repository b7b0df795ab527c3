"""The rules one by one: who matters, what budgets say, which node is taken."""

import random

import pytest

from podyard.plugins.default_preemption import choice, importance
from podyard.plugins.default_preemption.args import Args
from podyard.plugins.default_preemption.budgets import Budgets
from podyard.plugins.default_preemption.choice import Candidate
from tests.unit.plugins.default_preemption.scenes import PREEMPTED, budget, placed

SEED = 7


def order(*pods: importance.PlacedPod) -> list[str]:
    return [pod.name for pod in importance.most_important_first(pods)]


# ---- importance


def test_priority_counts_before_the_start_and_equal_pods_keep_their_order() -> None:
    old_low = placed("old-low", "n", priority=1, start="00:01")
    new_high = placed("new-high", "n", priority=2, start="09:00")
    old_high = placed("old-high", "n", priority=2, start="00:02")
    same_one, same_two = (placed(name, "n", priority=1, start="00:30") for name in ("one", "two"))
    assert order(same_one, old_low, new_high, same_two, old_high) == ["old-high", "new-high", "old-low", "one", "two"]


def test_a_pod_without_a_start_time_counts_as_started_now() -> None:
    assert order(placed("unstarted", "n"), placed("started", "n", start="59:59")) == ["started", "unstarted"]


def test_pods_without_a_start_time_started_in_the_order_in_which_they_were_placed() -> None:
    assert order(placed("late", "n", decided_at=9), placed("early", "n", decided_at=3)) == ["early", "late"]


def test_a_start_time_that_is_none_counts_as_missing() -> None:
    assert importance.start_time(placed("p", "n", start="nonsense", decided_at=4)) == (float("inf"), 4)


def test_the_earliest_start_is_that_of_the_victims_of_highest_priority() -> None:
    victims = [placed("a", "n", priority=5, start="02:00"), placed("b", "n", priority=5, start="01:30")]
    low = placed("c", "n", priority=1, start="00:00")
    assert importance.earliest_start([*victims, low]) == importance.start_time(victims[1])


@pytest.mark.parametrize(
    ("deleting", "conditions", "expected"),
    [
        pytest.param(True, (PREEMPTED,), True, id="preempted"),
        pytest.param(False, (PREEMPTED,), False, id="not being deleted"),
        pytest.param(True, (), False, id="deleted plainly"),
        pytest.param(True, (("DisruptionTarget", "True", "EvictionByEvictionAPI"),), False, id="evicted"),
        pytest.param(True, (("DisruptionTarget", "False", PREEMPTED[2]), PREEMPTED), False, id="the first one decides"),
        pytest.param(True, (("Ready", "True", ""), PREEMPTED), True, id="other conditions do not count"),
    ],
)
def test_only_a_deletion_by_preemption_is_waited_for(
    deleting: bool, conditions: tuple[tuple[str, str, str], ...], expected: bool
) -> None:
    pod = placed("p", "n", deleting=deleting, conditions=conditions)
    assert importance.terminating_by_preemption(pod) is expected


# ---- budgets


def split(budgets: Budgets, *pods: importance.PlacedPod) -> tuple[list[str], list[str]]:
    found = budgets.split(pods)
    return [pod.name for pod in found.violating], [pod.name for pod in found.others]


def web(name: str, **more: str) -> importance.PlacedPod:
    return placed(name, "n", labels={"app": "web", **more})


def test_pods_share_a_budget_and_the_important_ones_use_it_up() -> None:
    assert split(Budgets([budget(2, {"app": "web"})]), web("a"), web("b"), web("c")) == (["c"], ["a", "b"])


def test_each_question_begins_with_the_whole_budget() -> None:
    budgets = Budgets([budget(1, {"app": "web"})])
    assert split(budgets, web("a")) == split(budgets, web("a")) == ([], ["a"])


def test_a_pod_whose_eviction_is_counted_already_is_no_violation_and_costs_nothing() -> None:
    budgets = Budgets([budget(1, {"app": "web"}, disrupted=["a"])])
    assert split(budgets, web("a"), web("b"), web("c")) == (["c"], ["a", "b"])


def test_a_pod_may_overdraw_several_budgets_and_counts_once() -> None:
    budgets = Budgets([budget(0, {"app": "web"}), budget(0, {"tier": "front"})])
    assert split(budgets, web("a", tier="front")) == (["a"], [])


def test_every_budget_of_a_pod_is_drawn_on_even_if_one_is_overdrawn() -> None:
    budgets = Budgets([budget(0, {"app": "web"}), budget(1, {"tier": "front"})])
    front = placed("front", "n", labels={"tier": "front"})
    assert split(budgets, web("both", tier="front"), front) == (["both", "front"], [])


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(budget(0, {}), id="empty selector"),
        pytest.param(budget(0, None), id="no selector"),
        pytest.param(budget(0, {"app": "web"}, namespace="other"), id="another namespace"),
        pytest.param(budget(0, {"app": "web"}, operator="Near"), id="bad selector"),
        pytest.param(budget(0, {"app": "api"}), id="other labels"),
    ],
)
def test_budgets_that_do_not_count(useless: object) -> None:
    assert split(Budgets([useless]), web("a")) == ([], ["a"])  # pyright: ignore[reportArgumentType] - a budget


def test_a_pod_without_labels_is_in_no_budget() -> None:
    absent = budget(0, {}, operator="DoesNotExist")
    assert split(Budgets([absent]), placed("bare", "n"), web("a")) == (["a"], ["bare"])


# ---- choice


def candidate(node: str, *victims: importance.PlacedPod, violating: int = 0) -> Candidate:
    return Candidate(node=node, victims=victims, violations=violating)


def low(name: str, priority: int = 0, start: str = "10:00") -> importance.PlacedPod:
    return placed(name, "n", priority=priority, start=start)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(candidate("a", low("p", 9)), candidate("b", low("q", 1), violating=1), id="broken budgets first"),
        pytest.param(candidate("a", low("p", 1), low("p2", 1)), candidate("b", low("q", 2)), id="then the highest priority"),
        pytest.param(candidate("a", low("p", 5), low("p2", 1)), candidate("b", low("q", 5), low("q2", 2)), id="then the sum"),
        pytest.param(candidate("a", low("p", -9)), candidate("b", low("q", -9), low("q2", -9)), id="negative ones add up too"),
        pytest.param(
            candidate("a", low("p", -(2**31)), low("p2", -(2**31))),
            candidate("b", low("q", -(2**31)), low("q2", -(2**31)), low("q3", -(2**31))),
            id="then how many",
        ),
        pytest.param(candidate("a", low("p", 1, "10:01")), candidate("b", low("q", 1, "10:00")), id="then the latest start"),
        pytest.param(candidate("a", placed("p", "n", priority=1)), candidate("b", low("q", 1)), id="which is now if missing"),
        pytest.param(
            candidate("a", placed("p", "n", decided_at=8)), candidate("b", placed("q", "n", decided_at=7)), id="placed last"
        ),
    ],
)  # fmt: skip
def test_the_order_in_which_nodes_are_compared(better: Candidate, worse: Candidate) -> None:
    for candidates in ([better, worse], [worse, better]):
        assert candidates[choice.pick(choice.costs(candidates), random.Random(SEED))] is better


def test_among_equal_nodes_the_seed_decides_and_all_have_a_chance() -> None:
    equal = [candidate(f"n{number}", low(f"p{number}")) for number in range(4)]
    costs = choice.costs(equal)
    picked = [equal[choice.pick(costs, random.Random(seed))].node for seed in range(40)]
    assert picked == [equal[choice.pick(costs, random.Random(seed))].node for seed in range(40)]
    assert set(picked) == {"n0", "n1", "n2", "n3"}


@pytest.mark.parametrize(
    ("percentage", "absolute", "potential", "expected"),
    [
        pytest.param(10, 100, 5000, 500, id="the share"),
        pytest.param(10, 100, 400, 100, id="at least so many"),
        pytest.param(10, 100, 40, 40, id="at most all"),
        pytest.param(10, 0, 19, 1, id="cut to a whole number"),
        pytest.param(0, 3, 10, 3, id="no share"),
        pytest.param(100, 0, 7, 7, id="all"),
    ],
)
def test_how_many_candidates_are_looked_for(percentage: int, absolute: int, potential: int, expected: int) -> None:
    args = Args(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)
    assert choice.candidates_wanted(args, potential) == expected
