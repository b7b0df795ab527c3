"""The files of a key: whether they were replaced. Nothing here reads what is in them."""

import os
from collections.abc import Sequence

Seen = tuple[tuple[int, int, int] | None, ...]
"""By file: when it was changed, its size, which one it is; None if there is none."""


def seen(paths: Sequence[str]) -> Seen:
    """How the files stand; another value later means that one was replaced. Links are followed, as
    Kubernetes swaps them."""
    return tuple(map(_seen, paths))


def _seen(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
