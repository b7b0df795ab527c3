"""How far a benchmark is that takes minutes: a line on standard error, gone when it ends."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn


class Bar(NamedTuple):
    """The line while it is there."""

    progress: Progress
    task: TaskID

    def show(self, done: int, of: int, told: str) -> None:
        """The run has gone on: so much of it is done, and what is to be said about it."""
        self.progress.update(self.task, completed=done, total=of, told=told)


@contextmanager
def bar(title: str) -> Generator[Bar]:
    """The line for as long as the block runs."""
    columns = (
        TextColumn(title),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task("", total=None, told="starting the services"))
