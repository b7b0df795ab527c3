"""Links from one page of the repository to another lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links() -> Iterator[tuple[Path, Path, str]]:
    """Page, the page or file that it links to, and the heading there."""
    for page in PAGES:
        for target, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            yield page, page.parent / target if target else page, anchor


def test_each_leads_to_a_file_and_a_heading() -> None:
    wrong = [
        (page.relative_to(ROOT).as_posix(), target.name, anchor)
        for page, target, anchor in links()
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]
    assert wrong == []


def test_there_are_some() -> None:
    assert len(list(links())) > len(PAGES)
