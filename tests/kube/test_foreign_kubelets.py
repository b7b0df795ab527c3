"""Nodes that no agent of Podyard's keeps: somebody else's kubelets register them, renew leases, and write
what becomes of pods.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

from podyard.cli.lab.nodes import virtual_node
from podyard.node_agent.core.selection import AGENT, EXTERNAL
from podyard.proto import streams
from tests.faults.load import NODES
from tests.kube.foreign_stack import stack
from tests.kube.reference import kubelets

SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads,kube_api"
WITHIN_S: Final = 60.0
NAMESPACE: Final = "default"
Json = dict[str, Any]


def theirs(number: int) -> Json:
    node = virtual_node(number)
    node["metadata"]["annotations"] = {AGENT: EXTERNAL}
    return {**node, "spec": {}}


def workload(api_version: str, kind: str, name: str, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {"template": template, **spec}}


async def until(what: str, client: httpx.AsyncClient, path: str, is_so: Callable[[Json], bool]) -> None:
    """Ask again until it is so.

    :raises AssertionError: it is not in time
    """
    end = time.monotonic() + WITHIN_S
    while not is_so(found := (await client.get(path)).json()):
        assert time.monotonic() < end, f"{what}: {found}"
        await anyio.sleep(0.2)


def says(field: str, wanted: int) -> Callable[[Json], bool]:
    """Whether a status has that number there."""
    return lambda found: found.get("status", {}).get(field) == wanted


@pytest.mark.timeout(300)
async def test_what_kubelets_of_somebody_else_say_counts(tmp_path: Path) -> None:
    async with stack(tmp_path, SERVICES) as (stage, served), served.client() as client:
        for number in range(NODES):  # those that the agent keeps
            assert (await client.delete(f"/api/v1/nodes/n{number}")).status_code == 200
        with ExitStack() as running:
            their = running.enter_context(served.blocking())
            await anyio.to_thread.run_sync(
                running.enter_context, kubelets.running(their, [theirs(number) for number in (1, 2)])
            )
            try:
                await _play(client)
            finally:
                await anyio.to_thread.run_sync(running.close)
        await stage.recorder.complete(await stage.bus.last_sequence(streams.CLUSTER.name), 5)
        assert stage.recorder.checker.violations == []


async def _play(client: httpx.AsyncClient) -> None:
    deployments = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for path, document in (
        (deployments, workload("apps/v1", "Deployment", "web", replicas=3)),
        (jobs, workload("batch/v1", "Job", "once", completions=2, parallelism=2)),
    ):
        made = await client.post(path, json=document)
        assert made.status_code == 201, made.text
    for path, field, wanted in ((f"{deployments}/web", "availableReplicas", 3), (f"{jobs}/once", "succeeded", 2)):
        await until(f"{field} is {wanted}", client, path, says(field, wanted))
    listed = (await client.get(pods)).json()["items"]
    assert {one["spec"]["nodeName"] for one in listed} == {"node-1", "node-2"}
    (first, *_) = [one for one in listed if one["metadata"]["labels"]["app"] == "web"]
    gone = await client.delete(f"{pods}/{first['metadata']['name']}")
    assert gone.status_code == 200
    uid = first["metadata"]["uid"]
    await until("another takes its place", client, pods, lambda found: _running(found, but=uid) == 3)
    left = (await client.get(f"{pods}/{first['metadata']['name']}")).json()
    assert left["kind"] == "Status", "its kubelet has removed it"


def _running(listed: Json, but: str) -> int:
    return sum(
        one["status"]["phase"] == "Running"
        and one["metadata"]["uid"] != but
        and one["metadata"]["labels"]["app"] == "web"
        for one in listed["items"]
    )
