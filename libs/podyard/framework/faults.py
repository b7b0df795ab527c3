"""What plugins did amiss, until the shell takes it: pure code neither logs nor counts."""

from collections import deque
from typing import Final

from podyard.framework.status import PluginError

MOST_KEPT: Final = 256
"""Faults between two looks of the shell, which looks after every step; semi-arbitrary."""


class Faults:
    """The last faults that were not taken yet, in order."""

    __slots__ = ("_noted",)

    def __init__(self) -> None:
        self._noted: deque[PluginError] = deque(maxlen=MOST_KEPT)

    def __bool__(self) -> bool:
        """Whether there are any: ask first, most steps have none."""
        return bool(self._noted)

    def note(self, fault: PluginError) -> None:
        """A plugin raised, or answered what its extension point does not know."""
        self._noted.append(fault)

    def take(self) -> list[PluginError]:
        """All since last asked."""
        noted = list(self._noted)
        self._noted.clear()
        return noted
