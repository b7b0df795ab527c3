"""The boundary of a core that is called by its methods, where there is no `step` yet.

As of `driver`: a core that raised is called no more, and its term ends.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")


class Guard(Generic[M]):
    """Of one core, for one term."""

    def __init__(self, failed: Callable[[M, Exception], None]) -> None:
        """:param failed: told once, of what the core raised on: ends the term"""
        self.over = False
        """The core is called no more."""
        self._failed = failed

    def call(self, told: M, method: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R | None:
        """What the core's method returns; None after a core that raised.

        :param told: what the core is told by it
        """
        if self.over:
            return None
        try:
            return method(*arguments, **options)
        except Exception as error:  # boundary: a core that raised is not used again
            self.over = True
            self._failed(told, error)
            return None
