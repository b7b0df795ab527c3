"""What a core counts while it works, for metrics: taken by so many, or once a second. By itself each costs as
much as it tells."""

from collections.abc import Callable
from typing import Final, NoReturn

import anyio

TOGETHER: Final = 256
"""So many are told of at once."""
EVERY_S: Final = 1.0
"""So long what is counted waits at most: a scrape shows what was before."""


class Counting:
    """Of one core: after each of its steps somebody calls `look`, and `run` runs beside it."""

    def __init__(self, held: Callable[[], int], take: Callable[[], None]) -> None:
        """
        :param held: how much is counted that was not taken
        :param take: takes all of it, and tells the metrics; called when there is nothing, too
        """
        self._held = held
        self._take = take

    def look(self) -> None:
        """Take what there is, if it is enough."""
        if self._held() >= TOGETHER:
            self._take()

    async def run(self) -> NoReturn:
        """Take what there is every second, and at the end."""
        try:
            while True:
                await anyio.sleep(EVERY_S)
                self._take()
        finally:
            self._take()
