"""Ten bundles with the kinds, versions and field paths of well-known ones, each named for the public one
whose paths it has; values and names are invented."""

from pathlib import Path
from typing import Final

BUNDLES: Final = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.yaml"))}
"""Manifests by name."""
