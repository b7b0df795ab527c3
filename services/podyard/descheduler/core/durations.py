"""Durations in plugin arguments: Go's text form in the file, seconds in here."""

from typing import Any

from podyard.objects import go_syntax


class Duration:
    """A length of time, e.g. `1h30m`."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __str__(self) -> str:
        return go_syntax.duration_text(self.seconds)

    def __repr__(self) -> str:
        return f"Duration({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.seconds == self.seconds

    def __hash__(self) -> int:
        return hash(self.seconds)


def decode(wanted: type, value: Any) -> Any:
    """`dec_hook` of plugin arguments.

    :raises ValueError: if `value` is no duration
    """
    if wanted is not Duration:
        raise NotImplementedError(f"{wanted.__name__} has no text form")
    if not isinstance(value, str):
        raise TypeError(f"must be a duration in quotes, such as 1h30m, is {value!r}")
    return Duration(go_syntax.parse_duration(value))


def encode(value: Any) -> Any:
    """`enc_hook` of plugin arguments."""
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no text form")
