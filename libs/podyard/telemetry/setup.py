"""Whether spans are exported, and how: the standard OTEL_* variables, read once at the start.

- off unless OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, or OTEL_TRACES_EXPORTER
  says `otlp` or `console`; off if that says `none` or OTEL_SDK_DISABLED is true
- the exporter itself reads endpoint, headers, compression, time-out and certificates (OTEL_EXPORTER_OTLP_*),
  the sampler OTEL_TRACES_SAMPLER and its _ARG, the resource OTEL_RESOURCE_ATTRIBUTES, the queue
  OTEL_BSP_MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE, _SCHEDULE_DELAY
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import prometheus_client

from podyard.telemetry.tracing import Spans

if TYPE_CHECKING:
    from podyard.telemetry.export import ExportSink, Sender

Exporter: TypeAlias = Literal["none", "otlp", "console"]
PROTOCOL: Final = "http/protobuf"
SHUTDOWN_S: Final = 3.0
"""Seconds that the last spans get at the end of a process."""


class TracingError(ValueError):
    """OTEL_* variables that ask for something that cannot be done; tracing stays off, the service goes on."""


class Tracing:
    """`spans` for the service, and their end."""

    def __init__(self, spans: Spans, sink: "ExportSink | None") -> None:
        self.spans = spans
        self._sink = sink

    def shutdown(self, timeout_s: float = SHUTDOWN_S) -> None:
        """Send what waits, bounded. Blocks: call it from a thread."""
        if self._sink is not None:
            self._sink.shutdown(timeout_s)


def choose_exporter(environment: Mapping[str, str]) -> Exporter:
    """Which exporter the environment asks for.

    :raises TracingError: for an exporter or protocol that is not built in
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "none"
    name = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    endpoint = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if name == "none" or (not name and not endpoint):
        return "none"
    if name == "console":
        return "console"
    if name not in ("", "otlp"):
        raise TracingError(f"OTEL_TRACES_EXPORTER={name}: there are otlp, console and none")
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol and protocol != PROTOCOL:
        raise TracingError(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: only {PROTOCOL} is built in; it uses port 4318")
    return "otlp"


def start_tracing(
    environment: Mapping[str, str],
    *,
    service: str,
    instance: str,
    version: str,
    registry: prometheus_client.CollectorRegistry,
) -> Tracing:
    """Tracing as the environment asks for it.

    :param environment: `os.environ`; the exporter reads its own variables from there in any case
    :raises TracingError: see `choose_exporter`; use `Tracing(Spans(), None)` then
    """
    chosen = choose_exporter(environment)
    if chosen == "none":
        return Tracing(Spans(), None)
    from podyard.telemetry import export

    attributes = {
        "service.name": f"podyard-{service}",
        "service.namespace": "podyard",
        "service.instance.id": instance,
        "service.version": version,
    }
    sink = export.ExportSink(
        _sender(chosen, attributes),
        registry=registry,
        queue_size=_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", export.QUEUE_SIZE),
        batch_size=_number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", export.BATCH_SIZE),
        delay_ms=_number(environment, "OTEL_BSP_SCHEDULE_DELAY", export.SCHEDULE_DELAY_MS),
    )
    return Tracing(Spans(sink), sink)


def _sender(chosen: Exporter, attributes: Mapping[str, str]) -> "Sender":
    """:param attributes: of every span, on top of OTEL_RESOURCE_ATTRIBUTES"""
    from opentelemetry.sdk.resources import Resource

    resource = {name: str(value) for name, value in Resource.create(dict(attributes)).attributes.items()}
    if chosen == "console":
        from podyard.telemetry.console import ConsoleSender

        return ConsoleSender(resource)
    from podyard.telemetry.otlp import OtlpSender

    return OtlpSender(resource)


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise TracingError(f"{name}={text}: expected a whole number above 0")
    return int(text)
