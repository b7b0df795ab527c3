"""The commands of README's section about Docker, so that the test runs what people read."""

import re
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"
HEADING: Final = "With Docker"


def commands() -> list[str]:
    """What stands after `$ ` in the section's first block, in order.

    :raises AssertionError: if there is no such section or block
    """
    text = README.read_text(encoding="utf-8")
    section = re.search(rf"^## {HEADING}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"README.md has no section {HEADING!r}"
    block = re.search(r"^```console\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    assert block is not None, f"README.md: section {HEADING!r} has no console block"
    return [line.removeprefix("$ ") for line in block[1].splitlines() if line.startswith("$ ")]
