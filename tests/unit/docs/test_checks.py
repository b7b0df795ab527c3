"""docs/checks.md has a section for every check that the code makes, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "checks.md"
ASKED: Final = frozenset({"set_ready", "trouble", "watch"})
"""Methods of `Health` whose first argument names a check."""
BY_ARGUMENT: Final = frozenset({"queue", "binder"})
"""Named by whom a scheduler asks (`shell/asking.py`)."""
OF_LIFE: Final = frozenset({"ping", "loop"})
"""Made by `Health` itself."""


def test_every_check_has_a_section_and_every_section_a_check() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {name for part in ("libs", "services") for path in (ROOT / part).rglob("*.py") for name in checks(path)}
    assert len(found) > 12, "the search still finds them"
    assert sorted(sections) == sorted(found | BY_ARGUMENT | OF_LIFE)


def checks(path: Path) -> Iterator[str]:
    """Names that are written, or stand in a constant of the module, where a check is made."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        node.target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKED):
            continue
        if not ast.unparse(node.func.value).endswith("health"):
            continue
        match node.args[0]:
            case ast.Constant(value=str() as name):
                yield name
            case ast.Name(id=name) if name in constants:
                yield constants[name]
            case _:
                pass
