"""One place that makes consoles: colours on a terminal, plain text in a pipe, and never a table cut to 80
columns there."""

import sys
from typing import Final

from rich.console import Console

PIPE_COLUMNS: Final = 10_000
"""Width where there is no terminal: programs that read tables want whole lines."""


def console() -> Console:
    """A console on standard output."""
    if sys.stdout.isatty():
        return Console(highlight=False, soft_wrap=False)
    return Console(highlight=False, width=PIPE_COLUMNS, no_color=True, soft_wrap=True)
