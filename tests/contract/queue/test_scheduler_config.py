"""A queue that reads a scheduler configuration: several profiles, their digests, backoff."""

import time
from pathlib import Path
from typing import Any

import msgspec

from podyard.bus import Bus
from podyard.configuration import files
from podyard.queue.service import SERVICE
from tests.contract.queue.stack import Cluster, Scheduler
from tests.support.services import make_service, running

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 30
podMaxBackoffSeconds: 40
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


async def test_a_queue_has_the_profiles_and_the_backoff_of_its_configuration(
    connect_bus: Any, bus: Bus, hold: Any, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIGURATION)
    service = make_service(SERVICE, await connect_bus("q1"))
    service.process = msgspec.structs.replace(service.process, scheduler_config=str(path))
    await hold(running(service))
    cluster, scheduler = Cluster(bus), Scheduler(bus)
    await scheduler.led()
    digests = {name: profile.digest for name, profile in files.read(str(path)).profiles().items()}
    for other in ({"default-scheduler": digests["default-scheduler"]}, dict.fromkeys(digests, digests["packing"])):
        assert (await scheduler.pop(digests=other)).refused

    await cluster.pod("packed", schedulerName="packing")
    await cluster.pod("foreign", schedulerName="another")
    reply = await scheduler.pop(digests=digests)
    assert [pod.name for pod in reply.pods] == ["packed"]
    await scheduler.reject(reply.pods[0], "NodeResourcesFit")
    began = time.time()
    await cluster.node("n1", cpu="8")
    await scheduler.sees("packed", "backoffQ")
    (waiting,) = (await scheduler.list()).pods
    assert waiting.until is not None
    assert 20 < waiting.until - began <= 31
