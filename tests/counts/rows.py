"""Counts the rows that Filter and Score plugins are asked about: what is computed, and what is computed
again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from podyard.framework.profile import Profile

Asked = Callable[[int], None]
"""Told of so many rows."""


@contextmanager
def counted(profile: Profile, asked: Asked) -> Iterator[None]:
    """Every plugin of these classes tells of the rows that it is asked about; one that asks itself does so
    once."""
    classes = {type(plugin) for plugin in profile.filter} | {type(entry.plugin) for entry in profile.score}
    inside: list[str] = []
    before = [(kind, name, kind.__dict__.get(name)) for kind in classes for name in _METHODS if hasattr(kind, name)]
    for kind, name, _ in before:
        setattr(kind, name, _counting(getattr(kind, name), _METHODS[name], inside, asked))
    try:
        yield
    finally:
        for kind, name, own in before:
            if own is None:
                delattr(kind, name)
            else:
                setattr(kind, name, own)


_METHODS: dict[str, Callable[[Any], int]] = {
    "filter": len,
    "filter_one": lambda row: 1,
    "score": len,
    "score_one": lambda row: 1,
}
"""By name, how many rows the last argument is."""


def _counting(method: Callable[..., Any], rows_in: Callable[[Any], int], inside: list[str], asked: Asked) -> Any:
    @wraps(method)
    def call(*given: Any) -> Any:
        if not inside:
            asked(rows_in(given[-1]))
        inside.append("")
        try:
            return method(*given)
        finally:
            inside.pop()

    return call
