"""The agent of its host: it registers the node, reads it, and runs pods as processes that outlive it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest_asyncio

from podyard.api.service import SERVICE as API
from podyard.bus import Bus
from podyard.node_agent.host.hierarchies import MEMORY
from podyard.node_agent.host_link import REGISTERED
from podyard.proto import subjects
from podyard.runtime.service import Service
from tests.contract.api.conftest import stored
from tests.contract.node_agent.host.stage import Host, hierarchy
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support.buses import ConnectBus
from tests.support.holding import held
from tests.support.services import make_service, running
from tests.support.waiting import eventually

CAPACITY = 256 << 20
SLEEP = "trap 'exit 7' TERM; echo up; sleep 3600 & wait"


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


@pytest_asyncio.fixture
async def api(connect_bus: ConnectBus) -> AsyncIterator[Service[Any]]:
    service = make_service(API, await connect_bus("api"))
    async with held(running(service)):
        await eventually("the api is ready", lambda: service.health.ready)
        yield service


@pytest_asyncio.fixture
async def host() -> AsyncIterator[Host]:
    """A cgroup of 256 MiB."""
    found = Host(hierarchy())
    try:
        found.hierarchy.make(found.node)
        found.write(MEMORY, "memory.limit_in_bytes", str(CAPACITY))
        yield found
    finally:
        await found.clean()


def playing(bus: Bus, stage: Stage, host: Host, **settings: object) -> AbstractAsyncContextManager[Service[Any]]:
    chosen = {
        "host_node": "here",
        "node_cgroup": f"/{host.node}",
        "host_dir": str(host.state),
        "runtime": "process",
        "process_namespaces": ("default",),
        **settings,
    }
    return agent(bus, stage, **chosen)


def status(stage: Stage, kind: str) -> str:
    fact = stage.node_fact("here")
    return "" if fact is None else next((one.status for one in fact.conditions if one.type == kind), "")


async def ready(stage: Stage) -> None:
    await eventually("the host is ready", lambda: status(stage, "Ready") == "True")


def commands(script: str = SLEEP, **more: Any) -> dict[str, Any]:
    return {"container": {"command": ["sh", "-c", script], **more}}


async def test_a_host_is_registered_with_what_it_has_and_what_others_wrote_stays(
    bus: Bus, stage: Stage, host: Host, api: Service[Any]
):
    await stage.node("here", labels={"disk": "ssd"})
    await eventually("the api knows the node", lambda: api.metrics.get_sample_value("podyard_api_position"))
    async with playing(bus, stage, host):
        await ready(stage)
        found = (await stored(bus, "nodes", "here", "")).document()
    assert found["metadata"]["labels"]["disk"] == "ssd"
    assert found["metadata"]["annotations"] == {"podyard.io/agent": "external"}
    assert found["status"]["capacity"]["memory"] == str(CAPACITY)
    assert found["status"]["allocatable"]["memory"] == str(CAPACITY - (100 << 20))
    first = next(one for one in stage.history if one.subject == subjects.node_status("here"))
    assert b"nothing was read of the host yet" in first.payload, "it was not ready before it was read"


async def test_without_an_api_the_host_says_why_it_is_no_node(bus: Bus, stage: Stage, host: Host):
    async with playing(bus, stage, host) as service:
        check = await eventually("a reason", lambda: _reason(service))
        assert check.startswith("the host is not registered as a node: ")


def _reason(service: Service[Any]) -> str:
    found = service.health.checks.get(REGISTERED)
    return found.reason if found is not None and "not registered as a node: " in found.reason else ""


async def test_what_cannot_be_read_is_told_and_evicts_nobody(bus: Bus, stage: Stage, host: Host, api: Service[Any]):
    async with playing(bus, stage, host) as service:
        await ready(stage)
        pod = await stage.pod("web", "here", **commands())
        await stage.phase(pod, "Running")
        host.write(MEMORY, "memory.limit_in_bytes", "-1")
        await eventually("the condition", lambda: status(stage, "ReadingsStale") == "True")
        assert status(stage, "Ready") == "True"
        host.write(MEMORY, "memory.limit_in_bytes", str(CAPACITY))
        await eventually("a reading again", lambda: status(stage, "ReadingsStale") == "")
        assert service.health.ready
    assert not [one for one in stage.news if one.reason == "Evicted"]
    (told,) = [one.message for one in stage.news if one.reason == "ReadingsStale"]
    assert told.startswith(f"eviction manager: failed to get summary stats: the cgroup {host.node} has no memory limit")


async def test_a_process_outlives_its_agent_and_ends_with_its_pod(
    bus: Bus, stage: Stage, host: Host, api: Service[Any]
):
    async with playing(bus, stage, host):
        await ready(stage)
        pod = await stage.pod("web", "here", **commands())
        await stage.phase(pod, "Running")
        before = host.alive()
    async with playing(bus, stage, host, instance="agent-2"):
        await ready(stage)
        assert host.alive() == before
        await stage.delete(pod, grace_s=20)
        fact = await stage.phase(pod, "Failed")
        assert host.alive() == set()
        await eventually("nothing is left of it", lambda: not list((host.state / "pods").iterdir()))
    assert fact.ended
    assert fact.containers[0].end is not None
    assert (fact.containers[0].end.exit_code, fact.containers[0].restarts) == (7, 0)


async def test_what_ended_while_no_agent_lived_is_told_and_what_is_bound_no_more_is_killed(
    bus: Bus, stage: Stage, host: Host, api: Service[Any]
):
    async with playing(bus, stage, host):
        await ready(stage)
        ends = await stage.pod(
            "ends", "here", restartPolicy="Never", **commands("while [ ! -e go ]; do sleep 0.02; done; exit 5")
        )
        goes = await stage.pod("goes", "here", **commands())
        await stage.phase(ends, "Running")
        await stage.phase(goes, "Running")
    (host.state / "pods" / ends["metadata"]["uid"] / "containers/main/files/go").touch()
    record = host.state / "pods" / ends["metadata"]["uid"] / "containers/main/run.json"
    await eventually("its end", lambda: b"ended_at" in record.read_bytes())
    await stage.release(goes)
    await stage.remove("pods", goes)
    async with playing(bus, stage, host):
        fact = await stage.phase(ends, "Failed")
        await eventually("all have ended", lambda: not host.alive())
    assert fact.containers[0].end is not None
    assert fact.containers[0].end.exit_code == 5


async def test_what_needs_more_than_a_process_is_refused_and_a_command_that_is_not_there_is_told(
    bus: Bus, stage: Stage, host: Host, api: Service[Any]
):
    async with playing(bus, stage, host):
        await ready(stage)
        image = await stage.pod("image", "here")
        other = await stage.pod("other", "here", namespace="prod", **commands())
        absent = await stage.pod("absent", "here", container={"command": ["/no/such"]}, restartPolicy="Never")
        refused = [await stage.phase(one, "Failed") for one in (image, other)]
        failed = await stage.phase(absent, "Failed")
        await eventually("word of it", lambda: any("/no/such" in one.message for one in stage.news))
    assert [one.reason for one in refused] == ["UnsupportedByProcesses"] * 2
    assert refused[0].message.endswith("command: is missing: without its image nobody knows what to run")
    assert refused[1].message.endswith("prod is none of those whose pods run here: default")
    assert failed.containers[0].end is not None
    assert (failed.containers[0].end.exit_code, failed.containers[0].end.reason) == (128, "StartError")
    assert host.alive() == set()
