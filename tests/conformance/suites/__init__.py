"""The suites that can be run, by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.conformance.cases import Case, read_lines
from tests.conformance.differences import Difference
from tests.conformance.suites import classify, config, preempt, registry, requeue, schedule


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """How the cases of a suite are read, run and compared."""

    read: Callable[[Path], Sequence[Case]] = read_lines
    check: Callable[[dict[str, Any], Any], None]
    """Raises msgspec.ValidationError for input or expected of another shape than `run` and `compare` know."""
    run: Callable[[dict[str, Any]], Any]
    """What Podyard makes of the input, in the form of expected."""
    compare: Callable[[Any, Any], Iterator[Difference]]
    """What differs between expected and got."""


SUITES: Final[Mapping[str, Suite]] = {
    "schedule": Suite(check=schedule.check, run=schedule.run, compare=schedule.compare),
    "preempt": Suite(check=preempt.check, run=preempt.run, compare=preempt.compare),
    "config": Suite(check=config.check, run=config.run, compare=config.compare),
    "classify": Suite(check=classify.check, run=classify.run, compare=classify.compare),
    "requeue": Suite(check=requeue.check, run=requeue.run, compare=requeue.compare),
    "registry": Suite(read=registry.read, check=registry.check, run=registry.run, compare=registry.compare),
}
