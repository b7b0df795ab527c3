"""The commands of README's section about Docker, so that the test runs what people read."""

import re
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"
HEADING: Final = "With Docker"


def commands(block: int = 0) -> list[str]:
    """What stands after `$ ` in a block of the section, in order.

    :param block: 0: what everybody types; 1: who has a `podyard` on his machine, too

    :raises AssertionError: if there is no such section or block
    """
    text = README.read_text(encoding="utf-8")
    section = re.search(rf"^## {HEADING}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"README.md has no section {HEADING!r}"
    blocks = re.findall(r"^```console\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    assert len(blocks) > block, f"README.md: section {HEADING!r} has {len(blocks)} console blocks"
    return [line.removeprefix("$ ") for line in blocks[block].splitlines() if line.startswith("$ ")]
