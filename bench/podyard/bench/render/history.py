"""The history of measurements as tables: commit by commit on each machine, then the last entry against the
one before."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench import comparing
from podyard.bench.comparing import EXACT, NOISE
from podyard.bench.performance import Entry

MOST_ENTRIES: Final = 20
"""Of a machine; earlier ones are in the file, and in the picture."""
BARS: Final = "▁▂▃▄▅▆▇█"
STYLES: Final = {-1: "red", 0: "", 1: "green"}
PER_POD: Final = {
    "receipts": "messages received",
    "messages": "messages decoded",
    "objects": "objects decoded",
    "effects": "effects of the core",
    "rows": "rows asked about",
}
"""Counts by service."""
PER_CYCLE: Final = {"calls": "seen, calls", "rows_again": "seen, rows"}
"""Counts by kind of pod: Python calls, and rows that plugins are asked about."""
PODS_PER_COMMIT: Final = "pods/commit"
"""The only one of these figures of which more is better."""
MESSAGES: Final = {"stored": "stored", "stored_elsewhere": "elsewhere", "to_server": "sent", "from_server": "delivered"}

Figures = Mapping[str, float]
Row = tuple[str, Figures, Figures, float]
"""Label, figures by column, the same of the entry before, and their noise."""


def report(entries: Sequence[Entry], file: str) -> RenderableType:
    """All machines, the one that was used last at the end."""
    if not entries:
        return Text(f"{file} has no entries yet: make bench adds one for the commit that is checked out")
    parts: list[RenderableType] = []
    for hardware, found in comparing.by_hardware(entries).items():
        parts += [Text(hardware, "bold green"), *_course(found), Text()]
        parts += [*_last(found[-1], found[-2] if len(found) > 1 else None), Text()]
    return Group(*parts[:-1])


def sparkline(figures: Sequence[float]) -> str:
    """One bar a figure, between the lowest and the highest."""
    low, high = min(figures), max(figures)
    steps = len(BARS) - 1
    return "".join(
        BARS[round((figure - low) / (high - low) * steps) if high > low else steps // 2] for figure in figures
    )


# ---- commit by commit


def _course(entries: Sequence[Entry]) -> list[RenderableType]:
    shown = entries[-MOST_ENTRIES:]
    processes = sorted(
        {name for entry in shown for name in entry.throughput.cpu_us_per_pod},
        key=lambda name: -shown[-1].throughput.cpu_us_per_pod.get(name, 0.0),
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in ("DATE", "COMMIT"):
        table.add_column(column, no_wrap=True)
    for column in ("PODS/S", "CPU", *(name.removesuffix("-server").upper() for name in processes)):
        table.add_column(column, justify="right", no_wrap=True)
    first = len(entries) - len(shown)
    for place, entry in enumerate(shown, start=first):
        before = entries[place - 1] if place else None
        table.add_row(entry.date[:10], entry.label, *_throughput(entry, before, processes))
    parts: list[RenderableType] = [
        Text("CPU: µs a pod, in all and by process; red: worse than the line above by 5 %", "dim")
    ]
    if first:
        parts.append(Text(f"{first} earlier entries are not shown", "dim"))
    parts.append(table)
    if len(shown) > 1:
        rates = sparkline([entry.throughput.pods_per_second for entry in shown])
        costs = sparkline([entry.throughput.cpu_us for entry in shown])
        parts.append(Text(f"pods/s {rates}   CPU {costs}"))
    parts += [Text(text, "dim") for text in _versions(shown)]
    return parts


def _throughput(entry: Entry, before: Entry | None, processes: Sequence[str]) -> list[Text]:
    now, then = entry.throughput, before.throughput if before else None
    rate = comparing.change(now.pods_per_second, then.pods_per_second if then else None, NOISE, more_is_better=True)
    cells = [
        Text(f"{now.pods_per_second:,.0f}", STYLES[rate.worth]),
        _figure(now.cpu_us, then.cpu_us if then else None),
    ]
    for name in processes:
        known = then.cpu_us_per_pod.get(name) if then else None
        cells.append(_figure(now.cpu_us_per_pod[name], known) if name in now.cpu_us_per_pod else Text("-"))
    return cells


def _figure(now: float, before: float | None) -> Text:
    return Text(f"{now:,.0f}", STYLES[comparing.change(now, before, NOISE).worth])


def _versions(entries: Sequence[Entry]) -> list[str]:
    """With which Python and nats-server, and from which entry on."""
    told: list[str] = []
    before = ""
    for entry in entries:
        versions = f"Python {entry.machine.python}, nats-server {entry.machine.nats_server or '?'}"
        if versions != before:
            told.append(f"{versions}, from {entry.label} on")
            before = versions
    return told


# ---- the last entry


def _last(entry: Entry, before: Entry | None) -> list[RenderableType]:
    title = Text.assemble((f"{entry.label}, {entry.date[:10]}", "bold green"))
    title.append(f", against {before.label}" if before else ", the first of this machine")
    tables = [_messages(entry, before), *_services(entry, before), _cycles(entry, before), _events(entry, before)]
    return [title, *(part for table in tables for part in (table, Text()))][:-1]


def _messages(entry: Entry, before: Entry | None) -> RenderableType:
    rows: list[Row] = [("measured", _measured(entry), _measured(before), NOISE)]
    counted = _counted_messages(entry)
    if counted:
        rows.insert(0, ("counted", counted, _counted_messages(before), EXACT))
    return _matrix("MESSAGES PER POD", [*MESSAGES.values(), PODS_PER_COMMIT], rows, _exact)


def _counted_messages(entry: Entry | None) -> Figures:
    return {column: entry.counts[topic] for topic, column in MESSAGES.items() if topic in entry.counts} if entry else {}


def _measured(entry: Entry | None) -> Figures:
    if entry is None:
        return {}
    found = entry.throughput
    return {
        "stored": found.stored_per_pod,
        "sent": found.to_server_per_pod,
        "delivered": found.from_server_per_pod,
        PODS_PER_COMMIT: found.pods_per_commit,
    }


def _services(entry: Entry, before: Entry | None) -> list[RenderableType]:
    topics = [*PER_POD, *(topic for topic in comparing.topics([entry]) if topic not in _TOLD_ELSEWHERE)]
    rows = [_counted(PER_POD.get(topic, topic), topic, entry, before) for topic in topics]
    rows = [row for row in rows if row[1]]
    columns = sorted({name for row in rows for name in row[1]})
    return [_matrix("COUNTED PER POD", columns, rows, _exact)] if rows else []


_TOLD_ELSEWHERE: Final = {*PER_POD, *PER_CYCLE, *MESSAGES}


def _cycles(entry: Entry, before: Entry | None) -> RenderableType:
    now, then = entry.cycle, before.cycle if before else None
    rows: list[Row] = [
        ("first, µs", now.first_us, then.first_us if then else {}, NOISE),
        ("seen, µs", now.seen_us, then.seen_us if then else {}, NOISE),
        *(_counted(label, topic, entry, before) for topic, label in PER_CYCLE.items()),
    ]
    return _matrix("A CYCLE", list(now.seen_us), [row for row in rows if row[1]], _round)


def _counted(label: str, topic: str, entry: Entry, before: Entry | None) -> Row:
    """What is counted in one entry only is 0 in the other, unless that has no counts at all."""
    now, then = comparing.counts_of(entry, topic), comparing.counts_of(before, topic) if before else {}
    if before and before.counts and entry.counts:
        none = dict.fromkeys((*now, *then), 0.0)
        now, then = none | now, none | then
    return label, now, then, EXACT


def _events(entry: Entry, before: Entry | None) -> RenderableType:
    rows: list[Row] = [("measured", _event_figures(entry), _event_figures(before), NOISE)]
    return _matrix("EVENTS", list(_event_figures(entry)), rows, _tenths)


def _event_figures(entry: Entry | None) -> Figures:
    if entry is None:
        return {}
    found = entry.events
    return {
        "of none, µs": found.none_us,
        "of one, µs": found.one_us,
        "of all, ms": found.all_ms,
        "pop p99, ms": found.storm_pop_p99_ms,
    }


def _matrix(title: str, columns: Sequence[str], rows: Sequence[Row], form: Callable[[float], str]) -> RenderableType:
    """A line a row; beside a figure its change, if there is one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for label, now, before, noise in rows:
        table.add_row(label, *(_cell(name, now.get(name), before.get(name), noise, form) for name in columns))
    return table


def _cell(column: str, now: float | None, before: float | None, noise: float, form: Callable[[float], str]) -> Text:
    if now is None:
        return Text()
    found = comparing.change(now, before, noise, more_is_better=column == PODS_PER_COMMIT)
    return Text(f"{form(now)} {found.text}" if found.text else form(now), STYLES[found.worth])


def _exact(value: float) -> str:
    return f"{value:,.2f}" if value >= 10 else f"{value:.3f}"


def _tenths(value: float) -> str:
    return f"{value:,.1f}"


def _round(value: float) -> str:
    return f"{value:,.0f}"
