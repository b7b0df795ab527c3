"""The steps of the demo: each does something a person would do, then says what it must have led to."""

import copy
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import anyio

from podyard.cli.demo.actions import GIBIBYTE, Actions, manifest
from podyard.cli.demo.evidence import Evidence
from podyard.cluster.pods import PodView
from podyard.proto.requeues import RequeueRecord

NAMESPACE: Final = "default"
TRAINER: Final = (NAMESPACE, "trainer")
REPORT: Final = (NAMESPACE, "report")
WEB_PODS: Final = 30
NODES: Final = 8


class Step(NamedTuple):
    """`act` does it, `see` waits for what it led to and says in one sentence what was seen."""

    name: str
    title: str
    act: Callable[[], Awaitable[None]]
    see: Callable[[], Awaitable[str]]


class Story:
    """The demo's story over a running lab. `patience_s`: how long one step may take; more where services are
    killed."""

    def __init__(self, actions: Actions, seen: Evidence, patience_s: float = 15.0) -> None:
        self._do = actions
        self._seen = seen
        self._patience_s = patience_s
        self._nodes: dict[str, dict[str, Any]] = {node["metadata"]["name"]: node for node in manifest("nodes.yaml")}
        self._pressed = ""
        self._drained = ""
        self._before: dict[str, PodView] = {}

    def steps(self) -> tuple[Step, ...]:
        """In the order in which they are to be played."""
        return (
            Step("nodes", "Eight nodes in three zones join", self._add_nodes, self._see_nodes),
            Step("caches", "Five single pods, each too large for two on a node", self._add_caches, self._see_caches),
            Step("web", "A Deployment of 30 pods", self._add_web, self._see_web),
            Step(
                "park", "Pod A asks for a tainted pool, pod B for more memory than is free", self._add_ab, self._see_ab
            ),
            Step("skip", "A small node's memory grows: not enough for B", self._grow, self._see_skip),
            Step("wake-b", "A pod with memory is deleted", self._free, self._see_b),
            Step("wake-a", "The taint is removed", self._untaint, self._see_a),
            Step("evict", "A node comes under memory pressure", self._press, self._see_eviction),
            Step("deschedule", "A node is tainted for maintenance", self._taint, self._see_descheduled),
        )

    @asynccontextmanager
    async def sensors(self) -> AsyncGenerator[None]:
        """While the block runs, the node that the story presses reports its memory every half second."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._do.repeat, self._report_memory, 0.5)
            yield
            tasks.cancel_scope.cancel()

    # nodes

    async def _add_nodes(self) -> None:
        await self._do.apply(list(self._nodes.values()), "the demo's cluster")

    async def _see_nodes(self) -> str:
        def ready() -> set[str]:
            nodes = self._seen.view.nodes
            up = [node for node in nodes.values() if _condition(node.node.status.conditions, "Ready") == "True"]
            zones = {node.node.metadata.labels["topology.kubernetes.io/zone"] for node in up}
            return zones if len(up) == NODES else set()

        zones = await self._until("8 nodes that their agent reports Ready", ready)
        return f"{NODES} nodes Ready in {', '.join(sorted(zones))}"

    # pods that fit

    async def _add_caches(self) -> None:
        await self._do.apply(manifest("caches.yaml"), "single pods")

    async def _see_caches(self) -> str:
        def apart() -> dict[str, str]:
            places = {pod.name: pod.node_name for pod in self._seen.running("cache")}
            return places if len(places) == 5 and len(set(places.values())) == 5 else {}

        places = await self._until("five caches running on five nodes", apart)
        return "running on five different nodes: " + ", ".join(
            f"{pod} on {node}" for pod, node in sorted(places.items())
        )

    async def _add_web(self) -> None:
        await self._do.apply(manifest("web.yaml"), "a Deployment")

    async def _see_web(self) -> str:
        pods = await self._until(f"{WEB_PODS} web pods running, none on node-6", self._web_off_the_pool)
        used = {pod.node_name for pod in pods}
        return f"{len(pods)} pods running on {len(used)} nodes, none on the tainted node-6"

    def _all_web(self) -> list[PodView]:
        running = self._seen.running("web")
        return running if len(running) == WEB_PODS else []

    def _web_off_the_pool(self) -> list[PodView]:
        """All of them while node-6 is tainted."""
        return [] if any(pod.node_name == "node-6" for pod in self._all_web()) else self._all_web()

    # pods that wait

    async def _add_ab(self) -> None:
        await self._do.apply(manifest("trainer.yaml") + manifest("report.yaml"), "two pods that cannot run yet")

    async def _see_ab(self) -> str:
        await self._until(
            "an attempt for A that TaintToleration rejected", lambda: self._rejected(TRAINER, "TaintToleration")
        )
        await self._until(
            "an attempt for B that NodeResourcesFit rejected", lambda: self._rejected(REPORT, "NodeResourcesFit")
        )
        return f"A: {self._message(TRAINER)}  B: {self._message(REPORT)}"

    def _rejected(self, pod: tuple[str, str], plugin: str) -> bool:
        return any(
            record.outcome == "unschedulable" and plugin in record.unschedulable_plugins
            for record in self._seen.attempts
            if (record.namespace, record.name) == pod
        )

    def _message(self, pod: tuple[str, str]) -> str:
        messages = [record.message for record in self._seen.attempts if (record.namespace, record.name) == pod]
        return messages[-1]

    # what wakes them, and what does not

    async def _grow(self) -> None:
        await self._do.apply([self._node("node-7", memory="3Gi")], "an irrelevant change")

    async def _see_skip(self) -> str:
        def skipped() -> str:
            for record in self._records("NodeUpdateNodeAllocatable", "node-7"):
                for one in record.skipped:
                    reasons = [
                        h.reason for h in one.hints if h.plugin == "NodeResourcesFit" and h.answer == "QueueSkip"
                    ]
                    if (one.namespace, one.name) == REPORT and reasons and not _concerns(record, TRAINER):
                        return reasons[0]
            return ""

        reason = await self._until("a record that NodeResourcesFit's hint skipped B for node-7", skipped)
        return f"B stays parked, NodeResourcesFit's hint says: {reason}"

    async def _free(self) -> None:
        await self._do.delete("pods", NAMESPACE, "cache-3", "make room for B")

    async def _see_b(self) -> str:
        reason = await self._until(
            "a record that NodeResourcesFit's hint moved B, and A not asked",
            lambda: self._woken("AssignedPodDelete", "default/cache-3", REPORT, "NodeResourcesFit", not_asked=TRAINER),
        )
        node = await self._until("B running", lambda: self._runs(REPORT))
        return f"B moved by NodeResourcesFit's hint ({reason}), A was not asked; B runs on {node}"

    async def _untaint(self) -> None:
        node = self._node("node-6")
        del node["spec"]["taints"]
        await self._do.apply([node], "the pool is free for all")

    async def _see_a(self) -> str:
        reason = await self._until(
            "a record that TaintToleration's hint moved A",
            lambda: self._woken("NodeUpdateNodeTaint", "node-6", TRAINER, "TaintToleration"),
        )
        await self._until("A running on node-6", lambda: self._runs(TRAINER) == "node-6")
        return f"A moved by TaintToleration's hint ({reason}); A runs on node-6"

    def _woken(
        self, label: str, cause: str, pod: tuple[str, str], plugin: str, not_asked: tuple[str, str] | None = None
    ) -> str:
        for record in self._records(label, cause):
            for move in record.moved:
                asked_other = not_asked is not None and _concerns(record, not_asked)
                if (move.namespace, move.name) == pod and move.plugin == plugin and not asked_other:
                    return next(hint.reason for hint in move.hints if hint.plugin == plugin)
        return ""

    def _records(self, label: str, cause: str) -> list[RequeueRecord]:
        return [record for record in self._seen.requeues if record.event == label and record.object == cause]

    def _runs(self, pod: tuple[str, str]) -> str:
        view = self._seen.view.pods.get(pod)
        running = view is not None and view.status is not None and view.status.phase == "Running"
        return view.node_name if view is not None and running else ""

    # a node under pressure

    async def _press(self) -> None:
        self._before = {pod.uid: pod for pod in self._seen.pods("web")}
        self._pressed = self._most_web(but=())

    def _report_memory(self) -> None:
        """As the node's agent would: 20 MiB left, the first web pod uses ten times what it asked for."""
        if not self._pressed:
            return
        there = [pod for pod in self._seen.running("web") if pod.node_name == self._pressed]
        usage = {pod.key: GIBIBYTE if i == 0 else 100 * 1024**2 for i, pod in enumerate(there)}
        self._do.memory(self._pressed, 20 * 1024**2, 16 * GIBIBYTE, usage)

    async def _see_eviction(self) -> str:
        evicted = await self._until(f"a web pod evicted on {self._pressed}", self._evicted)
        pressed, self._pressed = self._pressed, ""
        self._do.idle(pressed)
        new = await self._until("30 web pods running again", lambda: self._replacements(pressed))
        return f"{evicted.name} evicted on {pressed}; made again as {new[0].name}, runs on {new[0].node_name}"

    def _evicted(self) -> PodView | None:
        for pod in self._seen.view.pods.values():
            status = pod.status
            if (
                pod.uid in self._before
                and status is not None
                and status.reason == "Evicted"
                and status.node == self._pressed
            ):
                return pod
        return None

    # a node that should be left

    async def _taint(self) -> None:
        self._before = {pod.uid: pod for pod in self._seen.running("web")}
        self._drained = self._most_web(but=(self._drained,))
        node = self._node(self._drained)
        node["spec"] = {"taints": [{"key": "maintenance", "value": "soon", "effect": "NoSchedule"}]}
        await self._do.apply([node], "maintenance")

    async def _see_descheduled(self) -> str:
        old = await self._until(
            f"a web pod that the descheduler moves away from {self._drained}",
            lambda: [
                event.regarding
                for event in self._seen.events
                if event.reporter == "descheduler"
                and event.regarding.uid in self._before
                and self._before[event.regarding.uid].node_name == self._drained
            ],
        )
        new = await self._until("30 web pods running again", lambda: self._replacements(self._drained))
        return f"{old[0].name} moved away from {self._drained}; made again as {new[0].name}, runs on {new[0].node_name}"

    def _replacements(self, left: str) -> list[PodView]:
        """Web pods that were not there before, on other nodes than `left`, once all are running."""
        return [pod for pod in self._all_web() if pod.uid not in self._before and pod.node_name != left]

    # what the steps share

    def _most_web(self, but: tuple[str, ...]) -> str:
        """The node with the most web pods and room elsewhere: a large one."""
        counts: dict[str, int] = {}
        for pod in self._seen.running("web"):
            if pod.node_name not in (*but, "node-6", "node-7", "node-8"):
                counts[pod.node_name] = counts.get(pod.node_name, 0) + 1
        return max(sorted(counts), key=lambda node: counts[node])

    def _node(self, name: str, memory: str | None = None) -> dict[str, Any]:
        """The node's manifest as its file says, with another memory; every change of the story stays in
        it."""
        node = self._nodes[name]
        if memory is not None:
            node["status"]["capacity"]["memory"] = node["status"]["allocatable"]["memory"] = memory
        return copy.deepcopy(node)

    async def _until(self, what: str, question: Callable[[], Any]) -> Any:
        return await self._seen.until(what, question, self._patience_s)


def _concerns(record: RequeueRecord, pod: tuple[str, str]) -> bool:
    return any((one.namespace, one.name) == pod for one in (*record.moved, *record.skipped))


def _condition(conditions: Any, type_: str) -> str:
    return next((condition.status for condition in conditions if condition.type == type_), "")
