"""Statuses of pods and nodes that somebody else writes: schedulers, controllers, kubelets."""

import json
from typing import Any, Final

import httpx
import pytest

from podyard.bus import Bus
from podyard.proto.facts import Condition, ContainerFact, NodeStatusFact, Nomination, PodStatusFact
from tests.contract.kube_api.conftest import Clients
from tests.support import cluster, stored
from tests.support.waiting import eventually

Document = dict[str, Any]
NAMESPACE: Final = "/api/v1/namespaces/default"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
READY: Final = {"type": "Ready", "status": "True"}


async def created(clients: Clients, *, node: str = "") -> Document:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "schedulerName": "theirs",
        **({"nodeName": node} if node else {}),
    }
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    return await clients.create(f"{NAMESPACE}/pods", document)


async def patched(clients: Clients, path: str, status: Document, media: str = STRATEGIC) -> httpx.Response:
    content = json.dumps({"status": status})
    return await clients.ask("PATCH", f"{path}/status", headers={"Content-Type": media}, content=content)


async def shown(clients: Clients, path: str) -> Document:
    return (await clients.ask("GET", path)).json()["status"]


def of(status: Document, kind: str) -> Document:
    """A condition, without the times that nobody said."""
    found = next(one for one in status["conditions"] if one["type"] == kind)
    return {name: value for name, value in found.items() if value is not None}


class Played:
    """A pod that is bound to a node, and what its agent says."""

    def __init__(self, clients: Clients, bus: Bus) -> None:
        self.clients = clients
        self.cluster = cluster.Cluster(bus)
        self.path = f"{NAMESPACE}/pods/a"

    async def bound(self, *, agent: bool) -> None:
        pod = await created(self.clients)
        room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": room}}
        made = await self.clients.create("/api/v1/nodes", node)
        uid = pod["metadata"]["uid"]
        await self.cluster.commit([cluster.bound("a", "n1", uid=uid)])
        if agent:
            said = (Condition(type="Ready", status="True"),)
            node_uid = made["metadata"]["uid"]
            await self.cluster.write(
                stored.node_status(NodeStatusFact(node="n1", node_uid=node_uid, conditions=said, session="s"))
            )
            await self.cluster.status(
                PodStatusFact(
                    namespace="default",
                    name="a",
                    uid=uid,
                    node="n1",
                    phase="Running",
                    conditions=said,
                    containers=(ContainerFact(name="c", ready=True),),
                )
            )

        async def is_there() -> bool:
            status = await shown(self.clients, self.path)
            scheduled = any(one["type"] == "PodScheduled" for one in status.get("conditions", ()))
            return scheduled and (not agent or status.get("phase") == "Running")

        await eventually("it is shown", is_there)


async def test_a_scheduler_says_why_a_pod_is_not_bound_and_whom_it_nominates(clients: Clients) -> None:
    await created(clients)
    path = f"{NAMESPACE}/pods/a"
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    order = {"$setElementOrder/conditions": [{"type": "PodScheduled"}]}
    answer = await patched(clients, path, {**order, "conditions": [said], "nominatedNodeName": "n1"})
    assert answer.status_code == 200, answer.text
    status = await shown(clients, path)
    assert (of(status, "PodScheduled"), status["nominatedNodeName"], status["phase"]) == (said, "n1", "Pending")
    cleared = await patched(clients, path, {"nominatedNodeName": None})
    assert "nominatedNodeName" not in cleared.json()["status"]


async def test_what_a_foreign_kubelet_says_is_shown_as_it_was_written(clients: Clients, bus: Bus) -> None:
    played = Played(clients, bus)
    await played.bound(agent=False)
    container = {"name": "c", "image": "i", "imageID": "sha256:1", "containerID": "their://2", "ready": True,
                 "restartCount": 3, "volumeMounts": [{"name": "v", "mountPath": "/v"}], "state": {}, "lastState": {}}  # fmt: skip
    wanted = {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
              "conditions": [{**READY, "lastProbeTime": None}], "containerStatuses": [container]}  # fmt: skip
    answer = await patched(clients, played.path, wanted)
    assert answer.status_code == 200, answer.text
    status = await shown(clients, played.path)
    assert (status["phase"], status["podIP"], status["containerStatuses"]) == ("Running", "10.1.0.1", [container])
    assert (of(status, "Ready")["status"], of(status, "PodScheduled")["status"]) == ("True", "True")
    # the same in a PUT of what was read: nothing of what others said goes
    read = (await clients.ask("GET", played.path)).json()
    read["status"]["phase"] = "Succeeded"
    put = await clients.ask("PUT", f"{played.path}/status", json=read)
    assert (put.status_code, put.json()["status"]["phase"]) == (200, "Succeeded")
    assert put.json()["spec"]["nodeName"] == "n1"


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"phase": "Failed"}, "status.phase"),
        ({"podIP": "10.0.0.1"}, "status.podIP"),
        ({"containerStatuses": []}, "status.containerStatuses"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "status.conditions[Ready]"),
        ({"conditions": [{"type": "ContainersReady", "status": "True"}]}, "status.conditions[ContainersReady]"),
    ],
)
async def test_what_an_agent_keeps_is_written_by_nobody_else(
    clients: Clients, bus: Bus, status: Document, field: str
) -> None:
    played = Played(clients, bus)
    await played.bound(agent=True)
    before = await shown(clients, played.path)
    media = MERGE if "containerStatuses" in status else STRATEGIC
    refused = await patched(clients, played.path, status, media)
    told = f'pods "a" is forbidden: {field}: the agent of node n1 keeps it'
    assert (refused.status_code, refused.json()["reason"], refused.json()["message"]) == (403, "Forbidden", told)
    assert await shown(clients, played.path) == before


