"""ARCHITECTURE.md: every file and package that it names is there, and every package is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FOLDERS = ("deploy", "docs", "examples", "libs", "proto", "services", "tests", "tools")
FILES = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for path in (*ROOT.iterdir(), *(found for folder in FOLDERS for found in (ROOT / folder).rglob("*")))
]
PACKAGES = sorted(
    path.parent.name for source in ("libs", "services") for path in ROOT.glob(f"{source}/podyard/*/__init__.py")
)
NAMED = sorted(
    set(re.findall(r"`([\w./-]+\.(?:py|md|toml|conf|json)|(?:libs|services|proto|tests|docs)/[\w/]+)`", PAGE))
)


def test_files_are_named() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", NAMED)
def test_each_file_that_is_named_is_there(name: str) -> None:
    assert any(path.endswith(f"/{name.rstrip('/')}") for path in FILES)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_a_paragraph(package: str) -> None:
    """It names the file to open first."""
    found = re.search(rf"^\*\*`{package}`\*\* \(`[^`]+\.py`\)", PAGE, re.MULTILINE)
    assert found, f"no paragraph begins with **`{package}`** and a file"
