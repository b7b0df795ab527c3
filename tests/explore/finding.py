"""Failing plays, kept in files to be played again."""

import datetime
import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import hypothesis
import msgspec

from tests.explore.telling import Failed
from tests.support.plays import Play

FOLDER: Final = Path(os.environ.get("PODYARD_PLAYS", ".podyard/plays"))
MOST_WORDS: Final = 60
"""Characters of a test's name that its file's name has."""


def keep(failed: Failed, folder: Path = FOLDER) -> Path:
    """Write the play of a failure.

    :return: the file; one play is one file, however often it is found
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", failed.test.rpartition("/")[2]).strip("-")[:MOST_WORDS]
    file = folder / f"{name}-{hashlib.sha256(failed.choices.encode()).hexdigest()[:8]}.json"
    play = Play(
        test=failed.test,
        hypothesis=hypothesis.__version__,
        choices=failed.choices,
        found=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} at {_commit()}",
        says=failed.says,
    )
    file.write_bytes(msgspec.json.format(msgspec.json.encode(play), indent=1) + b"\n")
    return file


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown commit"
