"""What Kubernetes fixes for all is written once in the product."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = [ROOT / "proto", ROOT / "libs", ROOT / "services", ROOT / "bench"]


def files_with(text: str) -> list[str]:
    """Files in which a literal is this very text."""
    return [
        path.relative_to(ROOT).as_posix()
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        if any(
            isinstance(node, ast.Constant) and node.value == text
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    ]


def test_the_default_scheduler_is_named_once() -> None:
    assert files_with("default-scheduler") == ["proto/podyard/proto/message.py"]
