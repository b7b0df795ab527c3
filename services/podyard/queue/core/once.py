"""Ids of bare events that have happened: a repetition does nothing."""

from typing import Final

from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of

REMEMBERED_BYTES: Final = 1024 * 1024
"""What ids that are known to be repetitions may take: some 4,000 of 40 letters."""


class Once:
    """The last ids that came."""

    def __init__(self) -> None:
        self._seen = Kept[str, bool](REMEMBERED_BYTES)

    def is_new(self, id: str) -> bool:  # noqa: A002
        """Whether this id comes for the first time, as far as is remembered; from now on it does not."""
        if id in self._seen:
            return False
        self._seen.keep(id, True, bytes_of(id))
        return True
