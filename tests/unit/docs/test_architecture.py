"""ARCHITECTURE.md and its lists of what goes with a change: every file, package and name of the code that
they give is there, and every package is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LISTS = (ROOT / "docs/where-it-belongs.md").read_text(encoding="utf-8")
FOLDERS = ("bench", "deploy", "docs", "examples", "libs", "proto", "services", "tests", "tools")
FILES = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for path in (*ROOT.iterdir(), *(found for folder in FOLDERS for found in (ROOT / folder).rglob("*")))
]
PACKAGES = sorted(
    path.parent.name
    for source in ("libs", "services", "bench")
    for path in ROOT.glob(f"{source}/podyard/*/__init__.py")
)
NAMED = sorted(
    set(
        re.findall(
            r"`([\w./-]+\.(?:py|md|toml|conf|json)|(?:bench|libs|services|proto|tests|docs)/[\w/]+)`", PAGE + LISTS
        )
    )
)
IDENTIFIERS = sorted(set(re.findall(r"`([A-Za-z_]\w*)`", LISTS)))
CODE = set(
    re.findall(
        r"\w+",
        "\n".join(
            path.read_text(encoding="utf-8")
            for folder in ("bench", "libs", "proto", "services", "tests")
            for path in (ROOT / folder).rglob("*.py")
        ),
    )
)


def test_files_are_named() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", NAMED)
def test_each_file_that_is_named_is_there(name: str) -> None:
    assert any(path.endswith(f"/{name.rstrip('/')}") for path in FILES)


def test_each_name_of_the_code_is_there() -> None:
    assert set(IDENTIFIERS) - CODE == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_a_paragraph(package: str) -> None:
    """It names the file to open first."""
    found = re.search(rf"^\*\*`{package}`\*\* \(`[^`]+\.py`\)", PAGE, re.MULTILINE)
    assert found, f"no paragraph begins with **`{package}`** and a file"
