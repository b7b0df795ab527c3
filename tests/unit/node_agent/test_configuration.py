"""The fields of a KubeletConfiguration, as the kubelet reads them."""

from typing import Any

import pytest

from podyard.node_agent.core.eviction import configuration
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.thresholds import DEFAULT_HARD, ThresholdError


def read(**fields: Any) -> KubeletConfiguration:
    return configuration.read({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **fields})


def told(**fields: Any) -> list[str]:
    return [str(fault) for fault in configuration.faults(read(**fields))]


@pytest.mark.parametrize("absent", [{}, {"evictionHard": None}], ids=["left out", "null"])
def test_an_absent_map_means_the_defaults_and_an_empty_one_nothing(absent: dict[str, Any]):
    assert read(**absent).eviction_hard == DEFAULT_HARD
    assert read(evictionHard={}).eviction_hard == {}


def test_defaults_are_merged_only_if_asked_and_only_where_a_signal_is_not_named():
    given = {"memory.available": "1Gi", "pid.available": "10"}
    assert read(evictionHard=given).eviction_hard == given
    assert read(evictionHard=given, mergeDefaultEvictionSettings=True).eviction_hard == DEFAULT_HARD | given


def test_what_is_left_out_or_zero_is_defaulted_as_the_kubelet_does():
    found = read(evictionPressureTransitionPeriod="0s", imageMinimumGCAge="0s", maxPods=0)
    assert found == KubeletConfiguration() == read()
    assert (found.eviction_pressure_transition_period, found.image_minimum_gc_age, found.max_pods) == (300, 120, 110)
    assert (found.image_gc_high_threshold_percent, found.image_gc_low_threshold_percent) == (85, 80)
    assert read(imageGCLowThresholdPercent=0).image_gc_low_threshold_percent == 0
    assert read(enforceNodeAllocatable=[]).enforce_node_allocatable == ()


def test_other_fields_do_not_change_it():
    assert read(clusterDNS=["10.0.0.10"], nonsense=1) == read()


def test_all_fields_of_another_type_are_told_together():
    with pytest.raises(ThresholdError) as error:
        read(
            evictionHard={"memory.available": 5},
            maxPods="many",
            evictionPressureTransitionPeriod="5",
            imageGCHighThresholdPercent=2**31,
        )
    assert [fault.field for fault in error.value.faults] == [
        "evictionHard[memory.available]", "evictionPressureTransitionPeriod", "maxPods", "imageGCHighThresholdPercent"
    ]  # fmt: skip
    assert error.value.faults[0].detail == 'must be text, as in "10%" or "1Gi", is 5'
    assert 'time: missing unit in duration "5"' in str(error.value)


def test_another_kind_is_refused():
    with pytest.raises(ThresholdError) as error:
        configuration.read({"kind": "KubeSchedulerConfiguration"})
    assert [str(fault) for fault in error.value.faults] == [
        "apiVersion: must be kubelet.config.k8s.io/v1beta1, is missing",
        "kind: must be KubeletConfiguration, is KubeSchedulerConfiguration",
    ]


def test_a_configuration_without_faults_has_none():
    assert told() == []
    assert told(kubeReserved={"cpu": "100m", "memory": "1Gi", "pid": "100"}, enforceNodeAllocatable=["none"]) == []


def test_all_faults_are_told_in_the_kubelets_words():
    assert told(
        imageGCHighThresholdPercent=101,
        imageGCLowThresholdPercent=-1,
        imageMinimumGCAge="-1s",
        imageMaximumGCAge="-1m",
        maxPods=-1,
        kubeReserved={"gpu": "1", "memory": "lots"},
        systemReserved={"cpu": "-1"},
        evictionHard={"memory.free": "1"},
        evictionSoft={"memory.available": "1Gi"},
    ) == [
        (
            "imageGCHighThresholdPercent: invalid configuration: imageGCHighThresholdPercent (--image-gc-high-threshold) "
            "101 must be between 0 and 100, inclusive"
        ),
        (
            "imageGCLowThresholdPercent: invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) "
            "-1 must be between 0 and 100, inclusive"
        ),
        "imageMinimumGCAge: invalid configuration: imageMinimumGCAge -1s must not be negative",
        "imageMaximumGCAge: invalid configuration: imageMaximumGCAge -1m0s must not be negative",
        "maxPods: invalid configuration: maxPods (--max-pods) -1 must not be a negative number",
        'kubeReserved[gpu]: --kube-reserved value failed to parse: cannot reserve "gpu" resource',
        (
            'kubeReserved[memory]: --kube-reserved value failed to parse: failed to parse quantity "lots" for "memory" '
            "resource: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ),
        (
            'systemReserved[cpu]: --system-reserved value failed to parse: resource quantity for "cpu" cannot be '
            "negative: -1"
        ),
        "evictionHard[memory.free]: unsupported eviction signal memory.free",
        (
            "evictionSoft[memory.available]: grace period must be specified for the soft eviction threshold "
            "memory.available"
        ),
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 70},
            (
                "imageGCLowThresholdPercent (--image-gc-low-threshold) 70 must be less than imageGCHighThresholdPercent "
                "(--image-gc-high-threshold) 70"
            ),
        ),
        (
            {"imageMaximumGCAge": "2m"},
            "imageMaximumGCAge 2m0s must be greater than imageMinimumGCAge 2m0s",
        ),
        (
            {"enforceNodeAllocatable": ["pods", "pods"]},
            'duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)',
        ),
        (
            {"enforceNodeAllocatable": ["pods", "none"]},
            (
                "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "
                '"none" is specified'
            ),
        ),
        (
            {"enforceNodeAllocatable": ["all"]},
            (
                'option "all" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are '
                '"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", '
                '"kube-reserved-compressible" or "none"'
            ),
        ),
        (
            {"enforceNodeAllocatable": ["kube-reserved"]},
            (
                'kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or '
                '"kube-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)'
            ),
        ),
        (
            {
                "enforceNodeAllocatable": ["system-reserved", "system-reserved-compressible"],
                "systemReservedCgroup": "/system",
            },
            (
                'both "system-reserved-compressible" and "system-reserved" cannot be specified together in '
                "enforceNodeAllocatable (--enforce-node-allocatable)"
            ),
        ),
        (
            {"cgroupsPerQOS": False},
            (
                'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in enforceNodeAllocatable '
                "(--enforce-node-allocatable)"
            ),
        ),
    ],
)
def test_a_fault_is_worded_as_the_kubelet_words_it(fields: dict[str, Any], sentence: str):
    (fault,) = configuration.faults(read(**fields))
    assert fault.detail == f"invalid configuration: {sentence}"


def test_hard_thresholds_reserve_memory_and_ephemeral_storage_whatever_else_is_wrong():
    found = read(evictionHard={"memory.available": "1Gi", "nodefs.available": "10%"}, evictionSoft={"nonsense": "1"})
    assert found.hard_eviction_reservation({"ephemeral-storage": "1000"}) == {
        "memory": "1Gi", "ephemeral-storage": "100"
    }  # fmt: skip
    assert found.hard_eviction_reservation({}) == {"memory": "1Gi", "ephemeral-storage": "0"}
    assert read(evictionHard={}).hard_eviction_reservation({"memory": "1Gi"}) == {}
