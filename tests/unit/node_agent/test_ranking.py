"""Who goes first (docs/rules.md, rank-by-overrun-then-priority)."""

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.ranking import rank
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, PodStats, VolumeStats
from podyard.objects.pod import Pod
from tests.unit.node_agent.make import pod

MEMORY = "memory.available"


def names(pods: list[Pod]) -> list[str]:
    return [one.metadata.name for one in pods]


def ranked(signal: str, pods: dict[str, tuple[Pod, PodStats | None]], layout: Layout = Layout.SINGLE) -> list[str]:
    stats = {one.metadata.uid: used for one, used in pods.values() if used is not None}
    return names(rank(signal, [one for one, _ in pods.values()], stats, layout))


def uses(memory: int) -> PodStats:
    return PodStats(memory_bytes=memory)


def test_over_the_request_comes_before_priority():
    assert ranked(MEMORY, {
        "within": (pod("within", requests={"memory": "10"}, priority=-5), uses(10)),
        "over": (pod("over", requests={"memory": "10"}, priority=5), uses(11)),
    }) == ["over", "within"]  # fmt: skip


def test_priority_comes_before_the_size_of_the_overrun():
    assert ranked(MEMORY, {
        "high": (pod("high", priority=1), uses(1000)),
        "low": (pod("low", priority=0), uses(1)),
    }) == ["low", "high"]  # fmt: skip


def test_the_larger_overrun_goes_first_also_below_the_request():
    assert ranked(MEMORY, {
        "small": (pod("small", requests={"memory": "100"}), uses(50)),
        "large": (pod("large", requests={"memory": "100"}), uses(90)),
    }) == ["large", "small"]  # fmt: skip


def test_a_pod_without_stats_goes_first():
    assert ranked(MEMORY, {
        "over": (pod("over", priority=-10), uses(1000)),
        "unknown": (pod("unknown", priority=10), None),
    }) == ["unknown", "over"]  # fmt: skip


def test_quality_of_service_plays_no_part():
    guaranteed = pod("guaranteed", requests={"cpu": "1", "memory": "10"}, limits={"cpu": "1", "memory": "10"})
    assert ranked(MEMORY, {"a": (pod("a"), uses(1)), "guaranteed": (guaranteed, uses(12))}) == ["guaranteed", "a"]


def test_of_processes_priority_comes_first_then_the_count():
    assert ranked("pid.available", {
        "many": (pod("many", priority=1), PodStats(processes=900)),
        "few": (pod("few", priority=1), PodStats(processes=3)),
        "low": (pod("low", priority=0), PodStats(processes=1)),
        "unknown": (pod("unknown", priority=1), None),
    }) == ["low", "unknown", "many", "few"]  # fmt: skip


def test_pod_level_requests_replace_those_of_containers():
    whole = pod("whole", requests={"memory": "1000"}, spec={"resources": {"requests": {"memory": "5"}}})
    assert ranked(MEMORY, {"whole": (whole, uses(6)), "plain": (pod("plain", requests={"memory": "7"}), uses(7))}) == [
        "whole", "plain"
    ]  # fmt: skip


def test_init_containers_count_by_their_peak_and_sidecars_always():
    init = [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"memory": "10"}}},
        {"name": "setup", "resources": {"requests": {"memory": "100"}}},
    ]
    one = pod("one", requests={"memory": "20"}, spec={"initContainers": init})
    # 110 at the peak, 30 while running: 105 does not exceed it
    assert ranked(MEMORY, {"one": (one, uses(105)), "other": (pod("other", requests={"memory": "1"}), uses(2))}) == [
        "other", "one"
    ]  # fmt: skip


def test_where_writable_layers_live_decides_what_counts():
    layered = PodStats(containers=(ContainerStats(name="main", rootfs=FsUsage(used_bytes=900)),))
    logging = PodStats(containers=(ContainerStats(name="main", logs=FsUsage(used_bytes=100)),))
    pods = {"layered": (pod("layered"), layered), "logging": (pod("logging"), logging)}
    assert ranked("nodefs.available", pods, Layout.SINGLE) == ["layered", "logging"]
    assert ranked("nodefs.available", pods, Layout.DEDICATED) == ["logging", "layered"]
    assert ranked("imagefs.available", pods, Layout.DEDICATED) == ["layered", "logging"]


def test_only_local_volumes_take_the_nodes_disk():
    def one(name: str, source: dict) -> tuple[Pod, PodStats]:
        stats = PodStats(volumes=(VolumeStats(name="v", usage=FsUsage(used_bytes=100)),))
        return pod(name, spec={"volumes": [{"name": "v", **source}]}), stats

    assert ranked("nodefs.available", {
        "memory": one("memory", {"emptyDir": {"medium": "Memory"}}),
        "secret": one("secret", {"secret": {"secretName": "s"}}),
        "scratch": one("scratch", {"emptyDir": {}}),
    })[0] == "scratch"  # fmt: skip


def test_inodes_exceed_a_request_of_none_and_are_measured_against_ephemeral_storage():
    """An oddity of the reference."""
    used = PodStats(containers=(ContainerStats(name="main", rootfs=FsUsage(inodes=10)),))
    assert ranked("nodefs.inodesFree", {
        "asks": (pod("asks", requests={"ephemeral-storage": "5"}), used),
        "plain": (pod("plain"), used),
        "unused": (pod("unused"), PodStats()),
    }) == ["plain", "asks", "unused"]  # fmt: skip


usage = st.tuples(st.integers(-2, 2), st.integers(0, 3), st.none() | st.integers(0, 3))


@given(st.lists(usage, max_size=6))
def test_eviction_order_is_total_and_does_not_depend_on_the_order_of_pods(drawn):
    pods = {
        f"p{index}": (pod(f"p{index}", priority=priority, requests={"memory": str(request)}), used)
        for index, (priority, request, used) in enumerate(drawn)
    }
    stats = {one.metadata.uid: uses(used) for one, used in pods.values() if used is not None}
    listed = [one for one, _ in pods.values()]
    orders = {
        tuple(names(rank(MEMORY, order, stats))) for order in itertools.islice(itertools.permutations(listed), 24)
    }
    assert len(orders) == 1


def test_a_pod_keeps_its_rank_when_its_status_changes():
    one = pod("one")
    failed = msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, phase="Running"))
    assert names(rank(MEMORY, [failed, pod("two")], {})) == ["one", "two"]
