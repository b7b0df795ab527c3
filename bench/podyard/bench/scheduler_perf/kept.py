"""Results in files: one for each run, which nothing replaces."""

import re
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from podyard.bench.scheduler_perf.config import text_of
from podyard.bench.scheduler_perf.result import Result
from podyard.cli.errors import CliError, InputError
from podyard.objects import times

STRANGE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def write(directory: Path, result: Result, text: str) -> Path:
    """Keep a result, which is `text`, in a file of its own.

    :raises CliError: it cannot be written
    """
    stem = STRANGE.sub("_", f"{result.case}-{result.stack}{'-fsync' if result.synchronous else ''}")
    at = times.rfc3339(result.at).replace(":", "")
    number = 1
    while (file := directory / f"{stem}-{at}{'' if number == 1 else f'-{number}'}.json").exists():
        number += 1
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{file}: cannot be written: {error.strerror or error}", "name another directory") from error
    return file


def read(file: Path) -> list[Result]:
    """The results that a file holds: one, or a list of them.

    :raises InputError: it holds none
    """
    try:
        found: Any = msgspec.json.decode(text_of(file))
        many = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [msgspec.convert(_numbered(one), Result) for one in many]
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(f"{file}: no result of `podyard bench scheduler-perf -o json`: {error}") from error


def _numbered(one: Any) -> Any:
    """The same with its time as a number."""
    if not isinstance(one, dict):
        return one
    found = cast("dict[str, Any]", one)
    at = found.get("at")
    return {**found, "at": times.seconds_or(at, 0.0)} if isinstance(at, str) else found
