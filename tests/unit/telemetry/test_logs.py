"""Which loggers are heard at which level."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from podyard.telemetry.logs import start_logging


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("podyard")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)
    structlog.reset_defaults()


@pytest.mark.parametrize(("level", "heard"), [("info", True), ("warning", False)])
def test_our_own_libraries_are_heard_as_the_service_is(
    logging_as_before: None, capsys: pytest.CaptureFixture[str], level: str, heard: bool
) -> None:
    """The bus tells by its own logger why a watch lists again and who leads."""
    start_logging(level=level, form="json", service="queue", instance="queue-1")  # type: ignore[arg-type]
    logging.getLogger("podyard.bus").info("lists again")
    logging.getLogger("nats").info("chatter")
    said = capsys.readouterr().err
    assert ("lists again" in said) is heard
    assert "chatter" not in said
