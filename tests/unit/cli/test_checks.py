"""`podyard checks`: the page about red checks, for whoever has no checkout."""

from pathlib import Path

import pytest

from podyard.cli import checks_page
from podyard.cli.__main__ import main

PAGE = checks_page.IN_CHECKOUT.read_text(encoding="utf-8")


def test_it_prints_the_section_of_a_check_as_the_page_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "leaderElection"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("## leaderElection\n")
    assert shown in PAGE
    assert shown.count("## ") == 1


def test_upper_and_lower_case_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "leaderelection"]) == 0
    assert capsys.readouterr().out.startswith("## leaderElection\n")


def test_links_lead_to_pages_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    main(["checks", "certificates"])
    assert "serving (docs/serving.md)" in capsys.readouterr().out


def test_without_a_name_every_check_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- **")]
    assert len(lines) == PAGE.count("\n## ")
    assert "- **nats**: No connection." in lines


@pytest.mark.parametrize(
    ("name", "advice"), [("nat", "did you mean nats?"), ("leaderelektion", "did you mean leaderElection?"), ("x", "there are ping, ")]
)  # fmt: skip
def test_an_unknown_check_is_told(name: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", name]) == 2
    told = capsys.readouterr().err
    assert f"no check is called {name!r}" in told
    assert advice in told


def test_the_page_beside_the_module_counts_where_the_build_has_put_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = tmp_path / "checks.md"
    installed.write_text("# Page\n\nSaid.\n\n## nats\n\nOf the wheel.\n", encoding="utf-8")
    monkeypatch.setattr(checks_page, "INSTALLED", installed)
    assert main(["checks", "nats"]) == 0
    assert "Of the wheel." in capsys.readouterr().out
