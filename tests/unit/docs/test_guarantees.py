"""docs/guarantees.md: what proves a promise is a test or a mechanism that there is."""

import re
from pathlib import Path

import pytest

from tests.simulation.sabotage import SABOTAGES

ROOT = Path(__file__).parents[3]
SECTION = "## What is promised"
PROMISED_IN_THE_BEGINNING = 20


def rows() -> list[tuple[str, str]]:
    """Each promise, and what proves it."""
    page = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    section = page.partition(f"\n{SECTION}\n")[2].partition("\n## ")[0]
    parts = [part.partition("\n") for part in section.split("\n### ")[1:]]
    return [(title, body.partition("- proved by: ")[2]) for title, _, body in parts]


def test_none_is_without_proof():
    assert len(rows()) >= PROMISED_IN_THE_BEGINNING
    assert [promise for promise, proof in rows() if not proof] == []


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
