"""What the scripts say differs stands in docs/kubectl.md, too."""

from pathlib import Path

import pytest

from tests.kube.side_by_side import script

PAGE = Path(__file__).parents[3] / "docs/kubectl.md"


def told() -> set[str]:
    """First cells of the table of what differs."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("## What differs")
    return {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")}


@pytest.mark.parametrize("name", script.names())
def test_a_reason_is_a_row_of_the_page(name: str) -> None:
    assert {step.differs for step in script.load(name).steps if step.differs} <= told()
