"""docs/README.md leads to every page below docs/, and README.md to it."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
LINK = re.compile(r"\]\(([\w./-]+\.md)")


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))}


def test_the_index_has_every_page() -> None:
    index = DOCS / "README.md"
    pages = {path.resolve() for path in (*DOCS.glob("*.md"), *DOCS.glob("reference/*.md"))} - {index.resolve()}
    assert pages - linked(index) == set()
    assert (DOCS / "decisions" / "README.md").resolve() in linked(index), "which has the decisions"


def test_the_readme_leads_to_it() -> None:
    assert (DOCS / "README.md").resolve() in linked(DOCS.parent / "README.md")
