"""`metrics.k8s.io`: what agents say that nodes and pods use."""

import time
from typing import Any

import pytest

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.facts import ContainerFact, PodStatusFact
from podyard.proto.placement import Binding
from podyard.proto.signals import ContainerUsage, NodeUsage, PodUsage
from tests.contract.kube_api.conftest import Clients
from tests.support.waiting import eventually

Document = dict[str, Any]
METRICS = "/apis/metrics.k8s.io/v1beta1"
MIB = 1024 * 1024


def usage(node: str = "n1", at: float = 0.0, **more: Any) -> NodeUsage:
    fields = {"cpu_nanocores": 250_000_000, "memory_bytes": 512 * MIB, "window_s": 10.0, **more}
    return NodeUsage(node=node, at=at or time.time(), **fields)


async def say(clients: Clients, said: NodeUsage) -> None:
    """Until it is heard: nobody stores it."""
    clients.bus.send(subjects.usage(said.node), codec.encode(said))

    async def heard() -> bool:
        answer = await clients.ask("GET", f"{METRICS}/nodes/{said.node}")
        return answer.status_code == 200

    await eventually("the usage is heard", heard)


async def add_node(clients: Clients, name: str, **labels: str) -> None:
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    await clients.create("/api/v1/nodes", document)


async def add_pod(clients: Clients, name: str, *containers: str, node: str = "n1", **labels: str) -> None:
    """Of which the agent says that it runs."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": one, "image": "i"} for one in containers]},
    }
    uid = (await clients.create("/api/v1/namespaces/default/pods", document))["metadata"]["uid"]
    placed = codec.encode(Binding(namespace="default", name=name, uid=uid, node=node, attempt="a"))
    await clients.bus.publish(Outgoing(subjects.binding("default", name, uid), placed))
    running = tuple(ContainerFact(name=one, started_at="2026-01-01T00:00:00Z") for one in containers)
    fact = PodStatusFact(namespace="default", name=name, uid=uid, node=node, phase="Running", containers=running)
    await clients.bus.publish(Outgoing(subjects.pod_status(node, "default", name, uid), codec.encode(fact)))

    async def runs() -> bool:
        found = (await clients.ask("GET", f"/api/v1/namespaces/default/pods/{name}")).json()
        return found["status"].get("phase") == "Running"

    await eventually(f"{name} runs", runs)


async def test_what_nodes_use(clients: Clients) -> None:
    await add_node(clients, "n1", zone="a")
    await add_node(clients, "n2", zone="b")
    silent = await clients.ask("GET", f"{METRICS}/nodes/n1")
    assert (silent.status_code, silent.json()["message"]) == (404, 'nodes.metrics.k8s.io "n1" not found')
    await say(clients, usage(at=1_800_000_000.0))
    found = (await clients.ask("GET", f"{METRICS}/nodes/n1")).json()
    assert found.pop("metadata")["labels"] == {"zone": "a"}
    assert found == {
        "kind": "NodeMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "timestamp": "2027-01-15T08:00:00Z",
        "window": "10s",
        "usage": {"cpu": "250m", "memory": "512Mi"},
    }
    for query, names in (("", ["n1"]), ("labelSelector=zone%3Db", []), ("fieldSelector=metadata.name%3Dn1", ["n1"])):
        listed = (await clients.ask("GET", f"{METRICS}/nodes?{query}")).json()
        assert (listed["kind"], [one["metadata"]["name"] for one in listed["items"]]) == ("NodeMetricsList", names)


async def test_what_containers_use(clients: Clients) -> None:
    await add_node(clients, "n1")
    await add_pod(clients, "web", "a", "b", app="x")
    await add_pod(clients, "idle", "a")
    await add_pod(clients, "elsewhere", "a", node="n2")
    parts = (ContainerUsage(name="a", cpu_nanocores=30_000_000, memory_bytes=64 * MIB),)
    used = PodUsage(namespace="default", name="web", cpu_nanocores=100_000_000, memory_bytes=96 * MIB, containers=parts)
    await say(clients, usage(pods=(used,)))
    found = (await clients.ask("GET", f"{METRICS}/namespaces/default/pods/web")).json()
    assert (found["kind"], found["metadata"]["labels"], found["window"]) == ("PodMetrics", {"app": "x"}, "10s")
    assert found["containers"] == [
        {"name": "a", "usage": {"cpu": "30m", "memory": "64Mi"}},
        {"name": "b", "usage": {"cpu": "70m", "memory": "32Mi"}},
    ]
    listed = (await clients.ask("GET", f"{METRICS}/pods")).json()["items"]
    assert [(one["metadata"]["name"], one["containers"][0]["usage"]["cpu"]) for one in listed] == [
        ("idle", "0"),
        ("web", "30m"),
    ]
    selected = (await clients.ask("GET", f"{METRICS}/namespaces/default/pods?labelSelector=app%3Dx")).json()["items"]
    assert [one["metadata"]["name"] for one in selected] == ["web"]
    unmeasured = await clients.ask("GET", f"{METRICS}/namespaces/default/pods/elsewhere")
    assert (unmeasured.status_code, unmeasured.json()["message"]) == (
        404,
        'pods.metrics.k8s.io "default/elsewhere" not found',
    )
    missing = await clients.ask("GET", f"{METRICS}/namespaces/default/pods/none")
    assert missing.json()["message"] == 'pods "none" not found'


async def test_a_table_of_what_nodes_use(clients: Clients) -> None:
    await add_node(clients, "n1")
    await say(clients, usage())
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = (await clients.ask("GET", f"{METRICS}/nodes", headers=accept)).json()
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert [row["cells"] for row in table["rows"]] == [["n1", "250m", "512Mi", "10s"]]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nodes?watch=true", 405),
        ("POST", "/nodes", 405),
        ("DELETE", "/nodes/n1", 405),
        ("GET", "/nodes/x", 404),
    ],
)
async def test_metrics_are_read_and_not_watched(clients: Clients, method: str, path: str, code: int) -> None:
    assert (await clients.ask(method, f"{METRICS}{path}", json={})).status_code == code


async def test_the_group_is_discovered(clients: Clients) -> None:
    groups = (await clients.ask("GET", "/apis")).json()["groups"]
    assert {"metrics.k8s.io", "events.k8s.io"} <= {group["name"] for group in groups}
