"""Bindings by somebody else's scheduler, with the api and the binder behind the Kubernetes API."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest
import pytest_asyncio

from podyard.binder.service import SERVICE as BINDER
from podyard.bus import Bus
from podyard.kube_api import binding
from tests.contract.kube_api.conftest import Clients, served
from tests.support import cluster
from tests.support.holding import Hold
from tests.support.services import make_service, running

Document = dict[str, Any]
PODS: Final = "/api/v1/namespaces/default/pods"
FOREIGN: Final = "their-scheduler"


def pod(name: str, cpu: str = "1", **spec: Any) -> Document:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    whole = {"schedulerName": FOREIGN, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def node(name: str, cpu: str = "2") -> Document:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def bind(name: str, to: str, **metadata: str) -> Document:
    target = {"apiVersion": "v1", "kind": "Node", "name": to}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


class Cluster:
    """Nodes and pods, and who binds them."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    async def has(self, *documents: Document) -> None:
        for document in documents:
            path = PODS if document["kind"] == "Pod" else "/api/v1/nodes"
            await self.clients.create(path, document)

    async def bind(self, name: str, to: str, **metadata: str) -> httpx.Response:
        return await self.clients.ask("POST", f"{PODS}/{name}/binding", json=bind(name, to, **metadata))

    async def pod(self, name: str) -> Document:
        return (await self.clients.ask("GET", f"{PODS}/{name}")).json()

    async def node_of(self, name: str) -> str:
        return (await self.pod(name))["spec"].get("nodeName", "")


@asynccontextmanager
async def bound(bus: Bus, folder: Path) -> AsyncGenerator[Cluster]:
    async with served(bus, folder) as clients, running(make_service(BINDER, bus)) as _:
        yield Cluster(clients)


@pytest_asyncio.fixture
async def there(bus: Bus, tmp_path: Path, hold: Hold[Cluster]) -> Cluster:
    return await hold(bound(bus, tmp_path))


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    status = answer.json()
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    return answer.status_code, status["reason"], status["message"]


async def test_a_pod_is_bound_once_and_is_scheduled_then(there: Cluster) -> None:
    await there.has(node("n1"), node("n2"), pod("a"))
    answer = await there.bind("a", "n1")
    assert (answer.status_code, answer.json()["kind"], answer.json()["status"]) == (201, "Status", "Success")
    shown = await there.pod("a")
    (scheduled,) = (one for one in shown["status"]["conditions"] if one["type"] == "PodScheduled")
    assert (shown["spec"]["nodeName"], scheduled["status"]) == ("n1", "True")
    told = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    assert refused(await there.bind("a", "n2")) == (409, "Conflict", told)
    assert await there.node_of("a") == "n1"


async def test_a_binding_without_a_pod_in_the_url_is_taken_too(there: Cluster) -> None:
    await there.has(node("n1"), pod("a"))
    path = "/api/v1/namespaces/default/bindings"
    assert (await there.clients.ask("POST", path, json=bind("a", "n1"))).status_code == 201
    assert await there.node_of("a") == "n1"
    listed = (await there.clients.ask("GET", "/api/v1")).json()["resources"]
    assert next(one["verbs"] for one in listed if one["name"] == "bindings") == ["create"]
    assert (await there.clients.ask("GET", path)).status_code == 405


async def test_protobuf_is_read(there: Cluster) -> None:
    await there.has(node("n1"), pod("a"))
    uid = (await there.pod("a"))["metadata"]["uid"]
    metadata = field(1, b"a") + field(5, uid.encode())
    raw = field(1, metadata) + field(2, field(1, b"Node") + field(3, b"n1"))
    body = b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"Binding")) + field(2, raw)
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    answer = await there.clients.ask("POST", f"{PODS}/a/binding", headers=headers, content=body)
    assert (answer.status_code, await there.node_of("a")) == (201, "n1")


def field(number: int, value: bytes) -> bytes:
    """A field of bytes, fewer than 128."""
    return bytes((number << 3 | 2, len(value))) + value


async def test_no_node_gets_more_than_it_has(there: Cluster) -> None:
    await there.has(node("n1", cpu="1"), pod("a"), pod("b"))
    assert (await there.bind("a", "n1")).status_code == 201
    code, reason, message = refused(await there.bind("b", "n1"))
    assert (code, reason, "Insufficient cpu" in message) == (409, "Conflict", True)
    assert await there.node_of("b") == ""


