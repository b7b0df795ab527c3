"""The demo on a terminal: steps with their state, live, and what was seen; plain lines where there is no
terminal."""

import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from podyard.cli.demo.evidence import Evidence

REFRESH_PER_S: Final = 8


class Stage:
    """Shows one step after the other. With a terminal the running step is live; without one, each is a line
    when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._number = 0

    @contextmanager
    def step(self, title: str, evidence: Evidence | None = None) -> Generator["Told"]:
        """Show `title` as running until the block ends; then what the block told, or a cross if it raised."""
        self._number += 1
        told = Told()
        started = time.monotonic()
        scene = _Scene(self._number, title, started, evidence)
        live = Live(scene, console=self._console, refresh_per_second=REFRESH_PER_S, transient=True)
        try:
            with live if self._console.is_terminal else nullcontext():
                yield told
        except BaseException:
            self._console.print(_line(self._number, title, time.monotonic() - started, Text("✗", "bold red")))
            raise
        self._console.print(_line(self._number, title, time.monotonic() - started, Text("✓", "bold green")))
        if told.text:
            self._console.print(Padding(Text(told.text, "dim"), (0, 0, 0, 6), expand=False))

    def show(self, title: str, what: RenderableType) -> None:
        """The end of the story."""
        self._console.print()
        self._console.print(Rule(title, style="cyan") if self._console.is_terminal else f"== {title} ==")
        self._console.print(what)


class Told:
    """What a step saw, in a sentence."""

    text = ""


class _Scene:
    """The running step: a spinner, the time, and the cluster's numbers below it."""

    def __init__(self, number: int, title: str, started: float, evidence: Evidence | None) -> None:
        self._number = number
        self._title = title
        self._started = started
        self._evidence = evidence
        self._spinner = Spinner("dots", style="cyan")

    def __rich__(self) -> RenderableType:
        line = _line(self._number, self._title, time.monotonic() - self._started, self._spinner)
        if self._evidence is None:
            return line
        return Group(line, Padding(_numbers(self._evidence), (0, 0, 0, 6)))


def _line(number: int, title: str, elapsed_s: float | None, mark: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        f"{number:>2}", mark, Text(title, "bold"), Text("" if elapsed_s is None else f"{elapsed_s:.1f} s", "cyan")
    )
    return grid


def _numbers(evidence: Evidence) -> Text:
    pods = [pod for pod in evidence.view.pods.values() if not pod.gone]
    bound = sum(1 for pod in pods if pod.bound is not None)
    running = sum(1 for pod in pods if pod.status is not None and pod.status.phase == "Running")
    return Text(
        f"{len(evidence.view.nodes)} nodes, {len(pods)} pods: {bound} bound, {running} running; "
        f"{len(evidence.attempts)} attempts in vain, {len(evidence.requeues)} events that reached a hint",
        "dim",
    )
