"""How long to wait after failures in a row."""

from typing import Final

MOST_DOUBLINGS: Final = 16
"""Many more than lead to any longest wait here; 2.0 to the power of 1,024 is more than a float holds."""


def doubling_s(first_s: float, longest_s: float, failures: int) -> float:
    """`first_s` after one failure, twice as long after each further one, at most `longest_s`.

    :param failures: in a row, 1 or more
    """
    return min(first_s * 2.0 ** min(failures - 1, MOST_DOUBLINGS), longest_s)
