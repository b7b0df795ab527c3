"""The figures of `podyard top` as tables."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import queue as queue_view
from podyard.cli.render import tables
from podyard.cli.top.figures import BinderRow, Figures, SchedulerRow, ServiceRow

HIGH_CONFLICTS: Final = 0.05
"""Share of decisions from which conflicts are marked: what Podyard promises to stay below."""

SCHEDULERS: Final = (
    "SCHEDULER",
    "IN FLIGHT",
    "POPPED",
    "DECISIONS",
    "/S",
    "SHARE",
    "CONFLICTS",
    "RATE",
    "NOW",
    "RETRIED",
    "WINDOW",
)
CAUSES: Final = ("SCHEDULER", "CONFLICTS BY CAUSE", "ATTEMPTS BY RESULT")
BINDERS: Final = ("BINDER", "", "BINDINGS", "/S", "COMMITS", "/S", "BATCH", "COMMIT", "REFUSED")
SERVICES: Final = ("SERVICE", "STATE", "")

LESS: Final = ("WINDOW", "POPPED", "RETRIED", "BATCH", "COMMIT", "NOW")
"""Columns that a narrow terminal does without, those that matter least first."""
LEAST_LAST: Final = 16
"""Columns of a terminal for the last one of a table."""

Rows = list[list[str | Text]]


def parts(figures: Figures) -> list[tuple[tuple[str, ...], Rows]]:
    """Header and rows of each table that has rows, top to bottom."""
    made = [
        (SCHEDULERS, _schedulers(figures)),
        (CAUSES, _causes(figures)),
        (BINDERS, [_binder(row) for row in figures.binders]),
        (SERVICES, [_service(row) for row in figures.services]),
    ]
    return [(headers, rows) for headers, rows in made if rows]


def view(figures: Figures, width: int) -> RenderableType:
    """For a terminal, of `width` columns: of services that are ready the names will do."""
    shown: list[RenderableType] = [Text(_queue(figures, all_pools=False))]
    for headers, rows in parts(figures):
        if headers is CAUSES:
            shown += [Text(""), *map(_told, rows)]
        elif headers is not SERVICES:
            shown += [Text(""), _fitted(headers, rows, width)]
    ready = [row.instance for row in figures.services if row.ready]
    others = [_service(row) for row in figures.services if not row.ready]
    if ready:
        shown += [Text(""), Text.assemble(("ready: ", "green"), ", ".join(ready))]
    if others:
        shown += [Text(""), _fitted(SERVICES, others, width)]
    return Group(*shown)


def _told(row: list[str | Text]) -> Text:
    """Causes and results in a sentence: it goes on below where a column would be cut."""
    instance, causes, results = map(str, row)
    parts = (f"attempts {results}" if results else "", f"conflicts {causes}" if causes else "")
    return Text(f"{instance}: {'; '.join(filter(None, parts)) or 'nothing yet'}")


def _fitted(headers: Sequence[str], rows: Rows, width: int) -> RenderableType:
    less = [headers.index(header) for header in LESS if header in headers]
    found = tables.fitted(headers, rows, width, less=less, least=LEAST_LAST)
    return tables.table(found.headers, found.rows)


def lines(figures: Figures) -> list[str]:
    """The same for pipes."""
    shown = _queue(figures, all_pools=True).splitlines()
    for headers, rows in parts(figures):
        shown += ["", *tables.plain_lines(headers, rows)]
    return shown


def _queue(figures: Figures, *, all_pools: bool) -> str:
    if figures.queue is None:
        return "no queue leader answers"
    return queue_view.summary(figures.queue, all_pools=all_pools)


def _schedulers(figures: Figures) -> Rows:
    rows = [_scheduler(row) for row in figures.schedulers]
    if len(rows) > 1:
        rows.append(_all(figures))
    return rows


def _all(figures: Figures) -> list[str | Text]:
    """What a service of several schedulers is judged by."""
    of, rows = figures.all_schedulers, figures.schedulers
    rates = [row.decisions_per_s for row in rows if row.decisions_per_s is not None]
    return [
        Text("all", style="bold"),
        str(sum(row.in_flight for row in rows)),
        str(sum(row.popped for row in rows)),
        str(of.decisions),
        _rate(sum(rates) if rates else None),
        "",
        str(of.conflicts),
        _share(of.conflict_rate),
        _share(of.conflict_rate_now),
        str(of.retries),
        "",
    ]


def _causes(figures: Figures) -> Rows:
    rows: Rows = [[row.instance, _counts(row.conflicts_by_cause), _results(row)] for row in figures.schedulers]
    if len(rows) > 1:
        rows.append([Text("all", style="bold"), _counts(figures.all_schedulers.conflicts_by_cause), ""])
    return rows


def _scheduler(row: SchedulerRow) -> list[str | Text]:
    return [
        row.instance,
        str(row.in_flight) if row.session else "no session",
        str(row.popped),
        str(row.decisions),
        _rate(row.decisions_per_s),
        f"{row.share:.0%}",
        str(row.conflicts),
        _share(row.conflict_rate),
        _share(row.conflict_rate_now),
        str(row.retries),
        str(row.window),
    ]


def _share(conflicts: float | None) -> Text:
    """Of decisions, marked if it is high."""
    if conflicts is None:
        return Text("-")
    return Text(f"{conflicts:.1%}", style="bold red" if conflicts > HIGH_CONFLICTS else "")


def _results(row: SchedulerRow) -> str:
    return _counts(row.results)


def _binder(row: BinderRow) -> list[str | Text]:
    return [
        row.instance,
        Text("leads", style="green") if row.leading else Text("standby", style="dim"),
        str(row.bindings),
        _rate(row.bindings_per_s),
        str(row.commits),
        _rate(row.commits_per_s),
        "-" if row.batch is None else f"{row.batch:.1f}",
        "-" if row.commit_ms is None else f"{row.commit_ms:.1f}ms",
        _counts(row.refused),
    ]


def _service(row: ServiceRow) -> list[str | Text]:
    state, style = ("ready", "green") if row.ready else ("not ready", "yellow") if row.answers else ("no answer", "red")
    return [row.instance, Text(state, style=style), ", ".join(row.waiting_for)]


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.0f}" if per_s >= 10 else f"{per_s:.1f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'unnamed'} {count}" for name, count in counts.items())
