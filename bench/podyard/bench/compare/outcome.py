"""What a side hands back of a run, and how it fails."""

from typing import Any, NamedTuple

from podyard.bench.compare.figures import Figures


class Outcome(NamedTuple):
    """A run that was measured."""

    figures: Figures
    versions: dict[str, str]
    notes: list[str]
    said: dict[str, Any]


class RunError(Exception):
    """A run failed, or its figures would be of something else; the text says why and where its log is."""
