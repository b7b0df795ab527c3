"""The suites that can be run: a module each, imported when it is asked for."""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.conformance.cases import Case, read_lines
from tests.conformance.differences import Difference

NAMES: Final = (
    "schedule",
    "preempt",
    "config",
    "registry",
    "classify",
    "requeue",
    "thresholds",
    "rank",
    "synchronize",
    "deschedule",
    "policy",
    "cron",
    "workloads",
)


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """How the cases of a suite are read, run and compared: the functions of its module."""

    read: Callable[[Path], Sequence[Case]]
    """A file's cases; `read_lines` if the module has none."""
    check: Callable[[dict[str, Any], Any], None]
    """Raises msgspec.ValidationError for input or expected of another shape than `run` and `compare` know."""
    run: Callable[[dict[str, Any]], Any]
    """What Podyard makes of the input, in the form of expected."""
    compare: Callable[[Any, Any], Iterator[Difference]]
    """What differs between expected and got."""
    excerpt: Callable[[Any, Any], tuple[Any, Any]]
    """Of expected and got what is shown to people; everything if the module does not say."""


def suite(name: str) -> Suite:
    """One of NAMES."""
    module = import_module(f"{__name__}.{name}")
    return Suite(
        read=getattr(module, "read", read_lines),
        check=module.check,
        run=module.run,
        compare=module.compare,
        excerpt=getattr(module, "excerpt", lambda expected, got: (expected, got)),
    )
