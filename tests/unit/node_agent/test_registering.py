"""What the object of a host says."""

import pytest

from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.registering import Machine, registered

MEBIBYTE = 1024 * 1024
MACHINE = Machine("linux", "amd64", "6.1", cpus=2, memory_bytes=256 * MEBIBYTE, disk_bytes=1000)
USUAL = KubeletConfiguration()


def test_a_host_registers_what_it_has_and_what_pods_may_ask_for():
    made = registered(None, "me", MACHINE, USUAL)
    assert made["metadata"] == {
        "name": "me",
        "labels": {"kubernetes.io/hostname": "me", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        "annotations": {"podyard.io/agent": "external"},
    }
    assert made["status"]["capacity"] == {
        "cpu": "2", "memory": str(256 * MEBIBYTE), "ephemeral-storage": "1000", "pods": "110"
    }  # fmt: skip
    assert made["status"]["allocatable"] == {
        "cpu": "2", "memory": str(156 * MEBIBYTE), "ephemeral-storage": "900", "pods": "110"
    }  # fmt: skip


def test_what_people_wrote_stays_and_what_the_host_says_is_replaced():
    stored = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "me", "uid": "u1", "labels": {"disk": "ssd", "kubernetes.io/arch": "arm64"}},
        "spec": {"unschedulable": True},
        "status": {"capacity": {"memory": "1Gi", "example.com/gpu": "2"}},
    }
    made = registered(stored, "me", MACHINE, USUAL)
    assert made["metadata"]["labels"]["disk"] == "ssd"
    assert made["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"
    assert made["spec"] == {"unschedulable": True}
    assert made["status"]["capacity"]["example.com/gpu"] == "2"
    assert made["status"]["capacity"]["memory"] == str(256 * MEBIBYTE)
    assert "annotations" not in stored["metadata"], "what is stored is not changed"
    assert registered(made, "me", MACHINE, USUAL) == made


def test_what_is_reserved_is_not_for_pods():
    reserving = KubeletConfiguration(eviction_hard={}, kube_reserved={"cpu": "500m", "memory": "50Mi"})
    made = registered(None, "me", MACHINE, reserving)
    assert (made["status"]["allocatable"]["cpu"], made["status"]["allocatable"]["memory"]) == (
        "1500m",
        str(206 * MEBIBYTE),
    )


def test_where_local_storage_is_not_isolated_there_is_none_to_ask_for():
    made = registered(None, "me", MACHINE, KubeletConfiguration(local_storage_capacity_isolation=False))
    assert "ephemeral-storage" not in made["status"]["capacity"]


def test_more_reserved_than_there_is_cannot_be_registered():
    with pytest.raises(ThresholdError, match="Expected capacity >= reservation"):
        registered(None, "me", MACHINE, KubeletConfiguration(system_reserved={"memory": "257Mi"}))
