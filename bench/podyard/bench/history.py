"""The file of all measurements: a JSON array, an entry a line, so that one more is one line in a diff.

Every line after the first entry's begins with the comma, so that no other line changes. It is only ever
replaced as a whole.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from podyard.bench import machine
from podyard.bench.machine import Commit
from podyard.bench.performance import Entry
from podyard.cli.errors import CliError, InputError

PLACE: Final = Path("docs/performance.json")
"""In a checkout."""
NEIGHBOUR: Final = Path("services/podyard")
"""What a checkout has, too."""
MENDING: Final = "mend it, or take it back with `git checkout -- FILE`; an empty history is the two characters []"
MODE: Final = 0o644


def find(code: Path = Path(__file__)) -> Path | None:
    """The history in the checkout that `code`, by default this very module, is in; `None`: it is installed
    elsewhere."""
    for place in code.resolve().parents:
        if (place / PLACE).is_file() and (place / NEIGHBOUR).is_dir():
            return place / PLACE
    return None


def commit() -> Commit:
    """That of the checkout that this is run from, as far as there is one."""
    kept = find()
    return Commit() if kept is None else machine.commit_of(kept.parent.parent, kept)


def read(file: Path) -> list[Entry]:
    """All entries, oldest first.

    :raises InputError: if there is no such file
    :raises CliError: if it is damaged; says where
    """
    return [_entry(file, number, raw) for number, raw in enumerate(_raws(file), start=1)]


def check(file: Path) -> None:
    """Whether an entry could be added, before a long measurement.

    :raises CliError: if not
    """
    if file.exists():
        read(file)
    if not os.access(file.parent, os.W_OK | os.X_OK):
        what = "may not be written to" if file.parent.is_dir() else "is no directory"
        raise InputError(f"{file}: {file.parent} {what}", "name another file with --history FILE")


def append(file: Path, entry: Entry) -> None:
    """Add an entry; the file is made if it is not there. Whatever happens meanwhile, the file is the old one
    or the new one.

    :raises CliError: if the file is damaged, or cannot be written
    """
    target = file.resolve()
    there = _raws(target) if target.exists() else []
    for number, raw in enumerate(there, start=1):
        _entry(target, number, raw)
    lines = [msgspec.json.format(bytes(raw), indent=0) for raw in (*there, msgspec.json.encode(entry))]
    try:
        _replace(target, b"[\n" + b"\n,".join(lines) + b"\n]\n")
    except OSError as error:
        raise CliError(
            f"{file}: cannot be written: {error.strerror or error}", "is there room, and may you?"
        ) from error


def _raws(file: Path) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}", "is the name right?") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CliError(f"{file}: no JSON array of measurements: {error}", MENDING.replace("FILE", str(file))) from error


def _entry(file: Path, number: int, raw: msgspec.Raw) -> Entry:
    try:
        return msgspec.json.decode(raw, type=Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CliError(f"{file}: entry {number}: {error}", MENDING.replace("FILE", str(file))) from error


def _replace(file: Path, content: bytes) -> None:
    mode = file.stat().st_mode & 0o777 if file.exists() else MODE
    number, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(number, "wb") as temporary:
            temporary.write(content)
            temporary.flush()
            os.fsync(temporary.fileno())
        Path(name).chmod(mode)
        Path(name).replace(file)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
