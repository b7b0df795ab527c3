"""What was counted last, as it is meant to be; and what a count that is another one says.

Both ways: more is a regress, less is recorded, too, so that it stays.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("recorded.json")
PLACE = "tests/counts/recorded.json"
COMMAND = "python -m tests.counts --record"

SLACK = 0.005
"""Share of the recorded count by which a count may differ ..."""
LEAST_SLACK = 0.002
"""... and at least so much."""
OTHER_PYTHON_SLACK = 0.02
"""Share by which Python calls may differ on another version than they were recorded on: calls within the
libraries are among them (seen on 3.13: 0.5 % for one kind of pod, none for the others)."""

WORDS = {
    "stored": "messages stored in CLUSTER per pod",
    "stored_elsewhere": "messages stored in other streams per pod",
    "to_server": "messages to the server per pod",
    "from_server": "messages from the server per pod",
    "receipts": "stored messages received per pod by the {}",
    "objects": "objects decoded per pod by the {}",
    "messages": "messages decoded per pod by the {}",
    "effects": "effects per pod of the {}'s core",
    "rows": "rows that plugins are asked about per pod by the {}",
    "rows_again": "rows that plugins are asked about in a seen cycle, {} pod",
    "calls": "Python calls in a seen cycle, {} pod",
    "first_calls": "Python calls in a first cycle, {} pod",
}

CALLS = frozenset({"calls", "first_calls"})
"""Whose count depends on the Python that runs."""


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    python: str
    """Version on which Python calls were counted, as `3.11`."""
    counts: dict[str, float]
    """By name; what a name means is in `WORDS`."""


def running_python() -> str:
    """The interpreter's version, as `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def read(file: Path = FILE) -> Recorded:
    """
    :raises RuntimeError: if there is no such file, or something else in it
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=Recorded)
    except (OSError, msgspec.MsgspecError) as error:
        raise RuntimeError(f"{file}: {error}; restore it from git, or count anew: {COMMAND}") from error


def write(counts: Mapping[str, float], file: Path = FILE) -> None:
    """From now on these are the counts to be."""
    found = Recorded(python=running_python(), counts=dict(sorted(counts.items())))
    file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def words(name: str) -> str:
    """What a count is of, for people."""
    topic, _, which = name.partition(".")
    return WORDS[topic].format(which)


def slack(name: str, value: float, *, same_python: bool) -> float:
    """By how much a count may differ from the recorded `value`."""
    share = SLACK if same_python or name.partition(".")[0] not in CALLS else OTHER_PYTHON_SLACK
    return max(LEAST_SLACK, share * value)


def fault(name: str, counts: Mapping[str, float], wanted: Recorded) -> str:
    """Why a count is not as recorded; "" if it is."""
    found, value = counts.get(name, 0.0), wanted.counts.get(name, 0.0)
    allowed = slack(name, value, same_python=wanted.python == running_python())
    if abs(found - value) <= allowed:
        return ""
    advice = f"if that is meant, record it in {PLACE}: {COMMAND}"
    better = "fewer than before, which is to stay so: " if found < value else ""
    return f"{words(name)}: {found:.3f}, recorded {value:.3f} ± {allowed:.3f}; {better}{advice}"


def faults(counts: Mapping[str, float], wanted: Recorded) -> list[str]:
    """All that differ, those that are counted or recorded only among them."""
    told = (fault(name, counts, wanted) for name in sorted(counts.keys() | wanted.counts.keys()))
    return [text for text in told if text]
