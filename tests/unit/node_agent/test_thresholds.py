"""The eviction configuration, parsed as the kubelet parses it."""

import pytest

from podyard.node_agent.core.eviction.file_systems import Layout, derived, overridden
from podyard.node_agent.core.eviction.thresholds import Limit, Threshold, ThresholdError, parse_thresholds


def test_left_out_means_the_defaults_and_empty_means_none():
    assert {one.signal for one in parse_thresholds()} == {
        "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
        "allocatableMemory.available",
    }  # fmt: skip
    assert parse_thresholds(hard={}) == ()


def test_allocatable_memory_follows_the_hard_memory_threshold_if_pods_are_enforced():
    followed = parse_thresholds(hard={"memory.available": "1Gi"})
    assert [(one.signal, one.value.quantity) for one in followed] == [
        ("memory.available", "1Gi"), ("allocatableMemory.available", "1Gi")
    ]  # fmt: skip
    assert len(parse_thresholds(hard={"memory.available": "1Gi"}, enforce_allocatable=("none",))) == 1


def test_percentages_are_32_bit_floats():
    (found,) = parse_thresholds(hard={"nodefs.available": "10%"})
    assert found.value == Limit(fraction=0.10000000149011612)
    assert found.value.amount(1000) == 100


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_the_literal_texts_0_and_100_percent_switch_a_threshold_off(text: str):
    assert parse_thresholds(hard={"nodefs.available": text}) == ()


def test_soft_thresholds_take_grace_period_and_minimum_reclaim():
    found = parse_thresholds(
        hard={},
        soft={"memory.available": "1.5Gi"},
        soft_grace={"memory.available": "1m30s"},
        min_reclaim={"memory.available": "10%%"},
    )
    assert found == (
        Threshold(
            signal="memory.available",
            value=Limit(quantity="1536Mi"),
            grace_s=90.0,
            min_reclaim=Limit(fraction=0.10000000149011612),
        ),
    )


@pytest.mark.parametrize(
    ("configuration", "sentence"),
    [
        ({"hard": {"cpu.available": "1"}}, "unsupported eviction signal cpu.available"),
        ({"hard": {"memory.available": "-1Gi"}}, "eviction threshold memory.available must be positive: -1Gi"),
        (
            {"hard": {"memory.available": "101%"}},
            "eviction percentage threshold memory.available must be <= 100%: 101%",
        ),
        ({"hard": {"memory.available": "ten%"}}, 'strconv.ParseFloat: parsing "ten": invalid syntax'),
        ({"hard": {"memory.available": "1e99%"}}, 'strconv.ParseFloat: parsing "1e99": value out of range'),
        ({"hard": {"memory.available": "1e999%"}}, 'strconv.ParseFloat: parsing "1e999": value out of range'),
        (
            {"hard": {"memory.available": "Inf%"}},
            "eviction percentage threshold memory.available must be <= 100%: Inf%",
        ),
        (
            {"soft": {"memory.available": "1Gi"}},
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            {"soft_grace": {"memory.available": "1d"}},
            'time: unknown unit "d" in duration "1d"',
        ),
        (
            {"soft_grace": {"memory.available": "-1m"}},
            "invalid eviction grace period specified: -1m, must be a positive value",
        ),
        (
            {"min_reclaim": {"pid.available": "0.0%"}},
            "eviction percentage minimum reclaim pid.available must be positive: 0.0%",
        ),
    ],
)
def test_faults_are_worded_as_the_reference_words_them(configuration: dict, sentence: str):
    with pytest.raises(ThresholdError) as error:
        parse_thresholds(**configuration)
    (fault,) = error.value.faults
    assert fault.detail == sentence


def test_all_faults_are_told_with_their_fields_in_the_order_in_which_the_reference_looks():
    with pytest.raises(ThresholdError) as error:
        parse_thresholds(
            hard={"memory.available": "0", "cpu.available": "1"},
            soft={"nodefs.available": "10%", "imagefs.available": "200%", "pid.available": "10"},
            soft_grace={"pid.available": "-1s"},
            min_reclaim={"memory.available": "-1"},
        )
    assert [str(fault) for fault in error.value.faults] == [
        "evictionHard[memory.available]: eviction threshold memory.available must be positive: 0",
        "evictionHard[cpu.available]: unsupported eviction signal cpu.available",
        "evictionSoft[imagefs.available]: eviction percentage threshold imagefs.available must be <= 100%: 200%",
        (
            "evictionSoftGracePeriod[pid.available]: "
            "invalid eviction grace period specified: -1s, must be a positive value"
        ),
        "evictionMinimumReclaim[memory.available]: negative eviction minimum reclaim specified for memory.available",
        (
            "evictionSoft[nodefs.available]: "
            "grace period must be specified for the soft eviction threshold nodefs.available"
        ),
    ]


@pytest.mark.parametrize("text", ["inf%", "1e30%"])
def test_a_minimum_reclaim_beyond_all_numbers_holds_nothing(text: str):
    """The reference's processors make the smallest number of it."""
    (found,) = parse_thresholds(hard={"nodefs.available": "10%"}, min_reclaim={"nodefs.available": text})
    assert found.met(99, 1000)
    assert not found.met(99, 1000, with_reclaim=True)


def test_a_threshold_that_is_no_number_is_never_met():
    (found,) = parse_thresholds(hard={"nodefs.available": "nan%"})
    assert not found.met(0, 1000)


def shown(thresholds: tuple[Threshold, ...]) -> list[tuple[str, str, float]]:
    return [(one.signal, one.value.quantity, one.grace_s) for one in thresholds]


@pytest.mark.parametrize(
    ("layout", "copied"), [(Layout.SINGLE, "1Gi"), (Layout.SPLIT, "1Gi"), (Layout.DEDICATED, "2Gi")]
)
def test_thresholds_of_containerfs_follow_the_file_system_that_it_is_on(layout: Layout, copied: str):
    parsed = parse_thresholds(hard={"nodefs.available": "1Gi", "imagefs.available": "2Gi"})
    assert shown(derived(parsed, layout)) == [*shown(parsed), ("containerfs.available", copied, 0.0)]
    assert overridden(parsed, layout) == parsed


def test_a_threshold_of_containerfs_is_overridden_in_its_place_or_disappears():
    given = parse_thresholds(
        hard={"containerfs.available": "5Gi", "containerfs.inodesFree": "10", "nodefs.available": "1Gi"},
        min_reclaim={"containerfs.available": "1Gi"},
    )
    expected = [("containerfs.available", "1Gi", 0.0), ("nodefs.available", "1Gi", 0.0)]
    assert shown(overridden(given, Layout.SINGLE)) == expected
    assert overridden(given, Layout.SINGLE)[0].min_reclaim is None
    assert shown(derived(given, Layout.SINGLE)) == expected


def test_of_two_hard_thresholds_of_containerfs_the_last_is_overridden():
    """A soft one without delay is hard."""
    given = parse_thresholds(
        hard={"containerfs.available": "5Gi", "nodefs.available": "1Gi"},
        soft={"containerfs.available": "6Gi"},
        soft_grace={"containerfs.available": "0s"},
    )
    assert shown(derived(given, Layout.SINGLE)) == [
        ("containerfs.available", "5Gi", 0.0), ("nodefs.available", "1Gi", 0.0), ("containerfs.available", "1Gi", 0.0)
    ]  # fmt: skip
