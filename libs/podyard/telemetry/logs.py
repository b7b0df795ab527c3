"""Logs on standard error: one line an event, JSON or for a terminal; the standard library's loggers write the
same way."""

import logging
import sys
from typing import Any, Final, Literal

import structlog

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def start_logging(
    *, level: str, form: Literal["auto", "console", "json"], service: str, instance: str
) -> structlog.stdlib.BoundLogger:
    """Set up logging for the process.

    :param level: a key of `LEVELS`
    :param form: auto is console on a terminal, else JSON
    :return: a logger that names service and instance on every line
    """
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[Any] = (
        [_terminal()] if console else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _adopt_standard_library(shared, renderer, LEVELS[level])
    return structlog.get_logger().bind(service=service, instance=instance)


def _terminal() -> Any:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=40
    )


def _adopt_standard_library(shared: list[Any], renderer: list[Any], level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # other people's libraries speak up when something is wrong, their chatter is for debugging; ours tell who
    # leads and why they list again
    root.setLevel(level if level == logging.DEBUG else max(level, logging.WARNING))
    logging.getLogger("podyard").setLevel(level)
