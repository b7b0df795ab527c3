"""Two looks at metrics as figures and tables; where processes are looked for."""

import io

import pytest
from rich.console import Console

from podyard.cli.errors import InputError
from podyard.cli.lab import plan
from podyard.cli.render import top as rendered
from podyard.cli.top import figures, looking
from podyard.cli.top.figures import Look
from podyard.proto.queue_api import QueueListReply

QUEUE = QueueListReply(
    epoch=3, leader="queue-1", counts={"activeQ": 4}, sessions={"scheduler-1-abc": 2, "scheduler-2-def": 0}
)


def scheduler(
    number: int,
    at: float,
    *,
    decisions: int,
    popped: int = 0,
    conflicts: dict[str, int] | None = None,
    retries: int = 0,
    window: int = 256,
) -> Look:
    text = f"podyard_scheduler_decisions_total {decisions}\npodyard_scheduler_popped_pods_total {popped}\n"
    for cause, count in (conflicts or {}).items():
        text += f'podyard_scheduler_bind_conflicts_total{{cause="{cause}"}} {count}\n'
    text += f"podyard_scheduler_bind_retries_total {retries}\npodyard_scheduler_window_pods {window}\n"
    text += 'podyard_ready{check="nats"} 1\npodyard_ready{check="queue"} ' + ("1\n" if popped else "0\n")
    return Look(service="scheduler", instance=f"scheduler-{number}", at=at, samples=figures.parse(text))


def binder(at: float, *, commits: int, bindings: int, seconds: float) -> Look:
    text = f"""podyard_binder_commits_total {commits}
podyard_binder_batch_bindings_sum {bindings}
podyard_binder_commit_seconds_sum {seconds}
podyard_binder_leading 1
podyard_binder_decisions_total{{result="bound",cause="",profile="a",scheduler="s1"}} {bindings}
podyard_binder_decisions_total{{result="conflict",cause="fit",profile="a",scheduler="s1"}} 2
podyard_binder_decisions_total{{result="conflict",cause="fit",profile="a",scheduler="s2"}} 3
podyard_ready{{check="nats"}} 1
"""
    return Look(service="binder", instance="binder-1", at=at, samples=figures.parse(text))


def test_shares_and_conflict_rates_are_of_decisions():
    looks = [
        scheduler(1, 10.0, decisions=300, popped=310, conflicts={"fit": 6, "NodePorts": 3}),
        scheduler(2, 10.0, decisions=100, popped=100),
    ]
    first, second = figures.figures([], looks, QUEUE).schedulers
    assert (first.share, second.share) == (0.75, 0.25)
    assert (first.conflicts, first.conflict_rate) == (9, 0.03)
    assert first.conflicts_by_cause == {"NodePorts": 3, "fit": 6}
    assert (first.session, first.in_flight, first.decisions_per_s) == ("scheduler-1-abc", 2, None)


def test_rates_are_between_two_looks():
    before = [scheduler(1, 10.0, decisions=300), binder(10.0, commits=10, bindings=100, seconds=1.0)]
    now = [scheduler(1, 12.0, decisions=500, popped=8), binder(12.0, commits=20, bindings=900, seconds=1.1)]
    found = figures.figures(before, now, QUEUE)
    assert (found.schedulers[0].decisions_per_s, found.schedulers[0].popped_per_s) == (100.0, 4.0)
    (row,) = found.binders
    assert (row.bindings_per_s, row.commits_per_s, row.batch, row.leading) == (400.0, 5.0, 80.0, True)
    assert row.commit_ms == pytest.approx(10.0)
    assert row.refused == {"conflict fit": 5}, "of all schedulers"


def test_several_schedulers_are_added_up():
    before = [scheduler(1, 10.0, decisions=300, conflicts={"fit": 6}), scheduler(2, 10.0, decisions=0)]
    now = [
        scheduler(1, 11.0, decisions=500, popped=510, conflicts={"fit": 8, "NodePorts": 8}, retries=9, window=2),
        scheduler(2, 11.0, decisions=300, popped=300, conflicts={"fit": 4}, retries=4),
        scheduler(3, 11.0, decisions=200, popped=200),
    ]
    found = figures.figures(before, now, QUEUE)
    assert [row.conflict_rate_now for row in found.schedulers] == [0.05, pytest.approx(4 / 300), None]
    assert [(row.retries, row.window) for row in found.schedulers] == [(9, 2), (4, 256), (0, 256)]
    together = found.all_schedulers
    assert (together.decisions, together.conflicts, together.conflict_rate, together.retries) == (1000, 20, 0.02, 13)
    assert together.conflict_rate_now == pytest.approx(14 / 500), "of those that were there before"
    assert together.conflicts_by_cause == {"NodePorts": 8, "fit": 12}
    line, causes = [line.split() for line in rendered.lines(found) if line.startswith("all ")]
    assert line == ["all", "2", "1010", "1000", "500", "20", "2.0%", "2.8%", "13"]
    assert causes == ["all", "NodePorts", "8,", "fit", "12"]


