"""Result files: a folder for each row, a file for each run. What is there need not be run again."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from podyard.bench.compare.figures import Run
from podyard.bench.compare.rows import Row
from podyard.cli.errors import CliError

MODE = 0o644


def place(results: Path, row: Row, side: str, pair: int) -> Path:
    """Of the file of a run, whether it is there or not."""
    return results / row.name / f"{pair}-{side}.json"


def read(file: Path, row: Row) -> Run | None:
    """The run that a file has; `None`: there is no file, or it is of other parameters.

    :raises CliError: it is damaged; says which
    """
    try:
        run = msgspec.json.decode(file.read_bytes(), type=Run)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CliError(f"{file}: {error.strerror or error}", "is it yours to read?") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CliError(f"{file}: not a result of bench compare: {error}", "remove it: the run is made again") from error
    return run if run.workload == row.full_name and dict(run.parameters) == dict(row.more) else None


def write(file: Path, run: Run) -> None:
    """Keep a run: the file is there as a whole, or not at all.

    :raises CliError: it cannot be written
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(number, "wb") as part:
                part.write(msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
            Path(name).chmod(MODE)
            Path(name).replace(file)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise CliError(
            f"{file}: cannot be written: {error.strerror or error}", "is there room, and may you?"
        ) from error
