"""What a kubelet leaves of a node's capacity to pods."""

from typing import Any

import pytest

from podyard.node_agent.core.eviction import allocatable, configuration
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.thresholds import ThresholdError

CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def read(**fields: Any) -> KubeletConfiguration:
    return configuration.read({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **fields})


def left(capacity: dict[str, str] = CAPACITY, **fields: Any) -> dict[str, str]:
    return read(**fields).allocatable(capacity)


def test_nothing_is_taken_off_where_nothing_is_reserved():
    assert left(evictionHard={}) == CAPACITY


def test_both_reservations_and_hard_thresholds_are_taken_off():
    """The example of "Reserve Compute Resources for System Daemons" in Kubernetes' documentation; its 88Gi
    are 160 bytes less, since 10 % are a float of 32 bits."""
    found = left(
        {"cpu": "16", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
        kubeReserved={"cpu": "1", "memory": "2Gi", "ephemeral-storage": "1Gi"},
        systemReserved={"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
        evictionHard={"memory.available": "500Mi", "nodefs.available": "10%"},
    )
    assert found == {"cpu": "14500m", "memory": "29196Mi", "ephemeral-storage": "94489280352", "pods": "110"}


def test_a_percentage_is_that_of_the_capacity_cut_to_whole_bytes():
    """What a node of a managed service says: 83873772Ki, of which 1Gi and 10 % are reserved."""
    hard = {"memory.available": "5%", "nodefs.available": "10%"}
    found = left(
        {"memory": "1001", "ephemeral-storage": "83873772Ki"},
        evictionHard=hard,
        kubeReserved={"ephemeral-storage": "1Gi"},
    )
    assert found == {"memory": "951", "ephemeral-storage": "76224326324"}


def test_the_default_thresholds_count_as_if_they_were_written():
    assert left({"memory": "1Gi", "ephemeral-storage": "100Mi"}) == {"memory": "924Mi", "ephemeral-storage": "90Mi"}


def test_soft_thresholds_and_those_of_other_signals_take_nothing_off():
    found = left(
        evictionHard={"imagefs.available": "15%", "nodefs.inodesFree": "5%", "pid.available": "10%"},
        evictionSoft={"memory.available": "1Gi"},
        evictionSoftGracePeriod={"memory.available": "1m"},
    )
    assert found == CAPACITY


def test_a_threshold_that_is_switched_off_takes_nothing_off():
    assert left(evictionHard={"memory.available": "0%", "nodefs.available": "100%"}) == CAPACITY


def test_less_than_nothing_is_nothing():
    assert allocatable.left({"cpu": "1", "memory": "1Gi"}, ({"cpu": "2"}, {"memory": "2Gi"})) == {
        "cpu": "0", "memory": "0"
    }  # fmt: skip


def test_what_the_node_does_not_have_is_not_there_whatever_is_reserved_of_it():
    assert left({"cpu": "4"}, systemReserved={"cpu": "1", "pid": "1000", "ephemeral-storage": "1Gi"}) == {"cpu": "3"}


def test_huge_pages_are_taken_off_the_memory_as_well():
    found = left({"memory": "32Gi", "hugepages-1Gi": "4Gi", "hugepages-2Mi": "0"}, evictionHard={})
    assert found == {"memory": "28Gi", "hugepages-1Gi": "4Gi", "hugepages-2Mi": "0"}
    assert left({"memory": "1Gi", "hugepages-1Gi": "4Gi"}, evictionHard={})["memory"] == "0"


def test_a_node_has_room_for_as_many_pods_as_are_configured():
    assert read(maxPods=30).capacity({"cpu": "4"}) == {"cpu": "4", "pods": "30"}
    assert read().capacity({"cpu": "4"})["pods"] == "110"


def test_all_that_is_reserved_beyond_the_capacity_is_told_in_the_kubelets_words():
    found = read(kubeReserved={"cpu": "2"}, systemReserved={"memory": "1Gi"}, evictionHard={"memory.available": "1Mi"})
    assert found.allocatable({"cpu": "2", "memory": "1025Mi"}) == {"cpu": "0", "memory": "0"}
    with pytest.raises(ThresholdError) as error:
        found.allocatable({"cpu": "1", "memory": "1Gi", "pods": "110"})
    told = 'invalid Node Allocatable configuration. Resource "{}" has a reservation of {} but capacity of {}. Expected '
    assert [(one.field, one.detail.removesuffix("capacity >= reservation.")) for one in error.value.faults] == [
        ("capacity[cpu]", told.format("cpu", "2", "1")),
        ("capacity[memory]", told.format("memory", "1025Mi", "1Gi")),
    ]
