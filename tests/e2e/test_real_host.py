"""A real process leaks into the cgroup that is a node, is evicted as soon as the kernel tells, and is made
again elsewhere. Needs root and cgroups of version 1 or 2."""

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
import yaml

from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.host import groups, hierarchies
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.hierarchies import MEMORY
from tests.contract.node_agent.host.stage import Host, hierarchy
from tests.e2e.stage import WITHIN_S, Stand, node
from tests.support.waiting import eventually

MEBIBYTE = 1 << 20
CAPACITY = 256 * MEBIBYTE
EXAMPLE = Path(__file__).parents[2] / "examples/real-host/leak.yaml"


@pytest_asyncio.fixture(loop_scope="session")
async def host() -> AsyncIterator[Host]:
    """A cgroup of 256 MiB."""
    try:
        version = hierarchies.find().version
    except HostError as error:
        pytest.skip(str(error))
    found = Host(hierarchy(version))
    try:
        found.hierarchy.make(found.node)
        found.write(MEMORY, "memory.max" if version == 2 else "memory.limit_in_bytes", str(CAPACITY))
        yield found
    finally:
        await found.clean()


@asynccontextmanager
async def agent(here: Stand, host: Host) -> AsyncIterator[None]:
    """The agent of the node `here`; it looks by itself every 10 minutes."""
    words = (
        "run", "node_agent", "--nats", here.lab.url, "--instance", "host", "--http-port", "-1",
        "--host-node", "here", "--node-cgroup", f"/{host.node}",
        "--runtime", "process", "--process-namespaces", here.namespace,
        "--set", f"node_agent.host_dir={host.state}", "--set", "node_agent.monitoring_interval_s=600",
    )  # fmt: skip
    async with await anyio.open_process([sys.executable, "-m", "podyard.cli", *words], stdout=None, stderr=None) as one:
        try:
            yield
        finally:
            one.send_signal(signal.SIGTERM)
            await one.wait()


def leaking(here: Stand) -> dict[str, Any]:
    """The example of docs/real-host.md, in this namespace."""
    made = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    return {**made, "metadata": {**made["metadata"], "namespace": here.namespace}}


def is_true(view: NodeView | None, kind: str) -> bool:
    return view is not None and any((one.type, one.status) == (kind, "True") for one in view.node.status.conditions)


async def test_a_process_that_leaks_is_evicted_before_the_next_look_and_made_again_elsewhere(here: Stand, host: Host):
    def pods(on: str) -> list[PodView]:
        found = [one for (namespace, _), one in here.seen.view.pods.items() if namespace == here.namespace]
        return [one for one in found if one.status is not None and one.status.node == on]

    def evicted() -> PodView | None:
        return next((one for one in pods("here") if one.status and one.status.reason == REASON), None)

    def host_node() -> NodeView | None:
        return here.seen.view.nodes.get("here")

    await here.join(node("node-1"))
    async with agent(here, host):
        await here.seen.until("a host that is ready", lambda: is_true(host_node(), "Ready"), WITHIN_S)
        await here.do.apply([leaking(here)], "a test")
        await here.seen.until("an eviction for real", lambda: evicted() is not None, WITHIN_S)
        await here.seen.until("pressure", lambda: is_true(host_node(), "MemoryPressure"), WITHIN_S)
        await here.seen.until(
            "another pod elsewhere",
            lambda: any(one.status.phase == "Running" for one in pods("node-1")),
            WITHIN_S,  # type: ignore[union-attr]
        )
        await eventually(
            "memory is free again",
            lambda: groups.memory(host.hierarchy, host.node).working_set < 64 * MEBIBYTE,
        )
        victim = evicted()
    assert victim is not None
    assert victim.status is not None
    assert victim.status.message.startswith("The node was low on resource: memory. Threshold quantity: 100Mi, ")
    assert victim.status.containers[0].end is not None
    assert victim.status.containers[0].end.exit_code in (137, 143)
    assert host.alive() == set()
