"""Pages whose commands are played: what they show is compared with what comes.

async with lab(up.words, directory) as url:
    for shown in tour:
        await same(shown, url)

A page shows commands in ```console blocks, each after `$ `, with its output below it. `...` stands for
anything, as in doctest.
"""

import doctest
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from podyard.cli.lab import state
from tests.e2e.stage import READY_S, WITHIN_S, Done, cli

MASKS: Final = (
    (r"\d\d:\d\d:\d\d\.\d{3}", "<time>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    (r"\b[0-9a-f]{32}\b", "<trace>"),
    (r"\bcli:[^\s:]+", "cli:<user>"),
    (r"\b(web-[0-9a-f]{8,10})-[a-z0-9]{5}\b", r"\1-<random>"),
    (r"(?m)^(web-\S+ .*) node-\d ", r"\1 <node> "),
    (r"\b(\d+(h|m|s|ms))+\b", "<age>"),
    (r"(?m) {2,}", "  "),
    (r"(?m) +$", ""),
)
"""What differs from run to run: a pattern, and what stands for it."""

PODYARD: Final = (sys.executable, "-m", "podyard.cli")
"""The command, as a process."""

READING: Final = frozenset({"eviction", "explain", "get", "queue"})
"""Commands that change nothing: who does not see yet what he waits for looks again."""

AGAIN_S: Final = 0.5
"""Seconds between two looks."""

BY_HAND: Final = frozenset({"make setup", ". .venv/bin/activate"})
"""What else pages have people type; the tests run in what it makes."""


class Shown(NamedTuple):
    """A command of a page and the output that it shows."""

    words: list[str]
    output: str

    def __str__(self) -> str:
        return f"podyard {shlex.join(self.words)}"


def commands(text: str) -> list[Shown]:
    """All `$ podyard ...` lines of the ```console blocks in order, each with the lines below it.

    :raises AssertionError: if something else is to be typed there
    """
    found: list[Shown] = []
    for block in re.findall(r"(?ms)^```console\n(.*?)^```$", text):
        for part in filter(None, re.split(r"(?m)^\$ ", block)):
            line, _, output = part.partition("\n")
            if line.startswith("podyard "):
                found.append(Shown(shlex.split(line)[1:], output))
            else:
                assert line in BY_HAND, f"no test runs {line!r}"
    return found


def of_tour(text: str) -> list[Shown]:
    """The commands of README's tour; Docker's are played by tests/compose."""
    return commands(text.partition("\n## With Docker\n")[0])


def masked(text: str) -> str:
    """`text` without what differs from run to run."""
    for pattern, stand_in in MASKS:
        text = re.sub(pattern, stand_in, text)
    return text


def alike(shown: str, came: str) -> bool:
    """Whether a reader would take what came for what a page shows. A line of dots is any number of lines."""
    wanted = re.sub(r"(?m)^\.\.\.\n", "...", masked(shown))
    return doctest.OutputChecker().check_output(wanted, masked(came), doctest.ELLIPSIS)


async def same(shown: Shown, url: str) -> None:
    """Run a command as the page has it, and again while it only reads and has not said it yet.

    :raises AssertionError: if it prints something else, or ends with another code than one who fails, or does
        not
    """
    done = await cli(*shown.words, url=url)
    with anyio.move_on_after(WITHIN_S):
        while shown.words[0] in READING and not _holds(shown, done):
            await anyio.sleep(AGAIN_S)
            done = await cli(*shown.words, url=url)
    assert _holds(shown, done), f"{shown} ({done.code})\n{done.out}{done.err}\n-- the page shows\n{shown.output}"


def _holds(shown: Shown, done: Done) -> bool:
    fails = re.search(r"(?m)^error: ", shown.output) is not None
    return alike(shown.output, done.out + done.err) and fails == (done.code != 0)


@asynccontextmanager
async def lab(
    words: list[str], directory: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[str]:
    """`podyard up` as a page starts it, ready; the block gets the URL by which other commands would find it.

    :param settings: of its services, by variables of the environment
    """
    known = {**os.environ, **settings, "PODYARD_STATE_DIR": str(directory), "NO_COLOR": "1"}
    command = [*PODYARD, *words, "--data", str(directory / "data")]
    async with await anyio.open_process(command, env=known, stderr=None) as process:
        try:
            with anyio.fail_after(READY_S):
                await until_said(process, "all services are ready")
            [found] = state.running(known)
            yield found.url
        finally:
            with anyio.CancelScope(shield=True), anyio.fail_after(WITHIN_S):
                process.send_signal(signal.SIGINT)
                await process.wait()
    assert state.running(known) == [], "nothing is left of the lab"


async def until_said(process: Process, wanted: str) -> None:
    """Read what a process prints until it has said this."""
    assert process.stdout is not None
    said = ""
    async for text in TextReceiveStream(process.stdout):
        said += text
        if wanted in said:
            return
    raise AssertionError(f"it ended and said: {said}")
