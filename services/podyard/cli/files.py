"""Reading the files that `-f` names: all are checked before anything is sent."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from podyard.cli.errors import InputError, listed
from podyard.cli.options import DEFAULT_NAMESPACE
from podyard.objects.manifests import Contents, Manifest, read

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
STANDARD_INPUT: Final = "-"
NOT_APPLIED: Final = "nothing was applied; mend the file and try again"


def read_all(names: Iterable[str], *, stdin: Callable[[], str] | None = None) -> list[Manifest]:
    """Objects of all files, in their order.

    :raises InputError: with all that is wrong with them, or if there is nothing in them
    """
    contents = read_contents(names, stdin=stdin)
    if wrong := [*contents.duplicates, *contents.faults]:
        raise InputError(listed([str(fault) for fault in wrong]), NOT_APPLIED)
    return contents.manifests


def read_contents(names: Iterable[str], *, stdin: Callable[[], str] | None = None) -> Contents:
    """What all files hold, in their order.

    :raises InputError: a file cannot be read, or there is nothing in them
    """
    found = Contents(manifests=[], faults=[], duplicates=[])
    for source, text in (pair for name in names for pair in _texts(name, stdin or sys.stdin.read)):
        contents = read(source, text)
        found.manifests.extend(contents.manifests)
        found.faults.extend(contents.faults)
        found.duplicates.extend(contents.duplicates)
    if not found.manifests and not found.faults:
        raise InputError("no objects in the given files", "name files with -f FILE, or - for standard input")
    return found


def settle_namespace(manifest: Manifest, wanted: str | None) -> None:
    """Give a namespaced object the namespace it is to live in.

    :raises InputError: it names another than `--namespace`
    """
    metadata = manifest.document["metadata"]
    present: str = metadata.get("namespace", "")
    custom = manifest.kind.custom
    if not (manifest.kind.namespaced and (not custom or present or wanted)):
        return
    if wanted and present and present != wanted:
        fault = manifest.fault("metadata.namespace", f'is "{present}", but --namespace says "{wanted}"')
        raise InputError(str(fault), "leave one of them out")
    metadata["namespace"] = present or wanted or DEFAULT_NAMESPACE


def _texts(name: str, stdin: Callable[[], str]) -> list[tuple[str, str]]:
    if name == STANDARD_INPUT:
        return [("standard input", stdin())]
    path = Path(name)
    if path.is_dir():
        files = sorted(found for found in path.iterdir() if found.suffix in SUFFIXES and found.is_file())
        if not files:
            raise InputError(f"{name}: no .yaml, .yml or .json file in this directory")
        return [(str(found), _text(found)) for found in files]
    return [(name, _text(path))]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "is the name right?") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
