"""The page that says what to do when a check is red, where it is to be had without a checkout."""

import difflib
import re
from pathlib import Path
from typing import Final

from podyard.cli.errors import InputError

INSTALLED: Final = Path(__file__).with_name("checks.md")
"""Where the build puts the page: `force-include` in pyproject.toml."""

IN_CHECKOUT: Final = Path(__file__).parents[3] / "docs" / "checks.md"
"""Its source: modules that are run in a checkout have no copy beside them."""

_SECTION: Final = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def text() -> str:
    """The page, Markdown."""
    return (INSTALLED if INSTALLED.exists() else IN_CHECKOUT).read_text(encoding="utf-8")


def section(name: str) -> str:
    """What it says of one check, with its heading; upper and lower case are the same.

    :raises InputError: there is no such check
    """
    found = {check.lower(): (check, said) for check, said in _SECTION.findall(text())}
    if name.lower() not in found:
        close = difflib.get_close_matches(name.lower(), found, n=1)
        names = ", ".join(check for check, _ in found.values())
        raise InputError(
            f"no check is called {name!r}", f"did you mean {found[close[0]][0]}?" if close else f"there are {names}"
        )
    check, said = found[name.lower()]
    return f"## {check}\n{said}"


def contents() -> str:
    """What it says of all, and a line for each check: its first sentence."""
    page = text()
    lines = [f"- **{check}**: {_first_sentence(said)}" for check, said in _SECTION.findall(page)]
    return page.partition("\n## ")[0] + "\n\n" + "\n".join(lines) + "\n"


def _first_sentence(said: str) -> str:
    """Up to the first full stop, colon or question mark that ends one."""
    [whole] = re.findall(r"\A\s*(.*?[.?])(?:\s|\Z)", said, re.DOTALL)
    return " ".join(whole.split())
