"""What `podyard evict` says of a pod."""

import pytest

from podyard.cli import app
from podyard.cli.render import eviction
from podyard.proto.objects_api import BudgetAnswer, ObjectOutcome, ObjectResult

CHARGED = BudgetAnswer(budgets=("web",), desired_healthy=2, current_healthy=3, disruptions_allowed=1, charged=True)
FULL = BudgetAnswer(budgets=("web",), desired_healthy=2, current_healthy=2, code=429, waits_for="healthyPods")
UNCOUNTED = BudgetAnswer(budgets=("web",), code=429, retry_after_s=10, waits_for="time")
TWO = BudgetAnswer(budgets=("one", "two"), code=500, waits_for="edit")


def result(outcome: ObjectOutcome, budget: BudgetAnswer | None = None, message: str = "why") -> ObjectResult:
    return ObjectResult(outcome=outcome, resource="pods", namespace="default", name="a", budget=budget, message=message)


def test_who_goes_is_told_with_the_budget() -> None:
    assert eviction.lines(result("evicted", CHARGED), dry_run=False) == ["pod/a evicted: why"]
    assert eviction.lines(result("evicted", message=""), dry_run=False) == ["pod/a evicted"]
    assert eviction.lines(result("evicted", CHARGED), dry_run=True) == [
        "pod/a evicted (dry run)",
        "  budget web: wants 2 healthy pods, has 3, allows 1, which it would be charged to",
    ]


@pytest.mark.parametrize(
    ("budget", "hint"),
    [
        (FULL, ["hint: try again when one more pod is healthy"]),
        (BudgetAnswer(budgets=("web",), desired_healthy=4, current_healthy=2, code=429, waits_for="healthyPods"),
         ["hint: try again when 3 more pods are healthy"]),
        (UNCOUNTED, ["hint: try again in 10 s"]),
        (TWO, ["hint: try again when somebody has changed the budgets"]),
        (None, []),
    ],
)  # fmt: skip
def test_who_stays_is_told_with_what_helps(budget: BudgetAnswer | None, hint: list[str]) -> None:
    assert eviction.lines(result("blocked", budget), dry_run=False) == [
        "error: pod/a in namespace default: blocked: why", *hint
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pod"], "which pod?"),
        (["pod", "a", "--grace-period", "-1"], "must be 0 or more"),
        (["ponds", "a"], "ponds"),
        (["pods", "a", "--node", "n"], "--node chooses pods"),
        (["deployments", "--node", "n"], "--node chooses pods"),
        (["pods", "--node", "n", "-l", "=="], "selector"),
    ],
)
def test_what_cannot_be_meant_is_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["evict", *words]) == 2
    assert told in capsys.readouterr().err
