"""A round of the eviction manager as a dialogue: what it asks, in which order, what answers make of it."""

from collections.abc import Sequence

import pytest

from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Ask, Failed, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.manager import EvictionConfig, EvictionManager
from podyard.node_agent.core.eviction.stats import FsUsage, Observation, PodStats, Summary, VolumeStats
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.objects.pod import Pod
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, pod

CONTAINERS, IMAGES = Collector.CONTAINERS, Collector.IMAGES
LAYOUT, READING = Question.LAYOUT, Question.READING


def manager(*, isolation: bool = True, max_pod_grace_s: int = 600, **thresholds: dict[str, str]) -> EvictionManager:
    return EvictionManager(
        EvictionConfig(
            thresholds=parse_thresholds(enforce_allocatable=(), **thresholds),
            max_pod_grace_s=max_pod_grace_s,
            local_storage_isolation=isolation,
        )
    )


def reading(
    at: float, *pods: Pod, stats: dict[str, PodStats] | None = None, measured: float | None = None, **available: int
) -> Reading:
    """What is left of 1,000 of each signal, named with `_` for `.`; measured `at` unless told."""
    measured_at = at if measured is None else measured
    signals = {
        name.replace("_", "."): Observation(available=left, capacity=1000, observed_at=measured_at)
        for name, left in available.items()
    }
    found = {f"uid-{name}": one for name, one in (stats or {}).items()}
    return Reading(Summary(signals=signals, pods=found), pods or (pod(),), at)


def play(playing: EvictionManager, *answers: Answer) -> tuple[list[Ask], Round]:
    """All that was asked, and what came of it. The answers must be as many as the questions."""
    left, asked = list(answers), list[Ask]()
    dialogue = playing.round()
    try:
        asked.append(next(dialogue))
        while True:
            asked.append(dialogue.send(left.pop(0)))
    except StopIteration as done:
        assert left == []
        return asked, done.value


def names(kills: Sequence[Kill]) -> list[tuple[str, int]]:
    return [(kill.pod.metadata.name, kill.grace_s) for kill in kills]


def test_the_layout_is_asked_until_it_is_known():
    found = manager(hard={"memory.available": "10"})
    asked, round_ = play(found, Failed("no device"))
    assert asked == [LAYOUT]
    assert round_.error == "eviction manager: failed to get HasDedicatedImageFs: no device"
    assert play(found, Layout.SINGLE, reading(0.0, memory_available=50))[0] == [LAYOUT, READING]
    assert play(found, reading(1.0, memory_available=50))[0] == [READING]


def test_without_thresholds_and_limits_nothing_is_asked():
    assert play(manager(hard={}, isolation=False)) == ([], Round())
    assert play(manager(hard={}), Layout.SINGLE, reading(0.0))[0] == [LAYOUT, READING]


def test_without_thresholds_a_condition_of_before_passes_all_the_same():
    found = manager(hard={}, isolation=False)
    found.restore(frozenset({"DiskPressure"}), 0.0)
    play(found, Layout.SINGLE, reading(300.0))
    assert found.conditions == frozenset()
    assert play(found) == ([], Round())


def test_a_failed_reading_changes_nothing_not_even_the_transition_period():
    """docs/rules.md, a-failed-reading-changes-nothing."""
    found = manager(soft={"memory.available": "10"}, hard={}, soft_grace={"memory.available": "30s"})
    play(found, Layout.SINGLE, reading(0.0, memory_available=5))
    before = (found.conditions, found.thresholds_met, found.first_observed)
    told = "eviction manager: failed to get summary stats: time-out"
    assert play(found, Failed("time-out")) == ([READING], Round(unread=told))
    assert (found.conditions, found.thresholds_met, found.first_observed) == before
    play(found, reading(300.0, memory_available=50))
    assert found.conditions == frozenset()


@pytest.mark.parametrize(
    ("layout", "signal", "collectors"),
    [
        (Layout.SINGLE, "nodefs.available", [CONTAINERS, IMAGES]),
        (Layout.SINGLE, "imagefs.inodesFree", [CONTAINERS, IMAGES]),
        (Layout.DEDICATED, "nodefs.available", []),
        (Layout.DEDICATED, "imagefs.available", [CONTAINERS, IMAGES]),
        (Layout.SPLIT, "nodefs.inodesFree", [CONTAINERS]),
        (Layout.SPLIT, "imagefs.available", [IMAGES]),
        (Layout.SINGLE, "memory.available", []),
        (Layout.SINGLE, "pid.available", []),
    ],
)
def test_what_is_collected_before_a_pod_goes(layout: Layout, signal: str, collectors: list[Collector]):
    low = reading(0.0, **{signal.replace(".", "_"): 5})
    answers: list[Answer] = [layout, low, *([DONE] * len(collectors)), *([low] if collectors else []), DONE]
    asked, round_ = play(manager(hard={signal: "10"}), *answers)
    assert asked[2 : 2 + len(collectors)] == collectors
    assert names(round_.kills) == [("web", 1)]
    assert round_.starved


