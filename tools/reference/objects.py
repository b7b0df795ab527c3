"""What Podyard gives a meaning in objects, and what nodes are short of."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from podyard.node_agent.core.eviction import signals, thresholds
from tools.reference.markdown import page, table

ABOUT: Final = """Annotations and labels of Kubernetes itself mean here what they mean there. The first table has
Podyard's own and the descheduler's; the second the eviction signals, which
[a KubeletConfiguration](../kubelet-configuration.md) sets thresholds for, and `podyard publish --scenario`
and `podyard pressure` say of virtual nodes (`podyard.cli.scenario` has the format)."""

ROOT: Final = Path(__file__).parents[2]
DOMAINS: Final = ("podyard.io/", "descheduler.alpha.kubernetes.io/")
ELSEWHERE: Final = "services/podyard/cli"
"""Commands use the words of services; they give them no meaning."""


class Word(NamedTuple):
    """An annotation, a label or another name of these domains."""

    text: str
    meaning: str
    module: str


def made() -> str:
    """The page."""
    rows = ((f"`{one.text}`", one.meaning, f"`{one.module}`") for one in sorted(words()))
    parts = [
        "## Annotations and labels",
        table(("name", "what it is", "declared at"), rows),
        "## Eviction signals",
        table(("signal", "resource", "counted in", "condition of the node", "hard threshold by default"), _signals()),
    ]
    return page("Annotations, labels and signals", " ".join(ABOUT.split()), parts)


def words() -> Iterator[Word]:
    """Constants of modules that hold such a name, with the docstring below."""
    for source in ("proto", "libs", "services"):
        for path in (ROOT / source).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if any(domain in text for domain in DOMAINS) and ELSEWHERE not in path.as_posix():
                module = ".".join(path.relative_to(ROOT / source).with_suffix("").parts)
                yield from _declared(ast.parse(text), module)


def _declared(tree: ast.Module, module: str) -> Iterator[Word]:
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.AnnAssign(value=ast.Constant(value=str() as text)) if text.startswith(DOMAINS):
                yield Word(text, _docstring(below), module)
            case _:
                pass


def _docstring(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str() as said)):
            return " ".join(said.split())
        case _:
            return ""


def _signals() -> Iterator[tuple[str, ...]]:
    for signal in signals.ALL.values():
        unit = "bytes" if signal.in_bytes else "pieces"
        usual = thresholds.DEFAULT_HARD.get(signal.name, "")
        yield f"`{signal.name}`", signal.resource, unit, signal.condition, f"`{usual}`" if usual else "none"
