"""Asking Jaeger until it has what a test waits for: spans come when their sender's batch does."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from podyard.cli.jaeger.model import Span, Trace

T = TypeVar("T")
WITHIN_S: Final = 20.0
LOOK_EVERY_S: Final = 0.1


def until(what: str, question: Callable[[], T | None]) -> T:
    """The first answer that is not empty.

    :raises AssertionError: if there is none in time
    """
    deadline = time.monotonic() + WITHIN_S
    while not (answer := question()):
        assert time.monotonic() < deadline, f"Jaeger does not show within {WITHIN_S:.0f} s: {what}"
        time.sleep(LOOK_EVERY_S)
    return answer


def one(trace: Trace, name: str) -> Span:
    """The only span of that name.

    :raises AssertionError: if there is none, or another
    """
    found = [span for span in trace.spans if span.name == name]
    assert len(found) == 1, f"{name}: {[(span.name, span.service) for span in trace.spans]}"
    return found[0]
