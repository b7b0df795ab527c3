"""docs/rules.md: citations lead to a rule, rules are cited and proven, and nothing outside the repository is
cited."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/rules.md"
OWN = Path(__file__).relative_to(ROOT).as_posix()
CITATION = re.compile(r"docs/rules\.md, ([a-z0-9]+(?:-[a-z0-9]+)+)")
SENTENCES = re.compile(r"[.!?](?: |$)")
MOST_SENTENCES = 3
OUTSIDE = re.compile(
    r"PITFALL|DESIGN(?:\.md)? ?\d|DESIGN\.md|NATS\.md|STYLE\.md|TOOLING\.md|\bshared/|\bNATS \d\b(?!\.)|\(G\d+\)"
)
"""Documents that are in no clone, and numbers of their lists."""

NUMBERED = re.compile(r"def (test_(?:pitfall_)?\d{1,2}_\w+)")
COUNTED = {"test_30_seconds_without_a_binding_go_to_error_backoff"}
"""Tests whose names begin with a number that is an amount, not a place in a list."""

FOLDERS = (".ci", "bench", "deploy", "docs", "examples", "libs", "proto", "services", "tests", "tools")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".conf", ".sh", ".txt", ".json", ""}


def texts() -> Iterator[tuple[str, str]]:
    """Path and content of every text in the repository that is not data."""
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    paths += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        data = name.startswith("tests/conformance/data/") or "__pycache__" in name
        if path.suffix in TEXT and path.is_file() and not data:
            yield name, path.read_text(encoding="utf-8")


def rules() -> dict[str, str]:
    """The text of each rule by its name."""
    found: dict[str, str] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        name, _, body = part.partition("\n")
        assert name not in found, f"{name} is there twice"
        found[name] = body.partition("\n## ")[0]
    return found


def proofs(body: str) -> list[tuple[str, str]]:
    """File and function of each test that a rule names."""
    file, found = "", list[tuple[str, str]]()
    for name in re.findall(r"`([^`]+)`", body.partition("\n- proof:")[2]):
        if name.startswith("tests/"):
            file = name
        else:
            found.append((file, name))
    return found


ALL = rules()


def test_every_citation_leads_to_a_rule() -> None:
    wrong = {
        f"{name}: {found[1] or found[0]}"
        for name, text in texts()
        if name != OWN
        for found in re.finditer(r"docs/rules\.md(?:, ([a-z0-9-]+))?", text)
        if name.endswith(".py") and found[1] not in ALL
    }
    assert not wrong


def test_every_rule_is_cited() -> None:
    cited = {rule for name, text in texts() if name.endswith(".py") for rule in CITATION.findall(text)}
    assert set(ALL) - cited == set()


@pytest.mark.parametrize("name", ALL)
def test_each_rule_says_what_it_is_where_it_comes_from_and_what_proves_it(name: str) -> None:
    assert CITATION.fullmatch(f"docs/rules.md, {name}"), "words with hyphens between them"
    text, source, rest = ALL[name].partition("\n- source: ")
    assert source, "no source"
    assert 1 <= len(SENTENCES.findall(" ".join(text.split()))) <= MOST_SENTENCES
    assert rest.partition("\n- proof:")[0].strip(), "an empty source"
    named = proofs(rest)
    assert named, "no proof"
    for file, function in named:
        assert re.search(rf"def {function}\(", (ROOT / file).read_text(encoding="utf-8")), f"{file}: {function}"


def test_nothing_refers_to_a_document_outside_the_repository() -> None:
    found = {f"{name}: {one}" for name, text in texts() if name != OWN for one in OUTSIDE.findall(text)}
    assert not found


def test_no_test_is_named_by_a_number_of_a_list() -> None:
    found = {(one, name) for name, text in texts() for one in NUMBERED.findall(text)}
    assert {(one, name) for one, name in found if one not in COUNTED} == set()
