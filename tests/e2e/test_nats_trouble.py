"""NATS that is not there yet, that is killed, that is full: services wait, say so, and go on without being
started again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from podyard.bus import Bus, EmbeddedServer
from podyard.cli.lab import plan
from podyard.cli.lab.child import Child
from podyard.cli.lab.lab import Lab, LabOptions
from podyard.node_agent.core.annotations import START_DELAY
from podyard.proto import streams
from podyard.runtime import ports
from tests.e2e.stage import (
    READY_S,
    WITHIN_S,
    WITHOUT_LOOPS,
    Stand,
    attended,
    cli,
    jetstream,
    node,
    pause,
    resume,
    state_of,
)

PODS: Final = 200
SLOW_START: Final = {"annotations": {START_DELAY: "1s"}}


async def test_services_that_start_before_nats_wait_say_so_and_then_work(tmp_path: Path) -> None:
    async with services_without_nats(tmp_path) as lab:
        await state_of(lab, _waits_for_nats, "every service waits for NATS", READY_S)
        refused = await cli("get", "pods", url=lab.url)
        assert refused.code == 1
        assert f"no NATS server answers at {lab.url}" in refused.err
        pids = [child.pid for child in lab.children]
        await lab.server.start()
        await lab.until_ready(WITHIN_S)
        async with attended(lab) as here:
            await here.do.apply([node("node-1"), here.pod("first")], "NATS has come")
            await here.running("first")
        assert [child.pid for child in lab.children] == pids


async def test_nats_killed_amid_work_and_started_on_its_store_loses_nothing(here: Stand) -> None:
    names = [f"pod-{number}" for number in range(PODS)]
    await here.join(node("node-1", cpu="64"), node("node-2", cpu="64"))
    pids = [child.pid for child in here.lab.children]
    await here.do.apply([here.pod(name, metadata=SLOW_START) for name in names], "work")
    await here.seen.until("the first binding", lambda: bound(here), WITHIN_S)
    await here.lab.server.kill()
    assert not all(map(here.runs, names))
    await state_of(here.lab, _waits_for_nats, "every service misses NATS")
    await here.lab.server.start()
    await here.running(*names)
    await here.do.apply([here.pod("afterwards")], "work goes on")
    await here.running("afterwards")
    await here.lab.until_ready(WITHIN_S)
    assert [child.pid for child in here.lab.children] == pids
    assert bound(here) == {*names, "afterwards"}


async def test_a_full_stream_makes_services_wait_and_say_so_until_there_is_room(here: Stand) -> None:
    await here.join(node("node-1"))
    pids = [child.pid for child in here.lab.children]
    # each of these has something to write once it goes on: a start, new pods, a binding
    pause(here.lab, "node_agent")
    await here.do.apply([here.pod("bound")], "it is to be started when there is no room")
    await here.seen.until("a binding", lambda: here.bound_to("bound"), WITHIN_S)
    pause(here.lab, "workloads")
    pause(here.lab, "scheduler")
    await here.do.apply([here.pod("waiting"), replica_set(here)], "they are to be bound and made when there is no room")
    await here.seen.until("all objects", lambda: here.seen.view.objects(REPLICA_SETS), WITHIN_S)
    async with no_room(here.bus):
        for service in ("node_agent", "workloads", "scheduler"):
            resume(here.lab, service)
        refused = await here.cli("apply", "-f", "-", stdin=MANIFEST)
        assert refused.code == 1
        assert "no room" in refused.err
        await state_of(here.lab, _says_no_room, "binder, node agent and workloads say that there is no room")
        assert bound(here) == {"bound"}
    await here.running("bound", "waiting")
    await here.seen.until("the ReplicaSet's pods running", lambda: len(here.seen.running("made")) == 2, WITHIN_S)
    applied = await here.cli("apply", "-f", "-", stdin=MANIFEST)
    assert applied.code == 0, applied.err
    await here.running("late")
    await here.lab.until_ready(WITHIN_S)
    assert [child.pid for child in here.lab.children] == pids


REPLICA_SETS: Final = "replicasets"
MANIFEST: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: late}
spec: {containers: [{name: main, image: test}]}
"""


def bound(here: Stand) -> set[str]:
    """Names of all pods that have a node."""
    return {one.name for one in here.seen.view.pods.values() if one.bound is not None}


def replica_set(here: Stand) -> dict[str, Any]:
    """Of two pods `made`."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "made", "namespace": here.namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "made"}},
            "template": {"metadata": {"labels": {"app": "made"}}, "spec": here.pod("made")["spec"]},
        },
    }


@asynccontextmanager
async def services_without_nats(directory: Path) -> AsyncGenerator[Lab]:
    """Supervised services of a lab whose NATS server is not started."""
    options = LabOptions(services=plan.parse(WITHOUT_LOOPS), data_dir=str(directory))
    store = directory / "nats"
    store.mkdir()
    lab = Lab(options, directory, EmbeddedServer(store, ports.free_port(), {}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lab.run)
        try:
            yield lab
        finally:
            with anyio.CancelScope(shield=True):
                await lab.stop()
                await lab.server.stop()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def no_room(bus: Bus) -> AsyncGenerator[None]:
    """While the block runs, the CLUSTER stream takes nothing more."""
    name = streams.CLUSTER.name
    info = await jetstream(bus, f"STREAM.INFO.{name}")
    tight: dict[str, Any] = {**info["config"], "max_bytes": info["state"]["bytes"] // 2}
    await jetstream(bus, f"STREAM.UPDATE.{name}", tight)
    try:
        yield
    finally:
        await jetstream(bus, f"STREAM.UPDATE.{name}", info["config"])


def _waits_for_nats(child: Child) -> bool:
    return child.state == "not ready" and "nats" in child.reason.lower()


def _says_no_room(child: Child) -> bool:
    has_to_write = child.service in ("binder", "node_agent", "workloads")
    return not has_to_write or (child.state == "not ready" and "no room" in child.reason)
