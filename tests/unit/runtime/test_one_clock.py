"""Nobody asks the wall clock but the steady clock: a duration on it would last an hour longer when somebody
sets it back."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
CLOCK = ROOT / "libs/podyard/runtime/clock.py"
PRODUCT = sorted(path for top in ("proto", "libs", "services", "examples") for path in (ROOT / top).rglob("*.py"))

OF_TIME = {"time", "time_ns", "clock_gettime", "clock_gettime_ns", "localtime", "gmtime", "ctime", "asctime"}
"""What `time` has that tells, or is told, what time the wall clock shows."""
OF_DATES = {"now", "utcnow", "today"}
"""The same of `datetime.datetime` and `datetime.date`."""


def wall_clock_uses(text: str) -> Iterator[str]:
    """Lines at which a module refers to the wall clock, called or not."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (f"{node.lineno}: from time import {one.name}" for one in node.names if one.name in OF_TIME)
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rpartition(".")[2]
            if (owner == "time" and node.attr in OF_TIME) or (owner in ("datetime", "date") and node.attr in OF_DATES):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_only_the_clock_asks_the_wall_clock() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in PRODUCT
        if path != CLOCK
        for line in wall_clock_uses(path.read_text(encoding="utf-8"))
    ]
    assert not found, "ask podyard.runtime.clock, or be handed a `now`: " + ", ".join(found)


def test_it_is_seen_in_every_spelling() -> None:
    text = """
import time, datetime
from time import time as now, monotonic
default = time.time
started = datetime.datetime.now(datetime.UTC)
day = date.today()
fine = time.monotonic(), datetime.fromtimestamp(0)
"""
    assert [found.partition(":")[0] for found in sorted(wall_clock_uses(text))] == ["3", "4", "5", "6"]


def test_the_clock_is_found_where_it_is() -> None:
    assert list(wall_clock_uses(CLOCK.read_text(encoding="utf-8")))
