"""Volumes that are made for a pod, end to end: the pod waits in the binder, nobody else does, whoever dies meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from podyard.proto.decisions import AttemptRecord
from podyard.workloads.core.volumes import SIMULATED
from tests.e2e.provisioner import SELECTED, Provisioner
from tests.e2e.stage import WITHIN_S, WITHOUT_LOOPS, Stand, held, node, pod, stand

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

HASTY: Final = "hasty"
"""A profile that waits 2 seconds for volumes, not 10 minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    directory = tmp_path_factory.mktemp("volumes")
    hasty = {"schedulerName": HASTY, "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}, hasty],
    }
    file = directory / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    async with held(stand(directory, scheduler_config=str(file))) as running:
        classes = [storage_class("made", "csi.example.com"), storage_class("local", "kubernetes.io/no-provisioner")]
        await running.do.apply([*classes, node("node-1"), node("node-2")], "a test")
        yield running


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, of: str = "made") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def local_volume(name: str, on: str) -> dict[str, Any]:
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        },
        "status": {"phase": "Available"},
    }


def user(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, volumes=volumes, **spec)


def selected(here: Stand, name: str) -> str:
    found = here.seen.view.others["persistentvolumeclaims"].get(("default", name))
    return "" if found is None else found.metadata.annotations.get(SELECTED, "")


async def marked(here: Stand, name: str) -> str:
    """The node that a claim names, once it does."""
    return await here.seen.until(f"a node for the claim {name}", lambda: selected(here, name), WITHIN_S)


def bound_to(here: Stand, name: str) -> str:
    found = here.seen.view.pods.get(("default", name))
    return "" if found is None or found.bound is None else found.bound.node


def attempts(here: Stand, name: str) -> list[AttemptRecord]:
    return [record for record in here.seen.attempts if record.name == name]


async def test_a_pod_waits_for_its_volume_and_nobody_waits_for_it(here: Stand) -> None:
    await here.do.apply([claim("a"), user("slow", "a")], "a pod with a claim")
    place = await marked(here, "a")
    await here.do.apply([pod(f"quick-{number}") for number in range(20)], "pods without one")
    await here.running(*(f"quick-{number}" for number in range(20)))
    assert bound_to(here, "slow") == ""
    await Provisioner(here.bus).make("a")
    await here.running("slow")
    assert bound_to(here, "slow") == place
    assert attempts(here, "slow") == []


@pytest.mark.parametrize("service", ["binder", "scheduler", "queue"])
async def test_who_is_killed_meanwhile_changes_nothing(here: Stand, service: str) -> None:
    name = f"with-{service}"
    await here.do.apply([claim(name), user(name, name)], "a pod with a claim")
    place = await marked(here, name)
    here.lab.child(service).kill()
    await here.do.apply([pod(f"after-{service}")], "a pod that needs all of them")
    await here.running(f"after-{service}")
    assert bound_to(here, name) == ""
    await Provisioner(here.bus).make(name)
    await here.running(name)
    assert bound_to(here, name) == place


async def test_a_volume_that_cannot_be_made_there_is_made_elsewhere(here: Stand) -> None:
    await here.do.apply([claim("b"), user("moving", "b")], "a pod with a claim")
    first = await marked(here, "b")
    await here.do.apply([node(first, cpu="8") | {"spec": {"unschedulable": True}}], "nothing more there")
    try:
        await Provisioner(here.bus).fail("b")
        second = await here.seen.until(
            "another node", lambda: (found := selected(here, "b")) != first and found, WITHIN_S
        )
        await Provisioner(here.bus).make("b")
        await here.running("moving")
    finally:
        await here.do.apply([node(first, cpu="8")], "it is back")
    assert bound_to(here, "moving") == second
    (record,) = attempts(here, "moving")
    assert record.outcome == "bind_error"
    assert 'provisioning failed for PVC "b"' in record.message


async def test_a_volume_that_never_comes_gives_back_what_was_promised_besides(here: Stand) -> None:
    await here.do.apply(
        [local_volume("disk", "node-1"), claim("c"), claim("d", "local"), claim("e", "local")], "volumes"
    )
    await here.do.apply([user("never", "c", "d", schedulerName=HASTY)], "a pod whose volume does not come")
    assert await marked(here, "c") == "node-1"
    await here.do.apply([user("patient", "e")], "a pod that would take the other volume")
    await here.attempted("patient")
    late = await here.seen.until(
        "the time-out", lambda: [one for one in attempts(here, "never") if one.outcome == "bind_error"], WITHIN_S
    )
    assert "VolumeBinding: binding volumes: waiting for the volumes of PVC" in late[0].message
    assert "not done within 2 s" in late[0].message
    await here.running("patient")
    assert here.seen.view.others["persistentvolumes"]["", "disk"].spec.claim_ref.name == "e"
    assert selected(here, "c") == "node-1"
    await here.do.apply([local_volume("disk-2", "node-1")], "a second volume")
    await Provisioner(here.bus).make("c")
    await here.running("never")


async def test_simulated_volumes_close_the_loop(tmp_path: Path) -> None:
    async with stand(tmp_path, f"{WITHOUT_LOOPS},workloads") as here:
        simulated = [
            storage_class("later", SIMULATED),
            storage_class("now", SIMULATED) | {"volumeBindingMode": "Immediate"},
        ]
        await here.do.apply([*simulated, node("node-1")], "a cluster that makes its own volumes")
        await here.do.apply(
            [claim("x", "later"), claim("y", "now"), user("both", "x", "y")], "a pod that wants two of them"
        )
        await here.running("both")
        volumes = here.seen.view.others["persistentvolumes"].values()
        assert {volume.spec.claim_ref.name: volume.status.phase for volume in volumes} == {"x": "Bound", "y": "Bound"}
        await here.do.delete("persistentvolumeclaims", "default", "y", "it is not needed")
        await here.seen.until("the end of its volume", lambda: len(volumes) == 1, WITHIN_S)
