"""The eviction configuration, parsed as the kubelet parses it."""

import pytest

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
    assert str(error.value) == sentence