def test_a_process_that_was_started_again_began_at_nothing():
    found = figures.figures([scheduler(1, 10.0, decisions=300)], [scheduler(1, 11.0, decisions=20)], None)
    assert found.schedulers[0].decisions_per_s == 20.0


def test_who_does_not_answer_has_no_figures_and_is_told():
    silent = Look(service="scheduler", instance="scheduler-2", at=10.0)
    found = figures.figures([], [scheduler(1, 10.0, decisions=1), silent], None)
    assert [row.instance for row in found.schedulers] == ["scheduler-1"]
    assert [(row.instance, row.answers, row.ready, row.waiting_for) for row in found.services] == [
        ("scheduler-1", True, False, ("queue",)),
        ("scheduler-2", False, False, ()),
    ]


def test_it_is_shown_as_tables():
    now = [
        scheduler(1, 10.0, decisions=4, popped=4, conflicts={"fit": 1}),
        binder(10.0, commits=0, bindings=0, seconds=0),
    ]
    shown = rendered.lines(figures.figures([], now, QUEUE))
    assert shown[:3] == [
        "activeQ 4",
        "leader queue-1 (epoch 3), position 0",
        "scheduler-1-abc: 2 in flight, scheduler-2-def: 0 in flight",
    ]
    text = "\n".join(shown)
    assert "scheduler-1   2           4        4           -    100%    1           25.0%   -" in text
    assert "all " not in text, "of one scheduler"
    assert "binder-1   leads" in text
    assert rendered.lines(figures.figures([], [], None)) == ["no queue leader answers"]


def test_processes_are_named_by_hand():
    assert looking.named(["scheduler-2=10.0.0.5:9100", "node-agent-x=h:1"]) == [
        looking.Place("scheduler", "scheduler-2", "10.0.0.5:9100"),
        looking.Place("node_agent", "node-agent-x", "h:1"),
    ]
    with pytest.raises(InputError, match="INSTANCE=HOST:PORT"):
        looking.named(["10.0.0.5:9100"])


def test_a_lab_may_have_several_schedulers():
    assert plan.parse("queue,scheduler*3") == plan.parse("queue,scheduler=3")
    assert [planned.instance for planned in plan.parse("scheduler*3")] == ["scheduler-1", "scheduler-2", "scheduler-3"]


def shown_at(width: int, *looks: Look) -> list[str]:
    """What a terminal of that many columns shows."""
    console = Console(width=width, file=io.StringIO(), highlight=False)
    with console.capture() as caught:
        console.print(rendered.view(figures.figures([], looks, QUEUE), width))
    return [line.rstrip() for line in caught.get().splitlines()]


def test_a_narrow_terminal_shows_what_matters_most():
    looks = (
        scheduler(1, 10.0, decisions=1000, popped=1200, conflicts={"fit": 30, "NodePorts": 8}),
        scheduler(2, 10.0, decisions=20),
        binder(10.0, commits=100, bindings=9000, seconds=1.0),
    )
    narrow, wide = shown_at(80, *looks), shown_at(140, *looks)
    assert max(map(len, narrow)) <= 80
    (heads,) = [line.split() for line in narrow if line.startswith("SCHEDULER")]
    assert heads == ["SCHEDULER", "IN", "FLIGHT", "DECISIONS", "/S", "SHARE", "CONFLICTS", "RATE", "NOW"]
    assert [line.split()[-1] for line in wide if line.startswith("SCHEDULER")] == ["WINDOW"]
    assert "scheduler-1: conflicts NodePorts 8, fit 30" in narrow
    assert "ready: scheduler-1, binder-1" in narrow
    assert [line.split() for line in narrow if line.startswith("scheduler-2")][-1] == [
        "scheduler-2",
        "not",
        "ready",
        "queue",
    ]
