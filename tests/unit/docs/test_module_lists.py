"""A package whose docstring lists its modules lists all of them, and none that is not there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LISTED = re.compile(r"^- (`\w+/?`(?:, `\w+/?`)*) ", re.MULTILINE)
"""The beginning of an item: one name in quotes, or several."""
NAME = re.compile(r"`(\w+)(?:/|\.py)?`")


def docstring(package: Path) -> str:
    """What the package says of itself."""
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def listed(text: str) -> set[str]:
    """Names that the items of its list begin with."""
    return {name for names in LISTED.findall(text) for name in NAME.findall(names)}


def modules(package: Path) -> set[str]:
    """Modules and packages that it holds; a folder of one plugin is known by its `plugin.py`."""
    packages = {path.parent for path in package.glob("*/__init__.py") if not (path.parent / "plugin.py").exists()}
    return {path.stem for path in {*package.glob("*.py"), *packages} if not path.stem.startswith("__")}


LISTS = {
    path.parent.relative_to(ROOT).as_posix(): path.parent
    for source in ("proto", "libs", "services", "bench")
    for path in sorted((ROOT / source).rglob("__init__.py"))
    if "Modules:" in (text := docstring(path.parent)) or listed(text) & modules(path.parent)
}


def test_packages_list_their_modules() -> None:
    assert len(LISTS) > 20


@pytest.mark.parametrize("package", LISTS)
def test_the_list_is_whole(package: str) -> None:
    """A module may be named within another's item."""
    text = docstring(LISTS[package])
    assert modules(LISTS[package]) - {*NAME.findall(text)} == set()


@pytest.mark.parametrize("package", LISTS)
def test_what_is_listed_is_there(package: str) -> None:
    assert [name for name in listed(docstring(LISTS[package])) if not _is_there(LISTS[package], name)] == []


def _is_there(package: Path, name: str) -> bool:
    return (package / name).is_dir() or (package / f"{name}.py").is_file()
