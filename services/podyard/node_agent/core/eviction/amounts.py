"""Exact amounts, and how the reference prints them.

Amounts are whole bytes or pieces, except where somebody wrote a quantity such as `0.3`: then they are
fractions.
"""

from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from podyard.objects.quantity import NANO, Format, Quantity, parse

Amount: TypeAlias = int | Fraction


@lru_cache(maxsize=4096)
def exact(text: str) -> Amount:
    """The amount that a quantity names, not rounded.

    :raises podyard.objects.errors.QuantityError: if it is none
    """
    return of(parse(text))


def of(quantity: Quantity) -> Amount:
    """The amount of a quantity, not rounded."""
    whole, rest = divmod(quantity.nano, NANO)
    return Fraction(quantity.nano, NANO) if rest else whole


def canonical(text: str) -> str:
    """A quantity as Kubernetes writes it back: `1024Mi` is `1Gi`."""
    return str(parse(text))


def binary(amount: int) -> str:
    """Whole bytes with the largest binary suffix that divides them: 104857600 is `100Mi`."""
    return str(Quantity(amount * NANO, Format.BINARY_SI))


def decimal(amount: int) -> str:
    """Whole pieces with the largest decimal suffix that divides them: 5000000 is `5M`."""
    return str(Quantity(amount * NANO))
