"""The version stands in pyproject.toml; whatever says it again says the same."""

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from podyard.cli.__main__ import main

ROOT = Path(__file__).parents[3]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
A_PYTHON = "Programming Language :: Python :: "


def test_the_installed_metadata_says_it() -> None:
    assert metadata.version("podyard") == VERSION, "make setup installs it again"


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_command_line_says_it(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out == f"podyard {VERSION}\n"


def test_the_changelog_begins_with_it() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    newest, *released = headings
    assert newest in (VERSION, f"{VERSION}, unreleased")
    assert [heading for heading in released if "unreleased" in heading] == []


def test_the_document_of_the_messages_says_it() -> None:
    document = json.loads((ROOT / "proto" / "schema" / "asyncapi.json").read_text(encoding="utf-8"))
    assert document["info"]["version"] == VERSION, "make schema writes it again"


def test_nobody_has_to_change_it_in_readme_or_image() -> None:
    for name in ("README.md", "Makefile", ".env", "deploy/Dockerfile", "docker-compose.yml"):
        assert re.findall(r"podyard[-_:= ]+v?\d+\.\d+", (ROOT / name).read_text(encoding="utf-8")) == [], name


def test_each_python_that_is_promised_is_one_that_may_install_it() -> None:
    found = metadata.metadata("podyard")
    promised = [one.removeprefix(A_PYTHON) for one in found.get_all("Classifier") or () if one.startswith(A_PYTHON)]
    assert found["Requires-Python"] == f">={promised[0]}"
    assert f"\ntest-unit-{promised[-1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), "the newest is tested"
