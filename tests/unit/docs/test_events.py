"""docs/events.md has every reason of an event that the code declares, and where."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/events.md").read_text(encoding="utf-8")
SOURCES = [ROOT / "proto", ROOT / "libs", ROOT / "services"]
DECLARED = re.compile(r"\bReason\(\s*\"(\w+)\"\s*\)")


def rows() -> list[list[str]]:
    """The cells of the tables of reasons."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    return [row for row in found if row[0].startswith("`")]


def declared() -> set[tuple[str, str]]:
    """Reasons by the module that declares them."""
    return {
        (reason, ".".join(path.relative_to(source).with_suffix("").parts))
        for source in SOURCES
        for path in source.rglob("*.py")
        for reason in DECLARED.findall(path.read_text(encoding="utf-8"))
    }


def test_the_page_lists_every_reason_where_it_is_declared() -> None:
    told = [(row[0].strip("`"), row[5].rpartition("`podyard.")[2].strip("`")) for row in rows()]
    assert len(told) == len(set(told))
    assert {(reason, f"podyard.{module}") for reason, module in told} == declared()


def test_each_row_says_type_and_reporter() -> None:
    assert len(rows()) > 40
    for row in rows():
        assert len(row) == 6, row
        assert row[1] in ("Normal", "Warning"), row
        assert row[3], row


def test_nothing_is_sent_but_under_a_declared_reason() -> None:
    """The type checker holds that a reason is one; made of other texts are those of plugins, resources and
    clients alone, which the page tells of in words."""
    made = {
        path.relative_to(ROOT).as_posix(): len(re.findall(r"\bReason\((?!\s*\")", path.read_text(encoding="utf-8")))
        for source in SOURCES
        for path in source.rglob("*.py")
    }
    assert {path: number for path, number in made.items() if number} == {
        "libs/podyard/telling/events.py": 1,
        "services/podyard/kube_api/core/event_rules.py": 1,
        "services/podyard/descheduler/spans_and_events.py": 1,
        "services/podyard/node_agent/core/admission.py": 1,
    }
