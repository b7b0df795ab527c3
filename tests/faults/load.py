"""People who make pods and nodes, change and delete them, through the api; and what they were told.

The mix is that of the simulation's world, in the same fields, since the checker's rules read only those.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

from podyard.bus import Bus, TemporaryError, Unclear
from podyard.cli import objects_client
from podyard.node_agent.core.annotations import RUN_DURATION
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectResult
from tests.support import objects
from tests.support.objects import Document

NODES: Final = 8
ZONES: Final = 4
CPUS: Final = ("100m", "250m", "500m", "1", "2", "3")
WEIGHTS: Final = (3, 4, 6, 8, 7, 4)
PRIORITIES: Final = {"middle": 10, "high": 100}
FLOW_PODS: Final = 3
FLOW_EVERY_S: Final = 0.2
LIVING: Final = 75
"""Of a flow, as many are left; older ones are deleted."""

PATIENCE_S: Final = 60.0
ANSWER_S: Final = 5.0
RETRY_S: Final = 0.2


class People:
    """Ask the api until it answers."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.accepted: dict[str, tuple[str, int]] = {}
        """Pods that the api said it has made: uid -> name, sequence."""
        self.rejected: list[str] = []
        """Sentences."""

    async def apply(self, documents: Sequence[Document]) -> None:
        """Create or replace objects."""
        results = await self._ask(lambda: objects_client.apply(self._bus, documents, who="people", timeout_s=ANSWER_S))
        for result in results:
            if result.outcome not in objects_client.GOOD:
                self.rejected.append(f"{result.name} {result.outcome} {result.message} {result.errors}")
            elif result.outcome == "created" and result.resource == subjects.PODS:
                self.accepted[result.uid] = (result.name, result.position)

    async def delete(self, resource: str, names: Sequence[str], *, grace_period_s: int | None = None) -> None:
        """Ask for the end of objects."""
        namespace = "" if resource == subjects.NODES else "default"
        targets = [ObjectRef(resource=resource, namespace=namespace, name=name) for name in names]
        await self._ask(
            lambda: objects_client.delete(
                self._bus, targets, who="people", grace_period_s=grace_period_s, timeout_s=ANSWER_S
            )
        )

    async def _ask(self, ask: Any) -> list[ObjectResult]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await ask()
                except (TemporaryError, Unclear):
                    await asyncio.sleep(RETRY_S)


class Load:
    """Pods of one test. Owned by the task that runs `run`."""

    def __init__(self, people: People, name: str, random: Random) -> None:
        """:param name: begins the names of its pods"""
        self._people = people
        self._name = name
        self._random = random
        self.made: list[str] = []
        self.touched = 0
        """Updates of nodes so far."""

    async def run(self, pods: int = 60, over_s: float = 4.0) -> None:
        """Make pods in small groups, all the while deleting some and changing nodes."""
        groups = max(1, round(over_s / 0.2))
        for number in range(groups):
            wanted = pods * (number + 1) // groups - len(self.made)
            await self._people.apply([self._pod() for _ in range(wanted)])
            if number % 4 == 3:
                await self._people.delete(subjects.PODS, [self._random.choice(self.made)])
            if number % 5 == 4:
                await self._people.apply([node(self._random.randrange(NODES), cordoned=self._random.random() < 0.3)])
            await asyncio.sleep(over_s / groups)
        await self._people.apply([node(index) for index in range(NODES)])

    @asynccontextmanager
    async def flowing(self, *, storm: bool = False) -> AsyncGenerator[None]:
        """Pods keep coming, and the oldest go, while the block runs; or nodes are updated as fast as the api
        can."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._storm(over) if storm else self._flow(over))
            try:
                yield
            finally:
                over.set()

    async def _flow(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self._people.apply([self._pod() for _ in range(FLOW_PODS)])
            await self._people.delete(subjects.PODS, self.made[-LIVING - FLOW_PODS : -LIVING])
            await asyncio.sleep(FLOW_EVERY_S)

    async def _storm(self, over: asyncio.Event) -> None:
        """Updates that may wake pods, by the node's size, and that change nothing of interest."""
        while not over.is_set():
            cpu = 5 + (self.touched // NODES) % 2
            await self._people.apply([node(index, cpu=cpu, note=str(self.touched)) for index in range(NODES)])
            self.touched += NODES
        await self._people.apply([node(index) for index in range(NODES)])

    async def crowd(self, cpu: str = "1") -> None:
        """Pods of lowest priority that take all the room there is, and some more."""
        wanted = [self._plain(cpu) for _ in range(5 * NODES)]
        await self._people.apply(wanted)

    async def preempt(self, pods: int = 3, cpu: str = "3") -> None:
        """Pods of high priority, each for the room of several of a crowd."""
        await self._people.apply([self._plain(cpu, "high") for _ in range(pods)])

    def _plain(self, cpu: str, priority: str = "") -> Document:
        name = f"{self._name}-{len(self.made)}"
        self.made.append(name)
        spec = {"priorityClassName": priority} if priority else {}
        return objects.written(objects.pod(name, cpu=cpu, labels={"app": "plain"}, **spec))

    def _pod(self) -> Document:
        """One pod of the mix."""
        random, app = self._random, f"app{self._random.randrange(6)}"
        name = f"{self._name}-{len(self.made)}"
        self.made.append(name)
        cpu, spec = random.choices(CPUS, WEIGHTS)[0], Document()
        ports: list[Document] = []
        kind = random.random()
        if kind < 0.12:
            app = f"alone{random.randrange(3)}"
            spec["affinity"] = _alone(app)
        elif kind < 0.24:
            app = f"even{random.randrange(2)}"
            spec["topologySpreadConstraints"] = [_even(app)]
        elif kind < 0.36:
            ports = [{"containerPort": 80, "hostPort": random.choice((8080, 9090)), "protocol": "TCP"}]
        elif kind < 0.44:
            spec["nodeSelector"] = {"disk": "ssd"}
        elif kind < 0.48:
            cpu = "64"  # fits nowhere
        priority = random.choice(("", "", "", "", *PRIORITIES))
        if priority:
            spec["priorityClassName"] = priority
        metadata: Document = {}
        if random.random() < 0.4:
            metadata["annotations"] = {RUN_DURATION: f"{random.uniform(0.5, 6):.1f}s"}
        found = objects.written(
            objects.pod(name, cpu=cpu, memory="64Mi", labels={"app": app}, metadata=metadata, **spec)
        )
        found["spec"]["containers"][0]["ports"] = ports
        return found


def node(index: int, *, cpu: int = 5, cordoned: bool = False, note: str = "") -> Document:
    """A node's manifest; every fifth is half as large."""
    made = objects.node(
        f"n{index}",
        cpu=str(cpu if index % 5 else cpu // 2),
        memory="16Gi",
        pods="18",
        labels={objects.ZONE: f"z{index % ZONES}", "disk": "ssd" if index % 3 == 0 else "hdd"},
        metadata={"annotations": {"note": note}},
        **({"unschedulable": True} if cordoned else {}),
    )
    return objects.written(made)


def priority_classes() -> list[Document]:
    """What pods of higher priority name."""
    return [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in PRIORITIES.items()
    ]


def _alone(app: str) -> Document:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _even(app: str) -> Document:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
