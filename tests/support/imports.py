"""Who imports whom in a tree of Python packages: also within functions and under `TYPE_CHECKING`.

import-linter leaves such loops alone as long as layers hold; a reader does not.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

Imports: TypeAlias = Mapping[str, frozenset[str]]
"""By module: the modules of the same trees that it imports, wherever in it that stands."""


def modules(roots: Collection[Path]) -> dict[str, Path]:
    """The file of each module below `roots`, which are parts of one namespace; a package goes by its own
    name.
    """
    found: dict[str, Path] = {}
    for root in roots:
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(files: Mapping[str, Path]) -> Imports:
    """What each of these modules imports of the others."""
    return {module: frozenset(_imported(module, path, files)) - {module} for module, path in files.items()}


def _imported(module: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            whence = _whence(node, package)
            for alias in node.names:
                inner = f"{whence}.{alias.name}"
                if inner in files:
                    yield inner
                elif whence in files:
                    yield whence


def _whence(node: ast.ImportFrom, package: str) -> str:
    """The module named after `from`; a dot before it is the package of the module that says so."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def folders(graph: Imports, files: Mapping[str, Path]) -> Imports:
    """Which folders import which: two modules that do stand for the outermost folders in which they are
    apart.

    A module that lies beside a folder stands for none: it may use that folder and be used by it.
    """
    packages = [module for module in files if files[module].name == "__init__.py"]
    found: dict[str, set[str]] = {package: set() for package in packages}
    for module, imported in graph.items():
        for other in imported:
            here, there = _apart(module, other)
            if here in found and there in found:
                found[here].add(there)
    return {package: frozenset(others) for package, others in found.items()}


def _apart(module: str, other: str) -> tuple[str, str]:
    """The shortest beginnings of two dotted names that differ."""
    mine, others = module.split("."), other.split(".")
    alike = next((at for at, (one, two) in enumerate(zip(mine, others, strict=False)) if one != two), None)
    return ("", "") if alike is None else (".".join(mine[: alike + 1]), ".".join(others[: alike + 1]))


def reached(graph: Imports, entries: Collection[str]) -> set[str]:
    """The modules that `entries` import, directly or not, with their packages and themselves."""
    found: set[str] = set()
    ahead = list(entries)
    while ahead:
        module = ahead.pop()
        if module in graph and module not in found:
            found.add(module)
            ahead += [*graph[module], module.rpartition(".")[0]]
    return found


def loops(graph: Imports) -> list[list[str]]:
    """Sets of modules of which each imports every other one, directly or not; each set in order of names."""
    found: list[list[str]] = []
    ahead = {module: _beyond(graph, module) for module in graph}
    left = set(graph)
    for module in sorted(graph):
        mates = {other for other in ahead[module] if module in ahead[other]} & left
        if module in mates:
            found.append(sorted(mates))
            left -= mates
    return found


def _beyond(graph: Imports, module: str) -> set[str]:
    """What a module imports, directly or not: itself only if it is in a loop."""
    found: set[str] = set()
    ahead = list(graph[module])
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += graph[one]
    return found
