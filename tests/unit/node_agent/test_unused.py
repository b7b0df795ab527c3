"""What a KubeletConfiguration says without effect is told."""

from typing import Any

from podyard.node_agent.core.eviction import unused
from podyard.node_agent.core.eviction.unused import Unused

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def told(**fields: Any) -> list[str]:
    return [one.field for one in unused.found({**HEAD, **fields})]


def test_fields_by_which_pods_are_evicted_are_not_told():
    assert told() == []
    assert (
        told(
            evictionHard={"memory.available": "1Gi"},
            evictionSoft={"nodefs.available": "20%"},
            evictionSoftGracePeriod={"nodefs.available": "1m"},
            evictionMinimumReclaim={"nodefs.available": "1Gi", "memory.available": "1Mi"},
            mergeDefaultEvictionSettings=True,
            evictionMaxPodGracePeriod=5,
            evictionPressureTransitionPeriod="10s",
            enforceNodeAllocatable=["none"],
            localStorageCapacityIsolation=False,
            maxPods=3,
            imageGCHighThresholdPercent=90,
            imageGCLowThresholdPercent=50,
            imageMinimumGCAge="1m",
            imageMaximumGCAge="1h",
        )
        == []
    )


def test_what_virtual_nodes_do_not_have_is_told_where_it_differs_from_the_default():
    assert told(cgroupsPerQOS=True, systemReserved={}) == []
    assert unused.found({**HEAD, "cgroupsPerQOS": False, "kubeReserved": {"cpu": "1"}}) == (
        Unused("kubeReserved", "capacity and allocatable of a virtual node are those of its object"),
        Unused("cgroupsPerQOS", "virtual nodes have no cgroups"),
    )
    assert told(enforceNodeAllocatable=["pods", "kube-reserved"], kubeReservedCgroup="/kube") == [
        "kubeReservedCgroup", "enforceNodeAllocatable[1]"
    ]  # fmt: skip


def test_entries_for_signals_that_have_no_threshold_are_told():
    assert told(
        evictionSoft={"memory.available": "1Gi"},
        evictionSoftGracePeriod={"memory.available": "1m", "pid.available": "1m"},
        evictionMinimumReclaim={"pid.available": "10", "nodefs.available": "1Gi"},
    ) == ["evictionSoftGracePeriod[pid.available]", "evictionMinimumReclaim[pid.available]"]


def test_fields_that_nobody_reads_are_told_misspelt_ones_too():
    assert told(evictionHrad={"memory.available": "1Gi"}, clusterDomain="cluster.local", port=None) == [
        "evictionHrad", "clusterDomain"
    ]  # fmt: skip
