"""The changed object of an event as the kind that a hint expects.

A hint that is handed something else raises; the queue then counts its answer as Queue (PITFALLS 28).
"""

from typing import TypeVar

T = TypeVar("T")


class UnexpectedObjectError(TypeError):
    """A hint was handed an object of another kind than it registered for, or none at all."""

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(f"expected a {expected} before or after the event, got {type(got).__name__}")


def changed(kind: type[T], old: object | None, new: object | None) -> tuple[T | None, T | None]:
    """The object before and after; at least one of them is there.

    :raises UnexpectedObjectError: if one is of another kind, or both are missing
    """
    if (old is None and new is None) or not isinstance(old, kind | None):
        raise UnexpectedObjectError(kind.__name__, old)
    if not isinstance(new, kind | None):
        raise UnexpectedObjectError(kind.__name__, new)
    return old, new


def present(kind: type[T], old: object | None, new: object | None) -> tuple[T | None, T]:
    """The object before (None: it was added) and after.

    :raises UnexpectedObjectError: if one is of another kind, or there is none after the event
    """
    before, after = changed(kind, old, new)
    if after is None:
        raise UnexpectedObjectError(kind.__name__, None)
    return before, after
