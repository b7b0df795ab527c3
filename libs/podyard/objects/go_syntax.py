"""Numbers and durations as Go spells them: what Kubernetes' configuration files hold.

Sources: Go's strconv.ParseFloat and time.ParseDuration; the errors are worded as Go words them.
"""

import re
from fractions import Fraction
from typing import Final

_DECIMAL: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPECIAL: Final = re.compile(r"[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](_?[0-9a-fA-F])*\.?([0-9a-fA-F]_?)*[pP][+-]?\d+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([^0-9.]*)", re.ASCII)
_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_INT64_MAX: Final = 2**63 - 1


def parse_float(text: str) -> float:
    """`text` as Go reads a float: no blanks, underscores only after a base prefix, `inf` and `nan` in any
    case.

    :raises ValueError: in Go's words
    """
    if _DECIMAL.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.replace("_", ""))
    raise ValueError(f"strconv.ParseFloat: parsing {_quoted(text)}: invalid syntax")


def parse_duration(text: str) -> float:
    """`text` (`1m30s`, `1.5h`, `-500ms`, `0`) in seconds, exact to the nanosecond.

    :raises ValueError: in Go's words; a number other than 0 needs a unit
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total = 0
    while part := _PART.match(rest):
        unit = _UNITS_NS.get(part[2])
        if unit is None:
            problem = f"unknown unit {_quoted(part[2])} in duration" if part[2] else "missing unit in duration"
            raise ValueError(f"time: {problem} {_quoted(text)}")
        total += int(Fraction(part[1].rstrip(".")) * unit)
        rest = rest[part.end() :]
        if not rest and total <= _INT64_MAX:
            return sign * total / 1e9
    raise ValueError(f"time: invalid duration {_quoted(text)}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def duration_text(seconds: float) -> str:
    """A length of time as Go writes it: `24h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s`. Source:
    time.Duration.String."""
    total = round(seconds * 1e9)
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total < _UNITS_NS["s"]:
        unit = next((unit for unit in ("ms", "µs", "ns") if total >= _UNITS_NS[unit]), "s")
        return f"{sign}{_decimal(total, _UNITS_NS[unit])}{unit}" if total else "0s"
    minutes, rest = divmod(total, _UNITS_NS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _UNITS_NS['s'])}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
