"""`bench agent`: what one process costs that plays thousands of nodes, idle and with some under pressure.

Nodes, pods and their places are stored as api and binder would have stored them; then the agent is started
and plays them: every pod starts, every node says that it is ready. After that nothing happens but heartbeats.
Then every node gets signals that stand, so that its eviction manager looks at it in every interval, and a
hundred run low on memory: the first look at each shows as the usage of its pods.
"""

import itertools
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from subprocess import DEVNULL
from typing import Any, Final

import anyio
import msgspec
import psutil

from podyard.bench import cluster, meters
from podyard.bench.versions import version
from podyard.bus import Ack, Bus, Outgoing
from podyard.node_agent.core.eviction.manager import MONITORING_INTERVAL_S
from podyard.objects.meta import is_true
from podyard.proto import codec, subjects
from podyard.proto.facts import NodeStatusFact
from podyard.proto.placement import BoundPod, binding_of
from podyard.proto.signals import NodeSignals, NodeUsage, PodUsage, SignalValue
from podyard.runtime import clock

Progress = Callable[[str], None]
PRESSED: Final = 100
"""Nodes that run low on memory."""
PLAYS_WITHIN_S: Final = 600.0
NOTICES_WITHIN_S: Final = 120.0
LOOK_S: Final = 0.2
STORED_AT_ONCE: Final = 500
LOW: Final = SignalValue(available=50 * 1024**2, capacity=128 * 1024**3)
PLENTY: Final = SignalValue(available=64 * 1024**3, capacity=128 * 1024**3)
AGENT: Final = "node_agent"
MIB: Final = 1024**2


class AgentError(Exception):
    """The run did not go as it must for the figures to mean anything."""


class AgentResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    nodes: int
    pods: int
    begins_s: float
    """From the start of the process until all pods ran and all nodes were ready."""
    begins_cpu_s: float
    idle_s: float
    """Seconds that were watched while nothing happened."""
    idle_cores: float
    pss_mib: float
    """Memory of the process after that, shared pages in parts."""
    pressed: int
    notices_s: float
    """From the first signals until all nodes had been looked at, and all under pressure had said so."""
    pressed_cores: float
    """While all nodes are looked at in each interval, evictions included."""
    round_cpu_s: float
    """CPU of one round over all nodes: of an interval of an eviction manager."""
    pressed_pss_mib: float


async def fill(bus: Bus, nodes: int, pods: int, progress: Progress) -> None:
    """Store nodes, pods and places.

    :raises AgentError: the server refuses one
    """
    progress(f"storing {nodes:,} nodes and {pods:,} pods")
    made = itertools.chain(_nodes(nodes), _pods(nodes, pods))
    while chunk := list(itertools.islice(made, STORED_AT_ONCE)):
        for message, answer in zip(chunk, await bus.publish_many(chunk), strict=True):
            if not isinstance(answer, Ack):
                raise AgentError(f"{message.subject} was refused: {answer}")


def _nodes(count: int) -> Iterator[Outgoing]:
    for number in range(count):
        yield version(subjects.NODES, cluster.node(number))


def _pods(nodes: int, count: int) -> Iterator[Outgoing]:
    for number in range(count):
        document = cluster.pod("plain", f"app-{number:06}", f"app-{number % cluster.WORKLOADS}", 100)
        yield version(subjects.PODS, document)
        yield binding(document, cluster.node_name(number % nodes))


def binding(pod: dict[str, Any], node: str) -> Outgoing:
    """A pod's place, as the binder stores it."""
    named = {field: pod["metadata"][field] for field in ("namespace", "name", "uid")}
    bound = BoundPod(**named, node=node, attempt=f"a-{named['name']}")
    subject = subjects.binding(bound.namespace, bound.name, bound.uid)
    return Outgoing(subject, codec.encode(binding_of(bound, bound_at=clock.now())), expect=0)


class Watching:
    """What the agent has said. Counts facts as they are stored."""

    def __init__(self) -> None:
        self.ready: set[str] = set()
        self.pressed: set[str] = set()
        self.running: set[str] = set()
        self.looked_at: set[str] = set()
        """Subjects of nodes' usage that was told since their pods use something. Idle nodes tell theirs,
        too."""

    def on_usage(self, subject: str, payload: bytes, trace: str) -> None:
        del trace
        if codec.decode(NodeUsage, payload).pods:
            self.looked_at.add(subject)

    def on_node(self, subject: str, payload: bytes, trace: str) -> None:
        del subject, trace
        fact = codec.decode(NodeStatusFact, payload)
        self.ready.add(fact.node)
        if is_true(fact.conditions, "MemoryPressure"):
            self.pressed.add(fact.node)

    def on_pod(self, subject: str, payload: bytes, trace: str) -> None:
        del payload, trace
        self.running.add(subject)


