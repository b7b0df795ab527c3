"""The runner notices what differs: every part of the expected answers is altered once, and plugins are made
to answer wrongly."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from podyard.framework import events
from podyard.plugins.default_preemption import dry_run
from podyard.plugins.image_locality.plugin import ImageLocality
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.taint_toleration import plugin as taint_toleration
from tests.conformance import running, suites
from tests.conformance.cases import Case

DATA = Path(__file__).parent / "data"
FILES = {suite: DATA / suite / "public.jsonl.gz" for suite in suites.NAMES} | {
    "registry": DATA / "registry" / "registry.json.gz"
}

Where = tuple[Any, ...]


@pytest.fixture(scope="module")
def files() -> dict[str, dict[str, Case]]:
    return {suite: {case.id: case for case in running.load(suite, file)} for suite, file in FILES.items()}


def leaves(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*where, key))
    else:
        yield where, value


def altered(document: Any, where: Where, new: Any) -> Any:
    changed = copy.deepcopy(document)
    inner = changed
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = new
    return changed


def another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case None:
            return "something"
        case list():
            return ["something"]
        case _:
            return {"something": 1}


def expecting(case: Case, expected: Any) -> Case:
    return msgspec.structs.replace(case, expected=expected)


def told(suite: str, case: Case) -> list[str]:
    return [" ".join(one.where) for one in running.run(suite, case).differences]


NOT_COMPARED = {
    "schedule": set[str](),
    "preempt": {"nominated_node", "victims"},
    "config": {"message", "error"},
    "classify": set[str](),
    "registry": set[str](),
    "requeue": {"note", "recordedInFlight"},
}
"""Keys that repeat others, or that the suites' descriptions except."""

CASES = [
    *[("schedule", case) for case in ("schedule-100001", "schedule-100140", "schedule-100519", "schedule-100525")],
    *[("schedule", case) for case in ("schedule-100659",)],
    *[("preempt", case) for case in ("preempt-300007", "preempt-300047", "preempt-300250")],
    *[("config", case) for case in ("config-3000010", "config-3000184", "config-3000059")],
    *[("classify", case) for case in ("classify-1000101", "classify-1000013", "classify-1000007")],
    *[("registry", case) for case in ("plugins", "actionBits", "unionedGVKs", "pluginsWithoutEvents")],
    *[("requeue", case) for case in ("requeue-5000003", "requeue-5000004")],
]


@pytest.mark.parametrize(("suite", "name"), CASES, ids=lambda value: value)
def test_every_part_of_an_answer_is_compared(suite, name, files) -> None:
    case = files[suite][name]
    outcome = running.run(suite, case)
    assert outcome.passed, outcome.differences
    functions = suites.suite(suite)
    unnoticed = [
        where
        for where, value in leaves(case.expected)
        if not NOT_COMPARED[suite].intersection(where)
        and not _is_one_of_many(suite, case.expected, where)
        and not _is_noticed(functions, altered(case.expected, where, another(value)), outcome.got, value)
    ]
    assert unnoticed == []


def _is_noticed(functions: suites.Suite, expected: Any, got: Any, value: Any) -> bool:
    """Something in place of nothing may have another shape than its place allows; that ends the case too."""
    try:
        return bool(list(functions.compare(expected, got)))
    except (TypeError, AttributeError):
        return not value


def _is_one_of_many(suite: str, expected: Any, where: Where) -> bool:
    """Of several acceptable outcomes, those that were not taken can be anything; the same goes for what
    belongs to their nodes."""
    if suite != "preempt" or "postfilter" not in where:
        return False
    answer = expected["pods"][where[1]]["postfilter"]
    return (
        answer is not None
        and len(answer["acceptable"]) > 1
        and ("acceptable" in where or "nominations_cleared" in where)
    )


def test_a_wrong_score_is_noticed(files, monkeypatch) -> None:
    case = files["schedule"]["schedule-100662"]
    score = ImageLocality.score
    monkeypatch.setattr(ImageLocality, "score", lambda self, *args: np.minimum(score(self, *args) + 1, 100))
    assert "default/p1 node-0 scores ImageLocality" in told("schedule", case)


def test_a_missing_reason_is_noticed(files, monkeypatch) -> None:
    case = files["schedule"]["schedule-100001"]
    verdict = NodeResourcesFit.verdict

    def shortened(self, state, code):
        found = verdict(self, state, code)
        return msgspec.structs.replace(found, reasons=found.reasons[:1])

    monkeypatch.setattr(NodeResourcesFit, "verdict", shortened)
    where = told("schedule", case)
    assert any(one.endswith(" filter") for one in where)
    assert "default/p23 message" in where


def test_a_wrong_status_is_noticed(files, monkeypatch) -> None:
    case = files["schedule"]["schedule-100001"]
    (name, node) = next(
        (name, node)
        for name, node in case.expected["pods"]["default/p23"]["nodes"].items()
        if node["filter"]["plugin"] == "TaintToleration"
    )
    assert node["filter"]["code"] == "UnschedulableAndUnresolvable"
    verdict = taint_toleration.TaintToleration.verdict

    def softened(self, state, code):
        return msgspec.structs.replace(verdict(self, state, code), code=taint_toleration.statuses.Code.UNSCHEDULABLE)

    monkeypatch.setattr(taint_toleration.TaintToleration, "verdict", softened)
    assert f"default/p23 {name} filter" in told("schedule", case)


def test_a_wrong_victim_is_noticed(files, monkeypatch) -> None:
    case = files["preempt"]["preempt-300020"]
    in_order = dry_run.importance.most_important_first
    monkeypatch.setattr(dry_run.importance, "most_important_first", lambda pods: in_order(pods)[::-1])
    where = told("preempt", case)
    assert any("postfilter outcome" in one for one in where)
    assert any("postfilter dry_run" in one for one in where)


def test_an_outcome_that_is_not_acceptable_is_noticed(files) -> None:
    case = files["preempt"]["preempt-300010"]
    expected = altered(case.expected, ("pods", "default/me", "postfilter", "acceptable", 0, "victims"), ["default/p1"])
    assert told("preempt", expecting(case, expected)) == ["default/me postfilter outcome"]


def test_a_wrong_hint_is_noticed_and_where_it_puts_the_pod(files, monkeypatch) -> None:
    case = files["requeue"]["requeue-5000003"]
    registered = NodeResourcesFit.events_to_register

    def never(self):
        return [one._replace(hint=lambda pod, old, new: events.skip("never")) for one in registered(self)]

    monkeypatch.setattr(NodeResourcesFit, "events_to_register", never)
    where = told("requeue", case)
    assert any("hints NodeResourcesFit" in one for one in where)
    assert any("state unschedulable" in one for one in where)


def test_code_that_raises_fails_its_case_only(files, monkeypatch) -> None:
    case = files["schedule"]["schedule-100662"]
    monkeypatch.setattr(ImageLocality, "score", lambda self, *args: 1 / 0)
    assert told("schedule", case) == ["default/p1 error"]
    monkeypatch.setattr(suites.suite("schedule").run.__globals__["profiles"], "configured", lambda config: 1 / 0)
    assert running.run("schedule", case).differences[0].got.startswith("raised ZeroDivisionError")
