"""`podyard explain` of workloads and nodes: read from a whole cluster, real services on the bus in memory."""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from podyard.cli.errors import CliError
from podyard.cli.explain import node, workload
from podyard.objects.kinds import resource_for
from podyard.proto import codec, subjects
from podyard.proto.moves import MoveRecord
from podyard.runtime import clock
from podyard.telling.workload import WorkloadStory
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.holding import Hold
from tests.support.objects import Document
from tests.support.waiting import eventually
from tests.support.whole import Whole, replicaset, whole


@pytest_asyncio.fixture
async def here(connect_bus: ConnectBus, hold: Hold[Any], tmp_path: Path) -> Whole:
    cluster: Whole = await hold(whole(connect_bus, tmp_path))
    await cluster.nodes(
        objects.node("n1", cpu="2"), objects.node("n2", cpu="2", taints=[{"key": "a", "effect": "NoSchedule"}])
    )
    return cluster


def deployment(name: str, replicas: int, **spec: Any) -> Document:
    made = replicaset(name, replicas, **spec)
    return {**made, "kind": "Deployment"}


async def told(here: Whole, kind: str, name: str, state: str) -> WorkloadStory:
    """The story, once it begins with this sentence."""

    async def probe() -> WorkloadStory | None:
        story = await workload.story(here.bus, resource_for(kind), "default", name)
        return story if story.state == state else None

    return await eventually(f"{kind} {name}: {state}", probe)


async def test_a_deployment_some_of_whose_pods_wait(here: Whole) -> None:
    await here.do.apply([deployment("web", 4, cpu="700m")], "of the test")
    story = await told(here, "deployment", "web", "2 of 4 wait, all for cpu; the nearest node lacks 100m")
    await eventually("two that run", lambda: here.on()["n1"] == 2)
    story = await told(here, "deployment", "web", story.state)
    (cause,) = story.causes
    assert (cause.nearest, cause.detail, cause.nodes_total) == ("n1", "wants 700m cpu, free 600m of 2", 2)
    assert (story.running, story.waiting, story.is_there) == (2, 2, True)
    (of_it,) = here.seen.view.objects("replicasets").values()
    assert (await told(here, "rs", of_it.metadata.name, story.state)).causes == story.causes


async def test_a_workload_whose_pods_a_quota_refuses(here: Whole) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"}}
    await here.do.apply([quota | {"spec": {"hard": {"pods": "1"}}}], "of the test")
    await here.do.apply([deployment("web", 3)], "of the test")
    story = await told(here, "deployment", "web", "1 of 3 run; 2 of 3 are not made")
    await eventually("a warning", lambda: here.seen.events)
    story = await told(here, "deployment", "web", story.state)
    assert {one.reason for one in story.warnings} == {"FailedCreate"}
    for one in story.warnings:
        assert one.message.endswith("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1")
    assert story.help == ("raise the quota, or end what uses it in this namespace",)


async def test_a_node_and_why_waiting_pods_do_not_go_there(here: Whole) -> None:
    waits = [objects.pod("batch", schedulerName="batch"), objects.pod("lost", node="n9")]
    await here.do.apply([replicaset("web", 4, cpu="700m"), *map(objects.written, waits)], "of the test")
    await told(here, "rs", "web", "2 of 4 wait, all for cpu; the nearest node lacks 100m")
    full, tainted = await node.story(here.bus, "n1"), await node.story(here.bus, "n2")
    assert (full.state, len(full.pods), full.waiting) == ("Ready", 2, 4)
    cpu = full.room[0]
    assert (cpu.resource, cpu.requested, cpu.allocatable, cpu.percent) == ("cpu", "1.4", "2", 70)
    assert [(one.pods, one.why) for one in full.kept_off] == [
        (2, "NodeResourcesFit: wants 700m cpu, free 600m of 2"),
        (1, "nodeName is n9, and there is no such node"),
        (1, "schedulerName is batch, and no profile has that name"),
    ]
    assert (tainted.kept_off[0].pods, tainted.kept_off[0].why) == (2, "TaintToleration: does not tolerate a:NoSchedule")


async def test_what_came_in_the_place_of_a_moved_pod_is_looked_for(here: Whole) -> None:
    await here.do.apply([deployment("web", 1)], "of the test")
    story = await told(here, "deployment", "web", "1 of 1 run")
    (pod,) = here.pods()
    owner = pod.stored.metadata.controller
    assert owner is not None
    record = MoveRecord(
        id="m", namespace="default", kind="Deployment", name="web", owner=owner.name, owner_uid=owner.uid,
        pod="before", uid="before", from_node="n2", at=clock.now() - 60, profile="p", plugin="P", known_at=1.0,
    )  # fmt: skip
    here.bus.send(subjects.moves("default", "Deployment", "web"), codec.encode(record))

    async def probe() -> bool:
        nonlocal story
        story = await workload.story(here.bus, resource_for("deployment"), "default", "web")
        return bool(story.moves)

    await eventually("the record is stored", probe)
    (move,) = story.moves
    assert (move.outcome, move.to_pod, move.to_node) == ("running", pod.name, "n1")


async def test_what_is_not_there_is_said(here: Whole) -> None:
    with pytest.raises(CliError, match='no deployment "nope" in namespace "default"'):
        await workload.story(here.bus, resource_for("deployments.apps"), "default", "nope")
    with pytest.raises(CliError, match='no node "n9"'):
        await node.story(here.bus, "n9")
