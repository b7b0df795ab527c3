"""What came of an eviction, in lines. Pure."""

from podyard.proto.objects_api import BudgetAnswer, ObjectResult
from podyard.telling import words


def lines(result: ObjectResult, *, dry_run: bool) -> list[str]:
    """One pod of an answer: what became of it, and how its budget stands."""
    if result.outcome == "evicted":
        charged = result.budget is not None and result.budget.charged
        told = f": {result.message}" if result.message and not dry_run else ""
        would = ", which it would be charged to" if charged else ""
        budget = _standing(result.budget, would) if dry_run else []
        return [f"pod/{result.name} evicted{' (dry run)' if dry_run else told}", *budget]
    told = f": {result.reason}" if result.reason else ""
    where = f" in namespace {result.namespace}" if result.namespace else ""
    return [f"error: pod/{result.name}{where}: {words.spoken(result.outcome)}{told}", *_advice(result.budget)]


def _standing(budget: BudgetAnswer | None, more: str) -> list[str]:
    if budget is None:
        return []
    names = ", ".join(budget.budgets)
    wants = f"wants {budget.desired_healthy} healthy pods, has {budget.current_healthy}"
    return [f"  budget {names}: {wants}, allows {budget.disruptions_allowed}{more}"]


def _advice(budget: BudgetAnswer | None) -> list[str]:
    """When to try again."""
    if budget is None:
        return []
    match budget.waits_for:
        case "time" if budget.retry_after_s:
            when = f"in {budget.retry_after_s} s"
        case "time":
            when = "when the budget's evictions are confirmed"
        case "healthyPods":
            more = max(budget.desired_healthy + 1 - budget.current_healthy, 0)
            pods = f"{more} more pods are healthy" if more > 1 else "one more pod is healthy"
            when = f"when {pods}" if more else "when the pods that are being evicted are replaced"
        case _:
            when = "when somebody has changed the budgets"
    return [f"hint: try again {when}"]