async def test_a_status_goes_back_as_it_was_shown(clients: Clients, bus: Bus) -> None:
    """Zeros, which are shown and not stored, are no change of what the agent keeps."""
    played = Played(clients, bus)
    await played.bound(agent=True)
    for path in (played.path, "/api/v1/nodes/n1"):
        found = (await clients.ask("GET", path)).json()
        back = await clients.ask("PUT", f"{path}/status", json=found)
        assert (back.status_code, back.json().get("status")) == (200, found["status"]), back.text


async def test_on_an_agents_node_others_add_conditions_of_their_own(clients: Clients, bus: Bus) -> None:
    played = Played(clients, bus)
    await played.bound(agent=True)
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    gate = {"type": "example.com/gate", "status": "True"}
    answer = await patched(clients, played.path, {"conditions": [disrupted, gate]})
    assert answer.status_code == 200, answer.text
    status = await shown(clients, played.path)
    assert (of(status, "DisruptionTarget"), of(status, "example.com/gate")) == (disrupted, gate)
    assert (status["phase"], of(status, "Ready")["status"], status["containerStatuses"][0]["ready"]) == (
        "Running",
        "True",
        True,
    )
    lying = await played.cluster.document("pods", "a")
    assert {one["type"] for one in lying["status"]["conditions"]} == {"DisruptionTarget", "example.com/gate"}
    assert lying["status"].get("phase") == "Pending"


async def test_a_bound_pod_is_scheduled_whatever_was_said_before(clients: Clients, bus: Bus) -> None:
    pod = await created(clients)
    path = f"{NAMESPACE}/pods/a"
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    assert (await patched(clients, path, {"conditions": [said], "nominatedNodeName": "n1"})).status_code == 200
    await cluster.Cluster(bus).commit([cluster.bound("a", "n1", uid=pod["metadata"]["uid"])])

    async def is_bound() -> bool:
        return "nodeName" in (await clients.ask("GET", path)).json()["spec"]

    await eventually("it is bound", is_bound)
    status = await shown(clients, path)
    assert (of(status, "PodScheduled")["status"], len(status["conditions"])) == ("True", 1)
    assert "nominatedNodeName" not in status
    for refused in ({"conditions": [said]}, {"nominatedNodeName": "n2"}):
        assert (await patched(clients, path, refused)).status_code == 403


async def test_a_nomination_of_the_queue_is_its_own(clients: Clients, bus: Bus) -> None:
    pod = await created(clients)
    path = f"{NAMESPACE}/pods/a"
    fact = Nomination(namespace="default", name="a", uid=pod["metadata"]["uid"], node="n1", epoch=1)
    await cluster.Cluster(bus).write(stored.nomination(fact))

    async def is_nominated() -> bool:
        return (await shown(clients, path)).get("nominatedNodeName") == "n1"

    await eventually("it is nominated", is_nominated)
    refused = await patched(clients, path, {"nominatedNodeName": "n2"})
    assert (refused.status_code, "the queue of Podyard keeps it" in refused.text) == (403, True)


async def test_a_node_that_no_agent_keeps_says_itself_whether_it_is_ready(clients: Clients) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await clients.create("/api/v1/nodes", node)
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = {**READY, "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    wanted = {"capacity": room, "allocatable": room, "conditions": [ready], "nodeInfo": {"kubeletVersion": "fake"}}
    answer = await patched(clients, "/api/v1/nodes/n1", wanted)
    assert answer.status_code == 200, answer.text
    status = await shown(clients, "/api/v1/nodes/n1")
    assert (status["conditions"], status["allocatable"]["cpu"]) == ([ready], "4")
    assert status["nodeInfo"]["kubeletVersion"] == "fake"


async def test_conditions_of_a_node_that_an_agent_says_are_its_own(clients: Clients, bus: Bus) -> None:
    played = Played(clients, bus)
    await played.bound(agent=True)
    refused = await patched(clients, "/api/v1/nodes/n1", {"conditions": [{"type": "Ready", "status": "False"}]})
    told = 'nodes "n1" is forbidden: status.conditions[Ready]: the agent of node n1 keeps it'
    assert (refused.status_code, refused.json()["message"]) == (403, told)
    added = await patched(clients, "/api/v1/nodes/n1", {"conditions": [{"type": "KernelDeadlock", "status": "False"}]})
    assert {one["type"] for one in added.json()["status"]["conditions"]} == {"Ready", "KernelDeadlock"}
