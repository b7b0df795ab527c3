"""docs/write-a-plugin.md shows the code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "write-a-plugin.md").read_text()
SOURCES = "\n".join(path.read_text() for path in (ROOT / "examples" / "plugins").glob("*") if path.is_file())


@pytest.mark.parametrize("block", re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL))
def test_what_the_page_shows_is_what_the_files_hold(block: str):
    assert block.strip() in SOURCES


def test_every_example_is_named():
    files = {path.name for path in (ROOT / "examples" / "plugins").glob("[!_]*.py") if "test_" not in path.name}
    assert files == set(re.findall(r"^\| `(\w+\.py)`", PAGE, re.MULTILINE))


def test_the_template_has_twenty_lines_of_code():
    code = (ROOT / "examples" / "plugins" / "busy_nodes.py").read_text().splitlines()
    assert len([line for line in code if line.strip() and not line.startswith('"""')]) <= 20
