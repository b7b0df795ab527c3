"""`podyard up` as people see it: a table of services on a terminal, one line a change elsewhere."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.lab.state import LabState
from podyard.cli.render import tables, times

STYLES: Final = {
    "ready": "green",
    "starting": "yellow",
    "not ready": "yellow",
    "ended": "bold red",
    "done": "green",
    "stopping": "dim",
    "stopped": "dim",
}


class ServiceRow(NamedTuple):
    """What is shown of one service."""

    instance: str
    state: str
    pid: int
    restarts: int
    http: str
    reason: str


def status(rows: Sequence[ServiceRow], url: str, data_dir: str, ran_s: float, hints: Sequence[str]) -> RenderableType:
    """The live display: services, where things are, what to do next."""
    cells = [
        [
            row.instance,
            Text(row.state, style=STYLES.get(row.state, "")),
            str(row.pid or ""),
            str(row.restarts or ""),
            row.http if row.state in ("ready", "not ready") else "",
            row.reason,
        ]
        for row in rows
    ]
    ready = sum(row.state in ("ready", "done") for row in rows)
    head = Text(f"podyard up  {times.duration(ran_s)}  {ready} of {len(rows)} services ready", style="bold")
    place = Text(f"NATS {url}   data {data_dir}", style="dim")
    return Group(
        head,
        place,
        Text(""),
        tables.table(("SERVICE", "STATE", "PID", "RESTARTS", "HTTP", ""), cells),
        Text(""),
        *(Text(hint) for hint in hints),
    )


def running(labs: Sequence[LabState], now: float) -> list[str]:
    """A table of the labs that run, for `podyard labs`."""
    rows = [
        (lab.name, lab.url, times.duration(now - lab.started_at), _services(lab), lab.data_dir or "<none>")
        for lab in labs
    ]
    return tables.plain_lines(("NAME", "SERVER", "SINCE", "SERVICES", "DATA"), rows)


def _services(lab: LabState) -> str:
    """How many processes run of how many; those that do not by name."""
    ended = [instance for instance, one in lab.services.items() if not one.pid]
    told = f"{len(lab.services) - len(ended)}/{len(lab.services)}"
    return f"{told} without {', '.join(ended)}" if ended else told


def change(row: ServiceRow) -> str:
    """One line for a log."""
    details = [f"pid {row.pid}"] if row.pid else []
    if row.state == "ready":
        details.append(f"http://{row.http}")
    if row.reason:
        details.append(row.reason)
    return f"{row.instance:<14} {row.state:<9} {', '.join(details)}".rstrip()


def next_steps(nodes: int) -> list[str]:
    """What a newcomer may do now, in another terminal."""
    first = "podyard get nodes" if nodes else "podyard apply -f node.yaml      (or start with --nodes 3)"
    return [
        "In another terminal (it finds this lab by itself):",
        f"  {first}",
        "  podyard apply -f pod.yaml",
        "  podyard get pods -A -o wide",
        "  podyard explain pod NAME",
        "  podyard watch",
        "  podyard kubeconfig > kubeconfig    (kubectl --kubeconfig kubeconfig get pods)",
        "Ctrl-C ends everything.",
    ]
