"""Queue, scheduler and binder with a plugin that raises in one hook for one pod: the others are bound, and
the services live."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from podyard.binder.service import SERVICE as BINDER
from podyard.bus import Bus
from podyard.proto import codec, subjects
from podyard.proto.placement import Binding
from podyard.queue.service import SERVICE as QUEUE
from podyard.scheduler.service import SERVICE as SCHEDULER
from tests.support import objects
from tests.support.cluster import Cluster
from tests.support.services import make_service, running
from tests.support.waiting import eventually

CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort:
      disabled: [{{name: PrioritySort}}]
      enabled: [{{name: "{plugin}"}}]
    multiPoint:
      enabled: [{{name: "{plugin}"}}]
"""

HOOKS: Final = ("signature", "filter", "verdict", "permit", "sort_key", "pre_enqueue", "pre_bind", "post_bind")
"""Some that an ordinary pod meets; all are tried where they are called
(`tests/unit/*/test_plugins_that_fail.py`)."""
BINDS_ALL_THE_SAME: Final = ("sort_key", "post_bind")


async def binding(bus: Bus, name: str) -> str | None:
    """Where a pod is bound, if it is."""
    found = await bus.get("CLUSTER", subjects.binding("default", name, f"uid-{name}"))
    return None if found is None else codec.decode(Binding, found.payload).node


@pytest.mark.parametrize("hook", HOOKS)
async def test_one_pod_fails_and_the_others_are_bound(
    connect_bus: Any, bus: Bus, hold: Any, tmp_path: Path, hook: str
) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIGURATION.format(plugin=f"tests.support.failing:RaisesIn_{hook}"))
    services = [make_service(one, await connect_bus(one.name)) for one in (QUEUE, BINDER, SCHEDULER)]
    for service in services:
        service.process = msgspec.structs.replace(service.process, scheduler_config=str(path))
        await hold(running(service))
    cluster = Cluster(bus)
    for name in ("n1", "n2", "refused"):
        await cluster.node(name)
    await cluster.create("pods", [objects.pod(name, cpu="100m") for name in ("good-1", "bad", "good-2")])
    for name in ("good-1", "good-2"):
        assert await eventually(f"{name} is bound", lambda name=name: binding(bus, name)) in ("n1", "n2")

    def faults() -> float:
        samples = [sample for service in services for metric in service.metrics.collect() for sample in metric.samples]
        return sum(one.value for one in samples if one.name.endswith("_plugin_faults_total"))

    await eventually("the fault is counted", faults)
    if hook in BINDS_ALL_THE_SAME:
        await eventually("the pod is bound all the same", lambda: binding(bus, "bad"))
    else:
        assert await binding(bus, "bad") is None
    await cluster.create("pods", [objects.pod("good-3", cpu="100m")])
    await eventually("a later one is bound", lambda: binding(bus, "good-3"))
