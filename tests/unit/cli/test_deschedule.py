"""What `podyard deschedule` tells of a cycle, and what it refuses before one."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from podyard.cli import app
from podyard.cli.render import deschedule, plain
from podyard.descheduler.core.cycle import Attempt, CycleRecord, Step
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.spread import Share

REASON = "its node is used more than the target thresholds say"


def attempt(name: str, answer: Answer, **more: str) -> Attempt:
    return Attempt(
        namespace="default", name=name, uid=f"uid-{name}", node="node-1", answer=answer, reason=REASON, **more
    )


STEP = Step(
    profile="spread",
    extension_point="Balance",
    plugin="LowNodeUtilization",
    attempts=(
        attempt("web-1", Answer.EVICTED, planned_node="node-10"),
        attempt("web-22", Answer.EVICTED, plan_problem="it would stay pending: NodeResourcesFit refuses 2 nodes"),
        attempt("web-3", Answer.STAYS, planned_node="node-1", problem="it would come back to node-1"),
        attempt("web-4", Answer.NODE_LIMIT, problem="maximum number of evicted pods per node reached"),
    ),
)
RECORD = CycleRecord(
    nodes=3,
    steps=(STEP, Step(profile="p", extension_point="Balance", plugin="Broken", error="boom")),
    before={"cpu": Share(0.0, 25.0, 75.0, 35.4)},
    after={"cpu": Share(25.0, 41.7, 50.0, 11.8)},
)


def text(record: CycleRecord, *, dry_run: bool = False) -> list[str]:
    console = Console(width=80, record=True, file=StringIO())
    console.print(deschedule.view(deschedule.outcome(record, dry_run=dry_run, plan="obey")))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_who_moves_where_and_why_who_stays_and_why_and_how_much_of_nodes_is_requested() -> None:
    assert text(RECORD) == [
        "2 pods moved, 2 pods stay; 3 nodes, plan: obey",
        "",
        "POD             FROM    TO",
        "default/web-1   node-1  node-10",
        "    spread/LowNodeUtilization: its node is used more than the target thresholds",
        "    say",
        "default/web-22  node-1  -",
        "    spread/LowNodeUtilization: its node is used more than the target thresholds",
        "    say",
        "    against the plan: it would stay pending: NodeResourcesFit refuses 2 nodes",
        "",
        "POD            STAYS ON",
        "default/web-3  node-1",
        "    spread/LowNodeUtilization: its node is used more than the target thresholds",
        "    say",
        "    stays: it would come back to node-1",
        "default/web-4  node-1",
        "    spread/LowNodeUtilization: its node is used more than the target thresholds",
        "    say",
        "    stays: maximum number of evicted pods per node reached",
        "p/Broken failed: boom",
        "",
        "REQUESTED OF NODES   LEAST    MEAN    MOST  DEVIATION",
        "cpu, before          0.0 %  25.0 %  75.0 %       35.4",
        "cpu, as planned     25.0 %  41.7 %  50.0 %       11.8",
    ]


def test_a_cycle_that_does_nothing_says_so() -> None:
    assert text(CycleRecord(nodes=0, skipped="0 ready nodes are selected"), dry_run=True) == [
        "0 pods would move (dry run); 0 nodes, plan: obey",
        "skipped: 0 ready nodes are selected",
    ]
    assert text(CycleRecord(nodes=2, ended="svc.objects.evict does not answer"))[1:] == [
        "the cycle went no further: svc.objects.evict does not answer"
    ]


def test_programs_read_who_kept_a_pod() -> None:
    found = plain.builtins(deschedule.outcome(RECORD, dry_run=False, plan="obey"))
    assert [(one["name"], one["kept_by"]) for one in found["stays"]] == [("web-3", "stays"), ("web-4", "nodeLimit")]
    assert found["errors"] == {"p/Broken": "boom"}
    assert found["after"]["cpu"]["most"] == 50.0


def test_a_policy_is_needed_and_all_that_is_wrong_with_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PODYARD_CONFIG", raising=False)
    assert app.run(["deschedule"]) == 2
    assert "podyard deschedule --policy FILE" in capsys.readouterr().err
    policy = tmp_path / "policy.yaml"
    plugins = "plugins: {deschedule: {enabled: [Nope]}, balance: {enabled: [Neither]}}"
    policy.write_text(
        f"apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [{{name: p, {plugins}}}]\n"
    )
    assert app.run(["deschedule", "--policy", str(policy)]) == 2
    told = capsys.readouterr().err
    assert str(policy) in told
    assert "Nope" in told
    assert "Neither" in told
