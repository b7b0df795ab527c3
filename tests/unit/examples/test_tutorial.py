"""docs/write-a-plugin.md and docs/descheduler-policy.md show the code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "write-a-plugin.md").read_text()
DESCHEDULER = (ROOT / "docs" / "descheduler-policy.md").read_text()
FOLDERS = {PAGE: "plugins", DESCHEDULER: "descheduler"}
SHOWN = [
    (folder, block)
    for page, folder in FOLDERS.items()
    for block in re.findall(r"```(?:python|yaml)\n(.*?)```", page, re.DOTALL)
]


@pytest.mark.parametrize(("folder", "block"), SHOWN)
def test_what_the_page_shows_is_what_the_files_hold(folder: str, block: str):
    files = [path for path in (ROOT / "examples" / folder).glob("*") if path.is_file()]
    assert block.strip() in "\n".join(path.read_text() for path in files)


def test_every_example_of_the_descheduler_is_named():
    files = {path.name for path in (ROOT / "examples" / "descheduler").glob("[!_]*.*")}
    assert all(name in DESCHEDULER for name in files)


def test_every_example_is_named():
    files = {path.name for path in (ROOT / "examples" / "plugins").glob("[!_]*.py") if "test_" not in path.name}
    assert files == set(re.findall(r"^\| `(\w+\.py)`", PAGE, re.MULTILINE))


def test_the_template_has_twenty_lines_of_code():
    code = (ROOT / "examples" / "plugins" / "busy_nodes.py").read_text().splitlines()
    assert len([line for line in code if line.strip() and not line.startswith('"""')]) <= 20
