"""What every service shows on `/metrics`, as its code makes it: no service runs for that."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import prometheus_client
from prometheus_client.core import Metric

from podyard.api.instruments import Instruments as ApiInstruments
from podyard.binder.instruments import Instruments as BinderInstruments
from podyard.descheduler.instruments import Instruments as DeschedulerInstruments
from podyard.kube_api.instruments import Instruments as KubeApiInstruments
from podyard.node_agent.instruments import Instruments as AgentInstruments
from podyard.queue.instruments import Instruments as QueueInstruments
from podyard.runtime import http, process, web
from podyard.runtime.health import Health
from podyard.scheduler.instruments import Instruments as SchedulerInstruments
from podyard.shell.boundary import Boundary
from podyard.shell.event_recorder import Recorder
from podyard.shell.leading import Leading
from podyard.telemetry.metrics import new_registry
from podyard.telemetry.setup import start_tracing
from podyard.telemetry.tracing import Spans
from podyard.workloads.instruments import Instruments as WorkloadsInstruments

INSTRUMENTS: Final[dict[str, Callable[[prometheus_client.CollectorRegistry], object]]] = {
    "queue": lambda registry: QueueInstruments(registry, Spans()),
    "scheduler": lambda registry: SchedulerInstruments(registry, Spans()),
    "binder": BinderInstruments,
    "node_agent": AgentInstruments,
    "descheduler": DeschedulerInstruments,
    "workloads": WorkloadsInstruments,
    "api": ApiInstruments,
    "kube_api": KubeApiInstruments,
}
"""By service, in the order of the page."""
LEASE: Final = "leases"
"""A service's name for what all have that stand for election."""
CORED: Final = "services with a core"
EVENTS: Final = "services that send events"
SEND_EVENTS: Final = ("scheduler", "node_agent", "descheduler", "workloads")
EVERY: Final = "every process"


class Shown(msgspec.Struct, frozen=True):
    """A family of metrics."""

    name: str
    """As in the text format."""
    type: str
    labels: tuple[str, ...]
    """Sorted; without `le`."""
    help: str
    buckets: tuple[float, ...] = ()


def shown() -> dict[str, list[Shown]]:
    """By service, and what several have in common once: under `EVERY`, `CORED`, `EVENTS` and `LEASE`."""
    found = {EVERY: _families(_every())}
    registry = prometheus_client.CollectorRegistry()
    service: Any = SimpleNamespace(metrics=registry)
    Boundary(service)
    found[CORED] = _families(registry)
    registry = prometheus_client.CollectorRegistry()
    service = SimpleNamespace(
        metrics=registry, bus=None, clock=SimpleNamespace(now=None), health=None, log=None, name="SERVICE", instance=""
    )
    Recorder(service)
    found[EVENTS] = _families(registry)
    registry = prometheus_client.CollectorRegistry()
    health = Health(stall_limit_s=60.0, registry=prometheus_client.CollectorRegistry())
    lease: Any = SimpleNamespace(service="SERVICE")
    Leading(lease, health, registry, pause=_no_pause)
    found[LEASE] = _families(registry)
    for name, make in INSTRUMENTS.items():
        registry = prometheus_client.CollectorRegistry(auto_describe=True)
        make(registry)
        found[name] = _families(registry)
    return found


def _every() -> prometheus_client.CollectorRegistry:
    registry = new_registry(service="queue", instance="queue-0", version="0")
    process._show_clock(registry)  # pyright: ignore[reportPrivateUsage]
    Health(stall_limit_s=60.0, registry=registry)
    web.Refusals(registry, http.REASONS)
    tracing = start_tracing(
        {"OTEL_TRACES_EXPORTER": "console"}, service="queue", instance="queue-0", version="0", registry=registry
    )
    tracing.shutdown()
    return registry


async def _no_pause() -> None:
    """Never called."""


def _families(registry: prometheus_client.CollectorRegistry) -> list[Shown]:
    collectors: Iterable[Any] = registry._collector_to_names  # pyright: ignore[reportPrivateUsage]
    found = [_shown(collector, metric) for collector in collectors for metric in collector.collect()]
    return sorted(found, key=lambda one: one.name)


def _shown(collector: Any, metric: Metric) -> Shown:
    name = metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, "")
    labels = next(
        (
            found
            for found in (
                getattr(collector, "label_names", None),
                getattr(collector, "_labelnames", None),
                getattr(metric, "_labelnames", None),
            )
            if found is not None
        ),
        (),
    )
    if metric.type == "info":
        labels = metric.samples[0].labels
    upper = getattr(collector, "buckets", None) or getattr(collector, "_kwargs", {}).get("buckets", ())
    return Shown(name, metric.type, tuple(sorted(labels)), metric.documentation, tuple(map(float, upper)))
