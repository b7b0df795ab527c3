"""What cases of a suite look like."""

from collections.abc import Callable
from typing import Any

import msgspec


def of(given_type: Any, expected_type: Any) -> Callable[[dict[str, Any], Any], None]:
    """A suite's `check`: what is given and what is expected have these types.

    It raises `msgspec.ValidationError` if a case has another shape than the suite compares.
    """

    def check(given: dict[str, Any], expected: Any) -> None:
        msgspec.convert(given, given_type)
        msgspec.convert(expected, expected_type)

    return check
