"""Where tests and benchmarks keep what takes long to make, under names made of its content: a change makes
another name, never a stale hit."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Generator
from pathlib import Path


def folder() -> Path:
    """`$XDG_CACHE_HOME/podyard`, else `~/.cache/podyard`; it is there."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    found = Path(base) / "podyard"
    found.mkdir(parents=True, exist_ok=True)
    return found


def digest(*parts: str | bytes | Path) -> str:
    """Twelve hex digits of texts, bytes, and the content of files."""
    total = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()[:12]


@contextlib.contextmanager
def one_at_a_time(name: str) -> Generator[None]:
    """Two runs on one machine do not make the same thing at once: the second waits, then finds it."""
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