def test_no_pod_goes_if_a_collection_leaves_no_threshold():
    """docs/rules.md, collection-spares-if-nothing-is-left."""
    found = manager(hard={"nodefs.available": "10"}, min_reclaim={"nodefs.available": "20"})
    low, enough = reading(0.0, nodefs_available=5), reading(1.0, nodefs_available=30)
    asked, round_ = play(found, Layout.SINGLE, low, DONE, DONE, enough)
    assert asked == [LAYOUT, READING, CONTAINERS, IMAGES, READING]
    assert round_ == Round(starved="ephemeral-storage", collected=(CONTAINERS, IMAGES))


@pytest.mark.parametrize(
    "left",
    [
        pytest.param({"nodefs_available": 29}, id="less than the minimum reclaim was won"),
        pytest.param({"nodefs_available": 900, "pid_available": 5}, id="a soft threshold of another signal waits"),
    ],
)
def test_a_pod_goes_if_a_collection_leaves_any_threshold(left: dict[str, int]):
    """docs/rules.md, collection-spares-if-nothing-is-left."""
    found = manager(
        hard={"nodefs.available": "10"},
        soft={"pid.available": "10"},
        soft_grace={"pid.available": "1h"},
        min_reclaim={"nodefs.available": "20"},
    )
    low = reading(0.0, nodefs_available=5)
    assert names(play(found, Layout.SINGLE, low, DONE, DONE, reading(1.0, **left), DONE)[1].kills) == [("web", 1)]


def test_failures_of_collections_and_of_the_second_reading_are_told_and_a_pod_goes():
    found = manager(hard={"nodefs.available": "10"})
    low = reading(0.0, nodefs_available=5)
    round_ = play(found, Layout.SINGLE, low, Failed("busy"), Failed("locked"), Failed("time-out"), DONE)[1]
    assert round_.failures == ("containers could not be collected: busy", "images could not be collected: locked")
    assert names(round_.kills) == [("web", 1)]


def test_the_pod_is_chosen_by_the_first_reading():
    found = manager(hard={"nodefs.available": "10"})
    used = {name: PodStats(volumes=()) for name in ("a", "b")}
    before = reading(0.0, pod("a"), pod("b", priority=-1), stats=used, nodefs_available=5)
    after = reading(1.0, pod("c"), nodefs_available=6)
    (kill,) = play(found, Layout.SINGLE, before, DONE, DONE, after, DONE)[1].kills
    assert kill.pod.metadata.name == "b"
    assert "available: 5. " in kill.message


def test_a_choice_goes_by_every_threshold_that_acts_as_it_was_measured():
    """Source: pkg/kubelet/eviction/eviction_manager.go, synchronize: EvictionStatsAge."""
    thresholds = {"memory.available": "10", "pid.available": "10", "nodefs.available": "10"}
    found = manager(hard=thresholds)
    low = reading(5.0, measured=3.0, memory_available=5, pid_available=5, nodefs_available=50)
    round_ = play(found, Layout.SINGLE, low, DONE)[1]
    assert sorted(round_.goes_by) == [("memory.available", 3.0), ("pid.available", 3.0)]
    again = low._replace(summary=Summary(signals={"memory.available": Observation(available=5, capacity=1000)}))
    assert play(manager(hard=thresholds), Layout.SINGLE, again, DONE)[1].goes_by == (), "nobody knows how old it is"


def test_without_pods_there_is_no_choice_that_goes_by_anything():
    low = reading(5.0, memory_available=5)._replace(pods=())
    assert play(manager(hard={"memory.available": "10"}), Layout.SINGLE, low)[1] == Round(starved="memory")


def test_a_failed_kill_is_told_and_the_pod_may_be_chosen_again():
    found = manager(hard={"memory.available": "10"})
    round_ = play(found, Layout.SINGLE, reading(0.0, memory_available=5), Failed("no runtime"))[1]
    assert round_.failures == ("default/web could not be killed: no runtime",)
    assert names(round_.kills) == [("web", 1)]
    assert names(play(found, reading(1.0, memory_available=5), DONE)[1].kills) == [("web", 1)]
    assert names(play(found, reading(2.0, memory_available=5))[1].kills) == []


def test_containerfs_follows_from_the_second_round_on():
    """docs/rules.md, containerfs-follows-from-the-second-round."""
    found = manager(hard={"nodefs.available": "10"})
    play(found, Layout.SINGLE, reading(0.0, nodefs_available=50, containerfs_available=5))
    assert found.conditions == frozenset()
    low = reading(1.0, nodefs_available=50, containerfs_available=5)
    assert names(play(found, low, DONE, DONE, low, DONE)[1].kills) == [("web", 1)]


def test_what_a_user_gave_for_containerfs_is_overridden_at_once():
    """docs/rules.md, containerfs-follows-from-the-second-round."""
    found = manager(hard={"nodefs.available": "10", "containerfs.available": "100"})
    play(found, Layout.SINGLE, reading(0.0, nodefs_available=50, containerfs_available=50))
    assert found.conditions == frozenset()


