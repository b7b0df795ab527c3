"""Quantities, exact as Kubernetes parses, rounds, compares and prints them.

A quantity is held as a whole number of nano-units: nothing in Kubernetes is finer (finer input is rounded
up). Python's integers have no largest value, so sums are exact; `value` and `milli` stop at the rails of a
64-bit integer as Kubernetes does.

Source: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, amount.go, suffix.go.
"""

import re
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from podyard.objects.errors import QuantityError

NANO: Final = 10**9
"""Nano-units in one unit."""
NANO_PER_MILLI: Final = 10**6
INT64_MAX: Final = 2**63 - 1

_ERR_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_ERR_NUMERIC: Final = "unable to parse numeric part of quantity"
_ERR_SUFFIX: Final = "unable to parse quantity's suffix"

_SPLIT: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_LONGEST_TEXT: Final = 256
_LARGEST_EXPONENT: Final = 512
"""Above it the number is far beyond 2^63 whatever its digits (texts are at most 256 long), so the power is
not computed."""


class Format(Enum):
    """How a quantity was written, and is written again."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Quantity(NamedTuple):
    """An exact amount. `nano`: whole nano-units, any size and sign."""

    nano: int
    format: Format = Format.DECIMAL_SI

    def value(self) -> int:
        """Whole units, rounded away from zero, at most 2^63-1 in magnitude. Source: Quantity.Value."""
        return _scaled(self.nano, NANO)

    def milli(self) -> int:
        """Thousandths, rounded away from zero, at most 2^63-1 in magnitude. Source: Quantity.MilliValue."""
        return _scaled(self.nano, NANO_PER_MILLI)

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that loses nothing. Source:
        Quantity.CanonicalizeBytes."""
        return canonical(self)


def _away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _scaled(nano: int, divisor: int) -> int:
    return max(-INT64_MAX - 1, min(INT64_MAX, _away_from_zero(nano, divisor)))


@lru_cache(maxsize=16384, typed=True)
def parse(text: str | float) -> Quantity:
    """`text` as an exact amount. Numbers are accepted as JSON has them.

    As Kubernetes does, it takes a missing number for 0 (`m`, `.`, `+` are 0), allows leading zeros and `1.`,
    caps amounts with a binary suffix at 2^63-1, and rounds what is finer than a nano-unit away from zero.

    :raises QuantityError: with Kubernetes' sentence
    """
    if not isinstance(text, str):
        text = _number_text(text)
    if not text:
        raise QuantityError(text, _ERR_FORMAT)
    split = _SPLIT.fullmatch(text)
    if split is None:
        raise QuantityError(text, _ERR_FORMAT)
    if len(text) > _LONGEST_TEXT:
        raise QuantityError(text, _ERR_NUMERIC)
    sign, whole, fraction, suffix = split.groups(default="")
    magnitude, form = _magnitude(text, int(whole + fraction or "0"), len(fraction), suffix)
    return Quantity(-magnitude if sign == "-" else magnitude, form)


def _number_text(number: float) -> str:
    if isinstance(number, bool) or number != number or number in (float("inf"), float("-inf")):
        raise QuantityError(number, _ERR_FORMAT)
    return str(number)


def _magnitude(text: str, digits: int, places: int, suffix: str) -> tuple[int, Format]:
    """Nano-units of `digits` * 10^-`places` with `suffix`, zero or more."""
    if (power := _BINARY.get(suffix)) is not None:
        nano = _away_from_zero((digits << power) * NANO, 10**places)
        nano = min(nano, INT64_MAX * NANO)
        return nano, (Format.DECIMAL_SI if 0 < nano < NANO else Format.BINARY_SI)
    form = Format.DECIMAL_SI
    exponent = _DECIMAL.get(suffix)
    if exponent is None:
        written = _EXPONENT.fullmatch(suffix)
        if written is None:
            raise QuantityError(text, _ERR_SUFFIX)
        exponent, form = int(written[1]), Format.DECIMAL_EXPONENT
    if digits == 0:
        return 0, form
    shift = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, exponent)) - places + 9
    return (digits * 10**shift if shift >= 0 else _away_from_zero(digits, 10**-shift)), form


@lru_cache(maxsize=16384)
def milli(text: str | float) -> int:
    """Thousandths of the quantity `text`, rounded up: what cpu is counted in.

    :raises QuantityError: if it is none
    """
    return parse(text).milli()


@lru_cache(maxsize=16384)
def value(text: str | float) -> int:
    """Whole units of the quantity `text`, rounded up: bytes or pieces.

    :raises QuantityError: if it is none
    """
    return parse(text).value()


@lru_cache(maxsize=16384)
def nano(text: str | float) -> int:
    """Nano-units of the quantity `text`: exact, for sums and comparisons.

    :raises QuantityError: if it is none
    """
    return parse(text).nano


@lru_cache(maxsize=16384)
def canonical(quantity: Quantity) -> str:
    """How Kubernetes writes `quantity`: `1.5` is `1500m`, `1.5Gi` is `1536Mi`, `0.5Ki` is `512`.

    A text that Kubernetes would keep as it was written (`+1`, `0100`) is written canonically too.
    """
    if quantity.nano == 0:
        return "0"
    sign, magnitude = ("-", -quantity.nano) if quantity.nano < 0 else ("", quantity.nano)
    if quantity.format is Format.BINARY_SI and magnitude >= 1024 * NANO and magnitude % NANO == 0:
        return sign + _binary_text(magnitude // NANO)
    form = Format.DECIMAL_SI if quantity.format is Format.BINARY_SI else quantity.format
    return sign + _decimal_text(magnitude, form)


def _binary_text(units: int) -> str:
    suffix = ""
    for larger in _BINARY:
        if units % 1024:
            break
        units //= 1024
        suffix = larger
    return f"{units}{suffix}"


def _decimal_text(magnitude: int, form: Format) -> str:
    exponent = -9
    while magnitude % 1000 == 0 and (exponent < 18 or form is Format.DECIMAL_EXPONENT):
        magnitude //= 1000
        exponent += 3
    if form is Format.DECIMAL_SI:
        return f"{magnitude}{_DECIMAL_SUFFIX[exponent]}"
    return f"{magnitude}e{exponent}" if exponent else str(magnitude)