async def test_many_who_bind_at_once_bind_each_pod_once_and_within_the_room(there: Cluster, bus: Bus) -> None:
    names = [f"p{at}" for at in range(8)]
    await there.has(node("n1", cpu="3"), node("n2", cpu="2"), *map(pod, names))
    codes: dict[tuple[str, str], int] = {}

    async def ask(name: str, to: str) -> None:
        codes[name, to] = (await there.bind(name, to)).status_code

    async with anyio.create_task_group() as tasks:
        for name in names:
            for to in ("n1", "n2"):
                tasks.start_soon(ask, name, to)
    won = {name: to for (name, to), code in codes.items() if code == 201}
    nodes = {name: await there.node_of(name) for name in names}
    assert won == {name: to for name, to in nodes.items() if to}
    assert sorted(won.values()) == ["n1", "n1", "n1", "n2", "n2"]
    assert set(codes.values()) == {201, 409}
    commits = await cluster.Cluster(bus).commits()
    assert sorted(one.name for commit in commits for one in commit.bindings) == sorted(won)


async def test_what_cannot_be_bound_is_refused_with_the_reason(there: Cluster) -> None:
    await there.has(node("n1"), pod("a"), pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
    assert refused(await there.bind("nobody", "n1")) == (404, "NotFound", 'pods "nobody" not found')
    assert refused(await there.bind("a", "nowhere")) == (404, "NotFound", 'nodes "nowhere" not found')
    gated = "pod gated has non-empty .spec.schedulingGates"
    assert refused(await there.bind("gated", "n1"))[2].endswith(gated)
    code, reason, message = refused(await there.bind("a", "n1", uid="another"))
    assert (code, reason, "UID in precondition: another" in message) == (409, "Conflict", True)
    code, _, message = refused(await there.bind("a", "n1", resourceVersion="1"))
    assert (code, "ResourceVersion in precondition: 1" in message) == (409, True)
    reader = await there.clients.ask("POST", f"{PODS}/a/binding", "a-reader", json=bind("a", "n1"))
    assert refused(reader)[:2] == (403, "Forbidden")
    assert await there.node_of("a") == ""


@pytest.mark.parametrize(
    ("body", "query", "code", "words"),
    [
        ({"metadata": {"name": "b"}, "target": {"name": "n1"}}, "", 400, "name in URL does not match"),
        ({"target": {}}, "", 422, "target.name: Required value"),
        ({"target": {"kind": "Pod", "name": "n1"}}, "", 422, 'supported values: "Node"'),
        ({"kind": "Pod", "target": {"name": "n1"}}, "", 400, "expected a Binding"),
        ({"metadata": {"annotations": {"a": "b"}}, "target": {"name": "n1"}}, "", 501, "patch the pod instead"),
        ({"target": {"name": "n1"}}, "?dryRun=All", 501, "not rehearsed"),
    ],
)
async def test_what_is_no_binding_is_refused(there: Cluster, body: Document, query: str, code: int, words: str) -> None:
    await there.has(node("n1"), pod("a"))
    found = refused(await there.clients.ask("POST", f"{PODS}/a/binding{query}", json=body))
    assert (found[0], words in found[2]) == (code, True), found


async def test_nobody_says_bound_or_not_while_it_is_not_known(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BIND_S", "WITHDRAW_S"):
        monkeypatch.setattr(binding, name, 0.2)
    there = Cluster(clients)
    await there.has(node("n1"), pod("a"))
    code, reason, message = refused(await there.bind("a", "n1"))
    assert (code, reason) == (504, "Timeout")
    assert message.startswith("whether pod a is bound is not known: ")


async def test_a_pod_that_is_deleted_is_not_bound(there: Cluster) -> None:
    await there.has(node("n1"), pod("a"))
    assert (await there.bind("a", "n1")).status_code == 201
    assert (await there.clients.ask("DELETE", f"{PODS}/a")).status_code == 200
    assert refused(await there.bind("a", "n1"))[2].endswith("pod a is being deleted, cannot be assigned to a host")


async def test_the_profile_of_a_scheduler_that_nobody_here_has_is_the_default_one(there: Cluster) -> None:
    """Its filters are asked: no taint is overlooked."""
    tainted = node("n1")
    tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    await there.has(tainted, pod("a"), pod("b", tolerations=[{"operator": "Exists"}]))
    assert "untolerated taint" in refused(await there.bind("a", "n1"))[2]
    assert (await there.bind("b", "n1")).status_code == 201
