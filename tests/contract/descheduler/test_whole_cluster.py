"""With `plan: obey` in a whole cluster: all services on one bus, pods that are made again and scheduled."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from podyard.bus import Bus
from podyard.cluster.view import ClusterView
from podyard.proto import subjects
from podyard.shell.informer import Informer, with_placements
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.services import running
from tests.support.waiting import eventually
from tests.support.whole import Whole, budget, profile, replicaset, stays, whole

NODES, WORKLOADS, REPLICAS, LEAST = 200, 10, 30, 20
FULL = 40
"""Nodes that there are at first: all pods are on them."""
SPREADING = {
    "profiles": [profile("spread", LowNodeUtilization={"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}})]
}
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


class Healthy:
    """Follows the cluster, and keeps how few pods of a workload ever ran."""

    def __init__(self, bus: Bus) -> None:
        self._view = ClusterView()
        self.fewest: Counter[str] = Counter()
        self.informer = Informer(
            bus, self._view, with_placements([subjects.ALL_OBJECTS]), service="healthy", on_changes=self._look
        )

    def _look(self, changes: Any) -> None:
        if not any(change.resource == subjects.PODS for change in changes):
            return
        found: Counter[str] = Counter()
        for pod in self._view.pods.values():
            if pod.status is not None and pod.status.phase == "Running" and not pod.deleting:
                found[pod.labels["app"]] += 1
        for app, count in found.items():
            self.fewest[app] = min(count, self.fewest.get(app, count))


@pytest.mark.timeout(240)
async def test_an_unbalanced_cluster_converges(
    connect_bus: ConnectBus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """200 nodes, of which 40 have all pods. Budgets let a third of each workload go at a time; no workload is
    ever under its budget, nobody moves twice in a row to the same node, and in the end nothing moves."""
    async with whole(connect_bus, tmp_path) as here:
        await here.nodes(*[objects.node(f"n{at:03}") for at in range(FULL)])
        workloads = [f"w{at}" for at in range(WORKLOADS)]
        await here.do.apply([replicaset(name, REPLICAS, "500m") for name in workloads], "pods of the test")
        await here.settled(WORKLOADS * REPLICAS)
        await here.do.apply([budget(name, LEAST) for name in workloads], "budgets of the test")
        await here.nodes(*[objects.node(f"n{at:03}") for at in range(FULL, NODES)])
        healthy = Healthy(await connect_bus("healthy"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(healthy.informer.run)
            await healthy.informer.synced()
            records = []
            while not records or records[-1].evicted:
                assert len(records) < 8, "it does not converge"
                await _budgets_counted(here)
                records.append(await here.cycle(SPREADING))
                await here.settled(WORKLOADS * REPLICAS)
            tasks.cancel_scope.cancel()
        before, after = records[0].before["cpu"], records[-1].after["cpu"]
        with capsys.disabled():
            print(
                f"\ncpu requested of {NODES} nodes: {before.least:g}..{before.most:g} %, deviation {before.deviation:g}"
            )
            print(f"  after {len(records)} cycles: {after.least:g}..{after.most:g} %, deviation {after.deviation:g}")
        assert before.most > 50 >= after.most
        assert after.deviation < before.deviation / 2
        assert min(healthy.fewest.values()) >= LEAST
        moves = [
            move for name in workloads for move in await here.moves("ReplicaSet", name) if move.outcome != "refused"
        ]
        assert all(move.to_node != move.from_node for move in moves)
        assert stays(records[-1]) == {}


async def _budgets_counted(here: Whole) -> None:
    """Until the budgets know that all pods run."""

    def counted() -> bool:
        found = here.seen.view.objects("poddisruptionbudgets").values()
        return all(one.status.disruptions_allowed == REPLICAS - LEAST for one in found)

    await here.seen.until("budgets that allow disruptions", counted, 30.0)


async def test_who_has_no_better_place_stays_and_is_told_why(connect_bus: ConnectBus, tmp_path: Path):
    """descheduler#1695: a pod larger than any target. #1707: a preference that nobody can serve. Then two
    strategies that work against each other: moved once, then left alone."""
    async with whole(connect_bus, tmp_path) as here:
        await here.nodes(objects.node("n1", cpu="8", labels={"zone": "a"}))
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
        await here.do.apply(
            [
                replicaset("large", 1, "5"),
                replicaset("choosy", 1, "2", affinity={"nodeAffinity": preferred}),
            ],
            "pods of the test",
        )
        await here.settled(2)
        await here.nodes(
            objects.node("n2", cpu="4", labels={"zone": "a"}), objects.node("n3", cpu="1", labels={"zone": "b"})
        )
        await here.do.apply(
            [objects.written(objects.node("n1", cpu="8", labels={"zone": "a"}, taints=[GPU]))], "a taint"
        )
        wanted = {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}
        large = {"labelSelector": {"matchLabels": {"app": "large"}}}
        profiles = [
            profile("choice", RemovePodsViolatingNodeAffinity=wanted),
            profile("taints", RemovePodsViolatingNodeTaints=large),
        ]
        record = await here.cycle({"profiles": profiles})
        told = stays(record)
        assert record.evicted == 0
        assert told["large"].startswith("it would stay pending: NodeResourcesFit refuses 2 nodes: Insufficient cpu")
        assert told["choosy"].startswith("n2, where it would go, is no better for RemovePodsViolatingNodeAffinity")
        (move,) = await here.moves("ReplicaSet", "large")
        assert (move.outcome, move.problem) == ("refused", told["large"])


async def test_two_opposite_strategies_move_a_pod_once_and_then_leave_it_alone(connect_bus: ConnectBus, tmp_path: Path):
    """One takes pods off nodes of zone a, the other off nodes of zone b, which take no further pods."""
    module = "tests.contract.descheduler.opposed"
    policy = {"profiles": [profile("p", **{f"{module}:OffA": {}, f"{module}:OffB": {}})]}
    async with whole(connect_bus, tmp_path) as here:
        await here.nodes(objects.node("n1", cpu="2", labels={"zone": "a"}))
        await here.do.apply([replicaset("web", 1, "1")], "pods of the test")
        await here.settled(1)
        await here.nodes(objects.node("n2", labels={"zone": "b"}))
        assert (await here.cycle(policy)).evicted == 1
        await here.settled(1)
        assert here.on() == {"n2": 1}
        cordoned = objects.node("n2", labels={"zone": "b"}, unschedulable=True)
        await here.do.apply([objects.written(cordoned)], "a cordon")
        for _ in range(3):
            record = await here.cycle(policy)
            assert record.evicted == 0
            assert stays(record) == {"web": "it would undo the move of p/OffA, which took it from n1"}
        told = [
            (one.plugin, one.outcome, one.from_node, one.planned_node) for one in await here.moves("ReplicaSet", "web")
        ]
        assert told == [("OffA", "running", "n1", "n2"), ("OffB", "refused", "n2", "n1")]


async def test_a_node_that_gets_a_taint_is_looked_at_within_10_s(connect_bus: ConnectBus, tmp_path: Path):
    policy = {"profiles": [profile("taints", RemovePodsViolatingNodeTaints={})]}
    async with whole(connect_bus, tmp_path) as here:
        await here.nodes(objects.node("n1"))
        await here.do.apply([replicaset("web", 2, "1")], "pods of the test")
        await here.settled(2)
        await here.nodes(objects.node("n2"))
        service = here.descheduler(policy, run_on="events", pause_s=0.0)
        async with running(service):
            await eventually("the first cycle", lambda: service.health.checks.get("cycle"))
            await here.do.apply([objects.written(objects.node("n1", taints=[GPU]))], "a taint")
            await eventually("pods on the other node", lambda: here.on() == {"n2": 2}, within_s=10.0)
