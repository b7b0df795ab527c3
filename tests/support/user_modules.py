"""Modules of a user, written by a test and found by their name."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes a module that can be imported; gives its name."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def write(text: str) -> str:
        name = f"user_plugins_{tmp_path.name.replace('-', '_')}_{len(made)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)
