"""The tutorial and the how-to guides are real: each command, played in order in a lab, prints what the page
shows."""

from pathlib import Path
from typing import Final

import pytest

from podyard.cli.app import COMMANDS
from tests.e2e.played import Shown, alike, commands, lab, same

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("tutorial", "why-is-a-pod-pending", "test-a-policy", "drain-a-node", "read-an-eviction")


def shown(page: str) -> list[Shown]:
    """What a page has people type."""
    return commands((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", PAGES)
async def test_each_command_prints_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    up, *steps = shown(page)
    assert up.words[0] == "up"
    async with lab(up.words, tmp_path) as url:
        for step in steps:
            await same(step, url)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_commands_of_ours_and_shows_what_they_print(page: str) -> None:
    _, *steps = shown(page)
    assert len(steps) >= 3
    assert {step.words[0] for step in steps} <= {name for name, _, _ in COMMANDS}
    assert all(step.output.strip("\n. ") for step in steps), "an output of dots alone would hold nothing"


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert alike("a\n...\nd  5s\n", "a\nb\nc\nd    12s\n")
    assert alike("a\n...\nd\n...\n", "a\nd\n")
    assert not alike("a\n...\nd\n", "a\nb\nc\n")
    assert not alike("bound to node-4\n", "bound to node-3\n")


@pytest.mark.parametrize("typed", ["kubectl get pods", "podyardx", "rm -r data"])
def test_nothing_else_is_to_be_typed(typed: str) -> None:
    with pytest.raises(AssertionError, match="no test runs"):
        commands(f"```console\n$ podyard get pods\n$ {typed}\n```\n")
