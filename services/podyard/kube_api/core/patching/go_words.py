"""Values as Go prints them: what the reference's refusals quote.

Source: Go's package fmt (the verbs %v and %q) and reflect.Type.String.
"""

import re
from decimal import Decimal
from typing import Any, Final

from podyard.objects.documents import is_list, is_mapping

_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}
_UNSAFE: Final = re.compile(r'["\\]|[^ -~]')
_EXPONENT_FROM: Final = 1e21
_EXPONENT_BELOW: Final = 1e-4


def printed(value: Any) -> str:
    """A JSON value by %v: `map[a:1 b:[x y]]`, `<nil>`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_mapping(value):
        return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
    if is_list(value):
        return f"[{' '.join(printed(item) for item in value)}]"
    return _float(value) if isinstance(value, float) else str(value)


def _float(value: float) -> str:
    if value and not _EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM:
        digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
        return f"{digits}e{exponent[0]}{exponent[1:].zfill(2)}"
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def quoted(text: str) -> str:
    """By %q."""
    return '"' + _UNSAFE.sub(lambda found: _escaped(found[0]), text) + '"'


def _escaped(character: str) -> str:
    if (known := _ESCAPES.get(character)) is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def type_of(value: Any) -> str:
    """The Go type that a JSON value is decoded to."""
    if value is None:
        return "<nil>"
    if is_mapping(value):
        return "map[string]interface {}"
    if is_list(value):
        return "[]interface {}"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "float64"
    return "int64" if isinstance(value, int) else "string"
