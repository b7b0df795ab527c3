"""A user's Permit plugin, end to end: pods of a group wait with their room for each other, and give it back if they wait in vain."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from tests.e2e.stage import WITHIN_S, Stand, held, node, pod, stand

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

ROOT: Final = Path(__file__).parents[2]
PLUGIN: Final = "examples.plugins.pod_group:PodGroup"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    directory = tmp_path_factory.mktemp("permit")
    plugins = {"multiPoint": {"enabled": [{"name": PLUGIN}]}}
    profiles = [
        {
            "schedulerName": name,
            "plugins": plugins,
            "pluginConfig": [{"name": PLUGIN, "args": {"waitSeconds": seconds}}],
        }
        for name, seconds in (("default-scheduler", 600), ("hasty", 2))
    ]
    file = directory / "scheduler.yaml"
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump(configuration | {"profiles": profiles}))
    options = {"scheduler_config": str(file), "environment": {"PYTHONPATH": str(ROOT)}}
    async with held(stand(directory, **options)) as running:
        await running.do.apply([node("node-1", cpu="4"), node("node-2", cpu="4")], "a test")
        yield running


def member(group: str, number: int, size: int, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    manifest = pod(f"{group}-{number}", cpu=cpu, **spec)
    manifest["metadata"]["labels"] |= {"pod-group": group, "pod-group-size": str(size)}
    return manifest


def bound(here: Stand, *names: str) -> list[str]:
    known = here.seen.view.pods
    return [name for name in names if ("default", name) in known and known["default", name].bound is not None]


async def test_a_group_runs_when_it_is_whole_and_nobody_waits_for_it(here: Stand) -> None:
    await here.do.apply([member("trio", 1, 3), member("trio", 2, 3)], "two of three")
    await here.do.apply([pod("alone")], "a pod of no group")
    await here.running("alone")
    assert bound(here, "trio-1", "trio-2") == []
    await here.do.apply([member("trio", 3, 3)], "the third")
    await here.running("trio-1", "trio-2", "trio-3")


async def test_a_group_whose_scheduler_dies_while_it_waits_runs_all_the_same(here: Stand) -> None:
    await here.do.apply([member("pair", 1, 2)], "one of two")
    await here.do.apply([pod("other")], "a pod that shows that the scheduler works")
    await here.running("other")
    here.lab.child("scheduler").kill()
    await here.do.apply([member("pair", 2, 2)], "the second")
    await here.running("pair-1", "pair-2")


async def test_a_group_that_is_never_whole_gives_its_room_back(here: Stand) -> None:
    hasty = {"schedulerName": "hasty"}
    await here.do.apply([member("big", number, 3, cpu="3", **hasty) for number in (1, 2)], "two that take both nodes")
    await here.do.apply([pod("next", cpu="3")], "a pod that needs their room")
    await here.attempted("next")
    await here.attempted("big-1")
    await here.attempted("big-2")
    records = {record.name: record for record in here.seen.attempts if record.name.startswith("big")}
    assert {record.unschedulable_plugins for record in records.values()} == {("PodGroup",)}
    assert any("timeout after waiting at plugin PodGroup" in record.message for record in records.values())
    await here.running("next")
    assert await here.seen.until("the room was given back", lambda: bound(here, "next"), WITHIN_S) == ["next"]
    assert bound(here, "big-1", "big-2") == []
