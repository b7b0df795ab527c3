"""`make pictures`: the pictures of README, taken of the real thing.

README's tour is played in a lab whose services send their traces to a real Jaeger; what `podyard explain` and
`podyard trace` then write on a terminal is drawn. The Jaeger that Go builds (`binary.py`) has no pages of its
own to take a picture of.
"""

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
from rich.console import Console
from rich.text import Text

from tests.e2e.played import Shown, lab, same
from tests.jaeger.binary import find
from tests.jaeger.conftest import exporting
from tests.jaeger.server import JaegerServer, running

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "pictures"
COLUMNS: Final = 120
ROWS: Final = 60
LARGEST_BYTES: Final = 200_000
BACKOFF_S: Final = 2.0
"""After it the story is the one that the tour tells: who waits is parked, not in backoff."""

TOUR: Final = (
    Shown(shlex.split("apply -f examples/tour/web.yaml -f examples/tour/big.yaml"), "...\n"),
    Shown(shlex.split("explain pod big"), "...\n... attempt 1: unschedulable ...\n"),
    Shown(shlex.split("apply -f examples/tour/node-3.yaml --why 'one more CPU'"), "...\n"),
    Shown(shlex.split("apply -f examples/tour/node-4.yaml"), "...\n"),
    Shown(shlex.split("explain pod big"), "...\n... started on node-4, now Running\n"),
)
"""The README's commands that the pictures are about, each with what has to be seen before the next."""


def main() -> None:
    """Take all of them."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as directory, running(find(), Path(directory) / "jaeger.log") as jaeger:
        os.environ.update(exporting(jaeger))
        anyio.run(_take, Path(directory), jaeger)


async def _take(directory: Path, jaeger: JaegerServer) -> None:
    async with lab(["up", "--nodes", "3"], directory) as url:
        known = {**os.environ, "PODYARD_STATE_DIR": str(directory), "PODYARD_NATS_SERVERS": url}
        for step in TOUR:
            await same(step, url)
            if step.words[0] == "explain":
                await anyio.sleep(BACKOFF_S)
        pictures = {
            "explain": ["explain", "pod", "big"],
            "trace": ["trace", "pod", "big", "--jaeger", jaeger.url],
        }
        for name, words in pictures.items():
            written = await anyio.to_thread.run_sync(on_terminal, words, known)
            picture = drawn(written, f"podyard {name} pod big")
            (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


def on_terminal(words: list[str], environment: Mapping[str, str]) -> str:
    """What `podyard <words>` writes on a terminal, escape sequences included.

    :raises AssertionError: if it fails
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    known = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "podyard.cli", *words]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**known, "TERM": "xterm-256color"}
    ) as process:
        os.close(theirs)
        written = _all_of(ours)
    os.close(ours)
    assert process.returncode == 0, written
    return written


def _all_of(terminal: int) -> str:
    written = b""
    while True:
        try:
            written += os.read(terminal, 65536)
        except OSError:  # the other end is closed: Linux says so by EIO
            return written.decode().replace("\r\n", "\n")


def drawn(written: str, title: str) -> str:
    """An SVG of a terminal's window.

    :raises AssertionError: if it is too large for a page, or no XML
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(written), end="")
        picture = console.export_svg(title=title, unique_id=re.sub(r"\W", "-", title))
    # fonts of others' servers: a page that shows the picture does not fetch them
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    ElementTree.fromstring(picture)
    assert len(picture.encode()) < LARGEST_BYTES, title
    return picture


if __name__ == "__main__":
    main()