@asynccontextmanager
async def started(url: str) -> AsyncGenerator[psutil.Process]:
    """The agent, in a process of its own."""
    words = [sys.executable, "-m", "podyard.cli", "run", AGENT, "--nats", url, "--http-port", "-1"]
    # its memory is measured, which its own user may not unless it says so
    given = {**os.environ, "PODYARD_CORE_DUMPS": "true"}
    async with await anyio.open_process(words, env=given, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()


async def measure(bus: Bus, url: str, nodes: int, pods: int, idle_s: float, progress: Progress) -> AgentResult:
    """Play it.

    :raises AgentError: the agent does not do what it must in time
    """
    await fill(bus, nodes, pods, progress)
    watching = Watching()
    await bus.subscribe(subjects.ALL_NODE_STATUS, watching.on_node)
    await bus.subscribe(subjects.ALL_POD_STATUS, watching.on_pod)
    await bus.subscribe("usage.*", watching.on_usage)
    began = time.perf_counter()
    async with started(url) as process:
        progress(f"the agent begins to play {nodes:,} nodes and {pods:,} pods")
        await _until(
            lambda: len(watching.ready) >= nodes and len(watching.running) >= pods,
            PLAYS_WITHIN_S,
            lambda: f"{len(watching.ready):,} nodes are ready and {len(watching.running):,} pods run",
        )
        begins_s, begins_cpu_s = time.perf_counter() - began, _cpu_s(process)
        progress(f"idle for {idle_s:g} s")
        idle_cores = await _cores(process, idle_s)
        pss_mib = _pss_mib(process)
        pressed = min(PRESSED, nodes)
        progress(f"all nodes are looked at, and {pressed} run low on memory")
        since = time.perf_counter()
        for number in range(nodes):
            signals = _signals(number, nodes, pods, LOW if number < pressed else PLENTY)
            bus.send(subjects.signals(signals.node), codec.encode(signals))
        await _until(
            lambda: len(watching.pressed) >= pressed and len(watching.looked_at) >= nodes,
            NOTICES_WITHIN_S,
            lambda: (
                f"{len(watching.pressed)} of {pressed} nodes have noticed, {len(watching.looked_at)} were looked at"
            ),
        )
        notices_s = time.perf_counter() - since
        pressed_cores = await _cores(process, idle_s)
        return AgentResult(
            nodes=nodes,
            pods=pods,
            begins_s=round(begins_s, 2),
            begins_cpu_s=round(begins_cpu_s, 2),
            idle_s=idle_s,
            idle_cores=round(idle_cores, 3),
            pss_mib=round(pss_mib, 1),
            pressed=pressed,
            notices_s=round(notices_s, 2),
            pressed_cores=round(pressed_cores, 3),
            round_cpu_s=round((pressed_cores - idle_cores) * MONITORING_INTERVAL_S, 2),
            pressed_pss_mib=round(_pss_mib(process), 1),
        )


def _signals(number: int, nodes: int, pods: int, memory: SignalValue) -> NodeSignals:
    """What a node and its pods use."""
    own: Iterable[int] = range(number, pods, nodes)
    used = tuple(
        PodUsage(namespace=cluster.NAMESPACE, name=f"app-{pod:06}", memory_bytes=(1 + pod % 7) * 1024 * MIB)
        for pod in own
    )
    levels = {"memory.available": memory}
    return NodeSignals(node=cluster.node_name(number), signals=levels, pods=used, standing=True, who="bench")


async def _until(done: Callable[[], bool], within_s: float, so_far: Callable[[], str]) -> None:
    with anyio.move_on_after(within_s):
        while not done():  # noqa: ASYNC110  # facts come by themselves
            await anyio.sleep(LOOK_S)
        return
    raise AgentError(f"after {within_s:g} s {so_far()}")


async def _cores(process: psutil.Process, seconds: float) -> float:
    before, began = _cpu_s(process), time.perf_counter()
    await anyio.sleep(seconds)
    return (_cpu_s(process) - before) / (time.perf_counter() - began)


def _cpu_s(process: psutil.Process) -> float:
    return meters.cpu_seconds({AGENT: process.pid})[AGENT]


def _pss_mib(process: psutil.Process) -> float:
    return process.memory_full_info().pss / MIB
