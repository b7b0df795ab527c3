"""An agent that stands still while its node's pods belong to a ReplicaSet: they are made again elsewhere."""

from pathlib import Path

import anyio
import pytest

from podyard.bus import Bus
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeHeartbeat
from tests.e2e.stage import WITHIN_S, node, pause, resume, stand

pytestmark = [pytest.mark.timeout(200), pytest.mark.whole_faults]

SOON: dict[str, str] = {
    "PODYARD_WORKLOADS_NODE_MONITOR_GRACE_PERIOD_S": "3",
    "PODYARD_WORKLOADS_NODE_MONITOR_PERIOD_S": "0.5",
    "PODYARD_WORKLOADS_NODE_STARTUP_GRACE_PERIOD_S": "5",
    "PODYARD_NODE_AGENT_HEARTBEAT_INTERVAL_S": "0.5",
}
TOLERATIONS = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]


async def beat(bus: Bus, name: str) -> None:
    """The agent of one node, as far as anybody hears it."""
    while True:
        bus.send(subjects.heartbeat(name), codec.encode(NodeHeartbeat(node=name)))
        await anyio.sleep(0.5)


async def test_pods_of_a_silent_node_are_made_again_where_somebody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SOON.items():
        monkeypatch.setenv(name, value)
    async with stand(tmp_path, services="api,queue,scheduler,binder,node_agent,workloads") as here:
        await here.join(node("n1"))
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"tolerations": TOLERATIONS, "containers": [{"name": "c", "image": "web:1"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        web = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": here.namespace},
               "spec": spec}  # fmt: skip
        await here.do.apply([web], "the test's pods")

        def placed(where: str) -> list[str]:
            pods = here.seen.view.pods.values()
            return [one.name for one in pods if one.bound is not None and one.bound.node == where and not one.deleting]

        await here.seen.until("two pods on n1", lambda: len(placed("n1")) == 2, WITHIN_S)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        elsewhere = node("n2", metadata={"annotations": {"podyard.io/agent": "external"}}, status=ready)
        await here.do.apply([elsewhere], "a node whose agent is the test")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat, here.bus, "n2")
            pause(here.lab, "node_agent")
            await here.seen.until("two pods on n2", lambda: len(placed("n2")) == 2, WITHIN_S)
            assert placed("n1") == []
            lost = here.seen.view.nodes["n1"].node
            assert {one.key for one in lost.spec.taints} == {"node.kubernetes.io/unreachable"}
            resume(here.lab, "node_agent")

            def is_well() -> bool:
                return not here.seen.view.nodes["n1"].node.spec.taints and not here.seen.view.pods_on("n1")

            await here.seen.until("n1 back, and its pods ended", is_well, WITHIN_S)
            tasks.cancel_scope.cancel()
