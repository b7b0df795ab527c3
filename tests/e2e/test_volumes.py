"""Volumes that are made for a pod, end to end: the pod waits in the binder, nobody else does, whoever dies
meanwhile."""

from typing import Any

import pytest
import pytest_asyncio

from podyard.workloads.core.volumes import SIMULATED
from tests.e2e.labs import HASTY_VOLUMES
from tests.e2e.provisioner import SELECTED, Provisioner
from tests.e2e.stage import WITHIN_S, Stand, node


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    classes = [storage_class("made", "csi.example.com"), storage_class("local", "kubernetes.io/no-provisioner")]
    await here.do.apply(classes, "a test")
    await here.join(node("node-1"), node("node-2"))
    return here


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(here: Stand, name: str, of: str = "made") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": here.namespace},
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


def user(here: Stand, name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return here.pod(name, volumes=volumes, **spec)


def selected(here: Stand, name: str) -> str:
    found = here.seen.view.objects("persistentvolumeclaims").get((here.namespace, name))
    return "" if found is None else found.metadata.annotations.get(SELECTED, "")


async def marked(here: Stand, name: str) -> str:
    """The node that a claim names, once it does."""
    return await here.seen.until(f"a node for the claim {name}", lambda: selected(here, name), WITHIN_S)


async def test_a_pod_waits_for_its_volume_and_nobody_waits_for_it(here: Stand) -> None:
    await here.do.apply([claim(here, "a"), user(here, "slow", "a")], "a pod with a claim")
    place = await marked(here, "a")
    await here.do.apply([here.pod(f"quick-{number}") for number in range(20)], "pods without one")
    await here.running(*(f"quick-{number}" for number in range(20)))
    assert here.bound_to("slow") == ""
    await Provisioner(here.bus, here.namespace).make("a")
    await here.running("slow")
    assert here.bound_to("slow") == place
    assert here.attempts("slow") == []


@pytest.mark.parametrize("service", ["binder", "scheduler", "queue"])
async def test_who_is_killed_meanwhile_changes_nothing(here: Stand, service: str) -> None:
    name = f"with-{service}"
    await here.do.apply([claim(here, name), user(here, name, name)], "a pod with a claim")
    place = await marked(here, name)
    here.lab.child(service).kill()
    await here.do.apply([here.pod(f"after-{service}")], "a pod that needs all of them")
    await here.running(f"after-{service}")
    assert here.bound_to(name) == ""
    await Provisioner(here.bus, here.namespace).make(name)
    await here.running(name)
    assert here.bound_to(name) == place


async def test_a_volume_that_cannot_be_made_there_is_made_elsewhere(here: Stand) -> None:
    await here.do.apply([claim(here, "b"), user(here, "moving", "b")], "a pod with a claim")
    first = await marked(here, "b")
    await here.do.apply([node(first, cpu="8") | {"spec": {"unschedulable": True}}], "nothing more there")
    try:
        await Provisioner(here.bus, here.namespace).fail("b")
        second = await here.seen.until(
            "another node", lambda: (found := selected(here, "b")) != first and found, WITHIN_S
        )
        await Provisioner(here.bus, here.namespace).make("b")
        await here.running("moving")
    finally:
        await here.do.apply([node(first, cpu="8")], "it is back")
    assert here.bound_to("moving") == second
    await here.attempted("moving")
    (record,) = here.attempts("moving")
    assert record.outcome == "bindError"
    assert 'provisioning failed for PVC "b"' in record.message


async def test_a_volume_that_never_comes_gives_back_what_was_promised_besides(here: Stand) -> None:
    await here.do.apply(
        [local_volume("disk", "node-1"), claim(here, "c"), claim(here, "d", "local"), claim(here, "e", "local")],
        "volumes",
    )
    await here.do.apply(
        [user(here, "never", "c", "d", schedulerName=HASTY_VOLUMES)], "a pod whose volume does not come"
    )
    assert await marked(here, "c") == "node-1"
    await here.do.apply([user(here, "patient", "e")], "a pod that would take the other volume")
    await here.attempted("patient")
    late = await here.seen.until(
        "the time-out", lambda: [one for one in here.attempts("never") if one.outcome == "bindError"], WITHIN_S
    )
    assert "VolumeBinding: binding volumes: waiting for the volumes of PVC" in late[0].message
    assert "not done within 2 s" in late[0].message
    await here.running("patient")
    assert here.seen.view.objects("persistentvolumes")["", "disk"].spec.claim_ref.name == "e"
    assert selected(here, "c") == "node-1"
    await here.do.apply([local_volume("disk-2", "node-1")], "a second volume")
    await Provisioner(here.bus, here.namespace).make("c")
    await here.running("never")


async def test_simulated_volumes_close_the_loop(here: Stand) -> None:
    simulated = [
        storage_class("later", SIMULATED),
        storage_class("now", SIMULATED) | {"volumeBindingMode": "Immediate"},
    ]
    await here.do.apply(simulated, "a cluster that makes its own volumes")
    await here.do.apply(
        [claim(here, "x", "later"), claim(here, "y", "now"), user(here, "both", "x", "y")],
        "a pod that wants two of them",
    )
    await here.running("both")
    volumes = here.seen.view.objects("persistentvolumes").values()
    assert {volume.spec.claim_ref.name: volume.status.phase for volume in volumes} == {"x": "Bound", "y": "Bound"}
    await here.do.delete("persistentvolumeclaims", here.namespace, "y", "it is not needed")
    await here.seen.until("the end of its volume", lambda: len(volumes) == 1, WITHIN_S)
