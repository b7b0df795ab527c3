"""ARCHITECTURE.md's table of promises names tests and mechanisms that there are."""

import re
from pathlib import Path

import pytest

from tests.simulation.sabotage import SABOTAGES

ROOT = Path(__file__).parents[3]
SECTION = "## What is promised, and what proves it"
PROMISED_IN_THE_ISSUE = 11


def rows() -> list[tuple[str, str]]:
    """Promise and proof of each row."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [(cell[0], cell[2]) for cell in cells]


def test_the_table_is_there():
    assert len(rows()) >= PROMISED_IN_THE_ISSUE
    assert all(proof for _, proof in rows())


@pytest.mark.parametrize(("promise", "proof"), rows(), ids=lambda text: text[:40])
def test_what_proves_it_exists(promise: str, proof: str):
    named = re.findall(r"`([^`]+)`", proof)
    assert named, promise
    folder = ROOT / "tests"
    for name in named:
        if name.startswith("tests/"):
            folder = ROOT / name
            assert folder.exists(), name
            folder = folder if folder.is_dir() else folder.parent
        elif name.endswith(".py"):
            places = (ROOT / "tests" / "faults" / name, folder / name)
            assert any(place.exists() for place in places), name
        elif not name.startswith("podyard "):
            start = name.removesuffix("…").rstrip()
            assert any(one.startswith(start) for one in SABOTAGES), f"{name}: no such mechanism in {sorted(SABOTAGES)}"
