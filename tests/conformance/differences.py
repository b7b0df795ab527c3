"""What is told about a case that fails: where expected and got differ, leaf by leaf."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple


class Absent(Enum):
    """In place of a value that one side does not have; it stays itself between processes."""

    ABSENT = "-"

    def __str__(self) -> str:
        return self.value


ABSENT: Final = Absent.ABSENT


class Difference(NamedTuple):
    """One thing that differs. `where` is a path of keys, `group` what such differences are counted under."""

    where: tuple[str, ...]
    expected: Any
    got: Any
    group: str = ""


def between(expected: Any, got: Any, where: tuple[str, ...] = ()) -> Iterator[Difference]:
    """All leaves in which two JSON values differ: maps key by key, in the order of `expected`; lists and
    scalars as a whole.

    Types count: true is not 1, though 1 is 1.0.
    """
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys((*expected, *got)):
            yield from between(expected.get(key, ABSENT), got.get(key, ABSENT), (*where, str(key)))
    elif not same(expected, got):
        yield Difference(where, expected, got, ".".join(where))


def same(expected: Any, got: Any) -> bool:
    """Whether two JSON values are equal, truth values being no numbers."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(same(value, got[key]) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(same(a, b) for a, b in zip(expected, got, strict=True))
    return isinstance(expected, bool) == isinstance(got, bool) and bool(expected == got)