def test_the_second_reading_of_the_first_round_knows_what_follows_from_the_layout():
    found = manager(hard={"nodefs.available": "10"})
    low = reading(0.0, nodefs_available=5)
    after = reading(1.0, nodefs_available=50, containerfs_available=5)
    assert names(play(found, Layout.SINGLE, low, DONE, DONE, after, DONE)[1].kills) == [("web", 1)]


def limited(name: str, **more: int) -> Pod:
    return pod(name, limits={"ephemeral-storage": "10"}, **more)


OVER, WITHIN = PodStats(ephemeral_bytes=11), PodStats(ephemeral_bytes=10)


def test_all_pods_over_a_limit_of_local_storage_go_in_one_round_before_any_threshold():
    """docs/rules.md, local-storage-limits-come-first."""
    found = manager(hard={"memory.available": "10"})
    pods = [limited("a"), limited("b"), limited("c"), limited("d", priority=2_000_000_000), limited("e")]
    used = {"a": OVER, "b": WITHIN, "c": OVER, "d": OVER}
    asked, round_ = play(found, Layout.SINGLE, reading(0.0, *pods, stats=used, memory_available=5), DONE, DONE)
    assert names(round_.kills) == [("a", 1), ("c", 1)]
    assert round_.starved == ""
    assert all(kill.annotations is None and not kill.disruption for kill in round_.kills)
    assert found.conditions == {"MemoryPressure"}
    assert asked[2:] == list(round_.kills)


def test_a_pod_over_its_limit_that_ends_already_holds_up_no_threshold():
    found = manager(hard={"memory.available": "10"})
    pods, used = [limited("a"), pod("b")], {"a": OVER, "b": WITHIN}
    play(found, Layout.SINGLE, reading(0.0, *pods, stats=used, memory_available=50), DONE)
    assert names(play(found, reading(1.0, *pods, stats=used, memory_available=5), DONE)[1].kills) == [("b", 1)]


def test_limits_are_not_looked_at_if_isolation_is_off():
    found = manager(hard={"memory.available": "10"}, isolation=False)
    assert play(found, Layout.SINGLE, reading(0.0, limited("a"), stats={"a": OVER}))[1] == Round()


def softly(**hard: str) -> EvictionManager:
    """It has chosen `slow`, of the lowest priority, for memory at 0 s; it may take 600 s to end."""
    found = manager(
        hard={name.replace("_", "."): text for name, text in hard.items()},
        soft={"memory.available": "100"},
        soft_grace={"memory.available": "1ms"},
    )
    play(found, Layout.SINGLE, reading(-1.0, *THREE, memory_available=50))
    kills = play(found, reading(0.0, *THREE, memory_available=50), DONE)[1].kills
    assert names(kills) == [("slow", 600)]
    return found


THREE = (pod("next"), pod("slow", priority=-1), pod("last", priority=1))


def test_a_hard_threshold_hurries_the_pod_that_was_chosen_for_the_same_resource():
    """docs/rules.md, hard-hurries-soft."""
    found = softly(memory_available="10")
    round_ = play(found, reading(1.0, *THREE, memory_available=5), DONE)[1]
    assert names(round_.kills) == [("slow", 1)]
    assert round_.kills[0].sooner
    assert names(play(found, reading(2.0, *THREE, memory_available=5), DONE)[1].kills) == [("next", 1)]
    assert names(play(found, reading(3.0, *THREE, memory_available=5), DONE)[1].kills) == [("last", 1)]
    assert names(play(found, reading(4.0, *THREE, memory_available=5))[1].kills) == []


def test_a_hard_threshold_of_another_resource_takes_the_next_in_rank():
    """docs/rules.md, hard-hurries-soft."""
    found = softly(pid_available="10")
    round_ = play(found, reading(1.0, *THREE, memory_available=50, pid_available=5), DONE)[1]
    assert names(round_.kills) == [("next", 1)]
    assert not round_.kills[0].sooner


def test_soft_thresholds_wait_for_the_pod_that_ends_for_one_and_a_half_times_its_grace_period():
    """docs/rules.md, hard-hurries-soft."""
    found = softly()
    assert play(found, reading(899.0, *THREE, memory_available=50)) == ([READING], Round())
    assert names(play(found, reading(900.0, *THREE, memory_available=50), DONE)[1].kills) == [("next", 600)]


def test_soft_thresholds_go_on_when_the_pod_is_gone():
    found = softly()
    left = (THREE[0], THREE[2])
    assert names(play(found, reading(1.0, *left, memory_available=50), DONE)[1].kills) == [("next", 600)]


def test_an_empty_dir_over_its_limit_names_the_volume():
    over = pod(spec={"volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}}]})
    used = PodStats(volumes=(VolumeStats(name="scratch", usage=FsUsage(used_bytes=GIBIBYTE + MEBIBYTE)),))
    (kill,) = play(manager(hard={}), Layout.SINGLE, reading(0.0, over, stats={"web": used}), DONE)[1].kills
    assert kill.message == 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '
    assert kill.signal == "emptydirfs.limit"
