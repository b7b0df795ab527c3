"""How far a backup or a restore is, and what came of it."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from podyard.bus.backup import KeptStream
from podyard.cli.render import tables

HEADERS: Final = ("STREAM", "MESSAGES", "UP TO", "FILE")
RESTORED_HEADERS: Final = ("STREAM", "MESSAGES", "UP TO", "GOES ON AT")
KIB: Final = 1024


class Shown:
    """The line while it is there."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def of(self, name: str) -> Callable[[int, int], None]:
        """What is told how far the stream `name` is."""
        self._progress.reset(self._task, description=name)

        def told(done: int, total: int) -> None:
            self._progress.update(self._task, completed=done, total=total)

        return told


@contextmanager
def shown() -> Generator[Shown]:
    """A line on standard error for as long as the block runs, if people look."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<10}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Shown(progress, progress.add_task("", total=None))


def kept_lines(kept: Sequence[KeptStream]) -> list[str]:
    """What a backup holds."""
    rows = [(one.name, str(one.messages), str(one.last), size(one.size)) for one in kept]
    return tables.plain_lines(HEADERS, rows)


def size(bytes_: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(bytes_), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < KIB or unit == "GiB":
            break
        amount /= KIB
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
