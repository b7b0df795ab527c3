"""What pages tell people to type can be typed: commands, their options and their values are those of the
code."""

import shlex
from pathlib import Path

import pytest

from podyard.cli import app

ROOT = Path(__file__).parents[3]
PAGES = ("backup.md", "kubernetes.md", "trust.md")


def commands(page: str) -> list[str]:
    """The lines of its blocks that begin with `podyard`."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("podyard ")]


@pytest.mark.parametrize("line", [line for page in PAGES for line in commands(page)])
def test_a_command_of_a_page_is_one(line: str) -> None:
    _, bound, _ = app.build().parse_args(shlex.split(line, comments=True)[1:], print_error=False, exit_on_error=False)
    assert bound.arguments


def test_the_pages_have_commands() -> None:
    assert all(len(commands(page)) > 1 for page in PAGES)
