"""A whole cluster in one process: all services on one bus, and a person who asks for cycles."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from podyard.api.service import SERVICE as API
from podyard.binder.service import SERVICE as BINDER
from podyard.bus import Bus
from podyard.bus.bootstrap import ensure_streams
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import Evidence, gather
from podyard.cli.explain import gather as explained
from podyard.cluster.pods import PodView
from podyard.descheduler.core.cycle import Attempt, CycleRecord
from podyard.descheduler.core.effects import CycleEnded
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.making import one_cycle
from podyard.descheduler.service import SERVICE as DESCHEDULER
from podyard.descheduler.settings import DeschedulerSettings
from podyard.node_agent.service import SERVICE as AGENT
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto.moves import MoveRecord
from podyard.queue.service import SERVICE as QUEUE
from podyard.runtime.service import Service
from podyard.scheduler.service import SERVICE as SCHEDULER
from podyard.workloads.service import SERVICE as WORKLOADS
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.objects import Document
from tests.support.services import make_service, running
from tests.support.waiting import eventually

WITHIN_S: Final = 60.0
FAST: Final = NodeAgentSettings(start_delay_s=0.02, stop_delay_s=0.02)


class Whole:
    """What a test does with it."""

    def __init__(self, bus: Bus, seen: Evidence, directory: Path) -> None:
        self.bus = bus
        self.seen = seen
        self.do = Actions(bus)
        self._directory = directory

    async def nodes(self, *documents: Document) -> None:
        """Nodes that their agent has said to be ready."""
        for at in range(0, len(documents), 50):
            await self.do.apply([objects.written(one) for one in documents[at : at + 50]], "nodes of the test")
        names = {one["metadata"]["name"] for one in documents}

        def ready() -> bool:
            found = [one.node for name, one in self.seen.view.nodes.items() if name in names]
            told = [
                any((one.type, one.status) == ("Ready", "True") for one in node.status.conditions) for node in found
            ]
            return len(told) == len(names) and all(told)

        await self.seen.until("nodes that are ready", ready, WITHIN_S)

    def pods(self) -> list[PodView]:
        return [pod for pod in self.seen.view.pods.values() if not pod.gone]

    def on(self) -> Counter[str]:
        """How many pods run on each node."""
        return Counter(pod.node_name for pod in self.pods() if _runs(pod))

    async def settled(self, count: int) -> None:
        """Wait until so many pods run, and no others are there."""

        def found() -> bool:
            pods = self.pods()
            return len(pods) == count and all(map(_runs, pods))

        await self.seen.until(f"{count} pods that run", found, WITHIN_S)

    def descheduler(self, policy: dict[str, Any], **settings: Any) -> Service[DeschedulerSettings]:
        """One by this policy; it obeys the plan."""
        path = self._directory / "policy.json"
        path.write_bytes(
            msgspec.json.encode({"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", **policy})
        )
        chosen = {"policy": str(path), "plan": "obey", **settings}
        return make_service(DESCHEDULER, self.bus, msgspec.convert(chosen, DeschedulerSettings))

    async def cycle(self, policy: dict[str, Any], **settings: Any) -> CycleRecord:
        """One cycle, as `podyard deschedule` asks for it."""
        came = await one_cycle(self.descheduler(policy, once=True, **settings))
        assert isinstance(came, CycleEnded), came
        assert [step.error for step in came.record.steps if step.error] == []
        return came.record

    async def moves(self, kind: str, name: str) -> Sequence[MoveRecord]:
        """What `podyard explain` tells."""
        return (await explained.moves(self.bus, "default", kind, name)).moves


def _runs(pod: PodView) -> bool:
    return pod.status is not None and pod.status.phase == "Running" and not pod.deleting


def attempts(record: CycleRecord) -> list[Attempt]:
    return [one for step in record.steps for one in step.attempts]


def stays(record: CycleRecord) -> dict[str, str]:
    """Why pods stay, by the name of their workload."""
    return {one.name.rsplit("-", 1)[0]: one.problem for one in attempts(record) if one.answer is not Answer.EVICTED}


@contextmanager
def quietly() -> Iterator[None]:
    """Warnings and worse: thousands of lines about pods that start are of no use."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    try:
        yield
    finally:
        structlog.configure(**before)


@asynccontextmanager
async def whole(connect_bus: ConnectBus, directory: Path) -> AsyncIterator[Whole]:
    """All services but the descheduler, ready."""
    with quietly():
        await ensure_streams(await connect_bus("streams"))
        async with AsyncExitStack() as held:
            services: list[Service[Any]] = []
            for definition in (API, QUEUE, SCHEDULER, BINDER, AGENT, WORKLOADS):
                settings = FAST if definition is AGENT else None
                made = make_service(definition, await connect_bus(definition.name), settings)
                services.append(made)
                await held.enter_async_context(running(made))
            for one in services:
                await eventually(f"{one.name} is ready", lambda one=one: one.health.ready)
            seen = await held.enter_async_context(gather(await connect_bus("evidence")))
            yield Whole(await connect_bus("person"), seen, directory)


def replicaset(name: str, replicas: int, cpu: str = "", **spec: Any) -> Document:
    """One whose pods have the label `app` with its name; `spec` as of `objects.pod`."""
    made = objects.pod(cpu=cpu, **spec)
    template = {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def budget(name: str, least: int) -> Document:
    """So many pods of a ReplicaSet have to be healthy."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": name}}},
    }


def profile(name: str, **plugins: dict[str, Any]) -> dict[str, Any]:
    """One that runs these plugins, given with their arguments, at the points that they have."""
    balance = [one for one in plugins if one.endswith("Utilization") or one == "RemoveDuplicates"]
    given = {"DefaultEvictor": {"nodeFit": False}, **plugins}
    return {
        "name": name,
        "pluginConfig": [{"name": one, "args": args} for one, args in given.items()],
        "plugins": {
            "balance": {"enabled": balance},
            "deschedule": {"enabled": [one for one in plugins if one not in balance]},
        },
    }
