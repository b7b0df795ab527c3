"""What the workload's file does to nodes and pods while the reference runs, as the benchmark's program saw it
come to pass. Pure.

`reference_test.go` writes a line for each change: seconds since 1970, kind, change, name, labels. It watches
as others do, so a time is a little later than that of the request, in the reference's favour.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

ADDED: Final = "added"
POD: Final = "pod"
FIELDS: Final = 5
LABELS: Final = msgspec.json.Decoder(dict[str, str] | None)
TOGETHER_S: Final = 1.0
"""What is added within so many seconds of the one before is one event: an op that creates many. Between such
ops the benchmark looks once a second whether it may go on."""


class ChangesError(ValueError):
    """The file is not what is expected; the text says in what."""


class Changes(NamedTuple):
    """Of a whole run."""

    events: list[float]
    """Seconds since 1970, in order."""
    labels: Mapping[str, Mapping[str, str]]
    """Of each pod, by namespace and name."""


def read(lines: Iterable[str]) -> Changes:
    """
    :raises ChangesError: for a line that is none
    """
    events: list[float] = []
    labels: dict[str, dict[str, str]] = {}
    added: dict[tuple[str, str], float] = {}
    for line in lines:
        parts = line.split(maxsplit=FIELDS - 1)
        try:
            at, kind, change, name, written = float(parts[0]), *parts[1:]
            found = LABELS.decode(written)
        except (ValueError, IndexError, msgspec.MsgspecError) as error:
            raise ChangesError(f"not a line of changes: {line.strip()[:200]}") from error
        if kind == POD:
            labels[name] = found or {}
        if change == ADDED:
            place = (kind, name.rpartition("/")[0])
            before, added[place] = added.get(place), at
            if before is not None and at - before < TOGETHER_S:
                continue
        events.append(at)
    return Changes(sorted(events), labels)
