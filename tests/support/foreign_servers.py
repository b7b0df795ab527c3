"""Servers that are not Podyard's, as children of a test."""

import ssl
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

START_S: Final = 60.0
LOOK_EVERY_S: Final = 0.05


@contextmanager
def running(
    name: str, words: Sequence[str | Path], ready: str, log: Path, authority: Path | None = None
) -> Generator[None]:
    """A program for as long as the block runs.

    :param words: its command
    :param ready: the address that answers with status 200 once it is ready
    :param authority: certificate of who vouches for that address, if it is one of HTTPS
    :raises AssertionError: if it does not become ready in time, with the end of its log
    """
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            _until_ready(name, process, ready, log, authority)
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(
    name: str, process: "subprocess.Popen[bytes]", address: str, log: Path, authority: Path | None
) -> None:
    deadline, reason = time.monotonic() + START_S, ""
    trusted = True if authority is None else ssl.create_default_context(cafile=str(authority))
    while time.monotonic() < deadline and process.poll() is None:
        try:
            answer = httpx.get(address, timeout=2, verify=trusted)
            if answer.status_code == httpx.codes.OK:
                return
            reason = f"{answer.status_code} {answer.text[:400]}"
        except httpx.HTTPError as error:
            reason = str(error)
        time.sleep(LOOK_EVERY_S)
    raise AssertionError(f"{name} is not ready: {reason}\n{log.read_text(errors='replace')[-2000:]}")
