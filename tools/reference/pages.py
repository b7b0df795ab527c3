"""Which pages there are."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.reference import commands, messages, objects, settings

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "commands.md": commands.made,
    "messages.md": messages.made,
    "objects.md": objects.made,
    "settings.md": settings.made,
}
"""Makers by name."""
