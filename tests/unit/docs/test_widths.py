"""Prose has lines of at most 110 characters: pages, comments, docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
WIDEST = 110

SOURCES = ("proto", "libs", "services", "bench", "tests", "tools", "examples")


def in_page(text: str) -> Iterator[int]:
    """Long lines of a Markdown page, by number. A table's row, code and a word alone cannot be broken."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        code = fenced or line.startswith(("    ", "|"))
        if len(line) > WIDEST and not code and not _is_one_word(line):
            yield number


def _is_one_word(line: str) -> bool:
    """Whether it holds one link or one piece of code, which has to stay in one piece."""
    text = line.strip().lstrip("-*# ").rstrip(".,:;")
    return " " not in text or (text[0] == text[-1] == "`" and text.count("`") == 2)


def in_module(text: str) -> Iterator[int]:
    """Lines of comments and docstrings that are too long, by number; code is the formatter's business."""
    long = _long_in_comments_and_quotes(text)
    docstrings = {
        number
        for node in (ast.walk(ast.parse(text)) if long else ())
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in long:
        if number in docstrings or line.startswith("#"):
            yield number


def _long_in_comments_and_quotes(text: str) -> list[tuple[int, str]]:
    """Long lines that may be prose, by number; found without parsing, which takes its time."""
    quoted, found = False, list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        prose = quoted or stripped.startswith(("#", '"""', 'r"""'))
        if len(line) > WIDEST and prose and not _is_one_word(stripped.strip("\"' ")):
            found.append((number, stripped))
        quoted ^= line.count('"""') % 2 == 1
    return found


def wide() -> dict[str, int]:
    """The first long line of each file that has any."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    modules = [path for source in SOURCES for path in (ROOT / source).rglob("*.py")]
    found: dict[str, int] = {}
    for path in (*pages, *modules, *(path for source in SOURCES for path in (ROOT / source).rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        lines = in_module(text) if path.suffix == ".py" else in_page(text)
        if first := next(lines, None):
            found[path.relative_to(ROOT).as_posix()] = first
    return found


def test_no_line_of_prose_is_too_wide() -> None:
    assert {f"{name}:{line}" for name, line in wide().items()} == set()
