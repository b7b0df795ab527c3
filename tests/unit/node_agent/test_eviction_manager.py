"""The synchronise step, rule by rule."""

import pytest

from podyard.node_agent.core.eviction.manager import EvictionConfig, EvictionManager
from podyard.node_agent.core.eviction.stats import Observation, PodStats, Summary
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, look, pod, summary, victim

LOW, PLENTY = 50 * MEBIBYTE, 4 * GIBIBYTE


def manager(*, transition_s: float = 300.0, max_pod_grace_s: int = 0, **thresholds: dict[str, str]) -> EvictionManager:
    chosen = thresholds or {"hard": {"memory.available": "100Mi"}}
    return EvictionManager(
        EvictionConfig(
            thresholds=parse_thresholds(enforce_allocatable=(), **chosen),
            transition_s=transition_s,
            max_pod_grace_s=max_pod_grace_s,
        )
    )


def soft(grace: str = "30s", **more: dict[str, str]) -> dict[str, dict[str, str]]:
    return {"hard": {}, "soft": {"memory.available": "100Mi"}, "soft_grace": {"memory.available": grace}, **more}


def test_a_met_hard_threshold_raises_the_condition_and_evicts_one_pod():
    """docs/rules.md, one-pod-a-step."""
    found = manager()
    round_ = look(found, summary(LOW, {"a": 1, "b": 2}), [pod("a"), pod("b")], 0.0)
    assert found.conditions == {"MemoryPressure"}
    assert round_.starved == "memory"
    assert victim(round_) is not None
    assert victim(round_).pod.metadata.name == "b"


def test_exactly_the_threshold_is_enough():
    assert victim(look(manager(), summary(100 * MEBIBYTE), [pod()], 0.0)) is None
    assert victim(look(manager(), summary(100 * MEBIBYTE - 1), [pod()], 0.0)) is not None


def test_the_default_is_100_mebibytes():
    found = EvictionManager(EvictionConfig())
    assert victim(look(found, summary(100 * MEBIBYTE), [pod()], 0.0)) is None
    assert victim(look(found, summary(100 * MEBIBYTE - 1, at=1.0), [pod()], 1.0)) is not None


def test_a_percentage_is_of_the_capacity():
    found = manager(hard={"memory.available": "10%"})
    tenth = int(8 * GIBIBYTE * 0.10000000149011612)
    assert victim(look(found, summary(tenth), [pod()], 0.0)) is None
    assert victim(look(found, summary(tenth - 1, at=1.0), [pod()], 1.0)) is not None


def test_hard_evictions_grant_one_second_whatever_the_pod_asks_for():
    kill = victim(look(manager(), summary(LOW), [pod(grace_s=600)], 0.0))
    assert kill is not None
    assert kill.grace_s == 1


@pytest.mark.parametrize(("own", "granted"), [(600, 60), (10, 10), (None, 60)], ids=["capped", "own", "none"])
def test_soft_evictions_grant_the_smaller_of_both_grace_periods(own: int | None, granted: int):
    found = manager(max_pod_grace_s=60, **soft(grace="10s"))
    look(found, summary(LOW, at=0.0), [pod(grace_s=own)], 0.0)
    kill = victim(look(found, summary(LOW, at=10.0), [pod(grace_s=own)], 10.0))
    assert kill is not None
    assert kill.grace_s == granted


def test_a_soft_threshold_raises_the_condition_at_once_and_evicts_after_its_grace_period():
    found = manager(**soft(grace="30s"))
    assert victim(look(found, summary(LOW, at=0.0), [pod()], 0.0)) is None
    assert found.conditions == {"MemoryPressure"}
    assert victim(look(found, summary(LOW, at=29.9), [pod()], 29.9)) is None
    assert victim(look(found, summary(LOW, at=30.0), [pod()], 30.0)) is not None


def test_relief_resets_the_grace_period():
    found = manager(**soft(grace="30s"))
    look(found, summary(LOW, at=0.0), [pod()], 0.0)
    look(found, summary(PLENTY, at=20.0), [pod()], 20.0)
    look(found, summary(LOW, at=25.0), [pod()], 25.0)
    assert victim(look(found, summary(LOW, at=54.0), [pod()], 54.0)) is None
    assert victim(look(found, summary(LOW, at=55.0), [pod()], 55.0)) is not None


def test_the_condition_stays_for_the_transition_period_after_it_was_last_seen():
    found = manager(transition_s=60.0)
    look(found, summary(LOW, at=0.0), [], 0.0)
    look(found, summary(LOW, at=10.0), [], 10.0)
    look(found, summary(PLENTY, at=20.0), [], 20.0)
    look(found, summary(PLENTY, at=69.9), [], 69.9)
    assert found.conditions == {"MemoryPressure"}
    look(found, summary(PLENTY, at=70.0), [], 70.0)
    assert found.conditions == frozenset()


def test_minimum_reclaim_holds_a_threshold_that_has_acted():
    found = manager(hard={"memory.available": "100Mi"}, min_reclaim={"memory.available": "50Mi"})
    assert victim(look(found, summary(LOW, at=0.0), [pod("a")], 0.0)) is not None
    assert victim(look(found, summary(149 * MEBIBYTE, at=1.0), [pod("b")], 1.0)) is not None
    assert victim(look(found, summary(150 * MEBIBYTE, at=2.0), [pod("c")], 2.0)) is None
    assert victim(look(found, summary(149 * MEBIBYTE, at=3.0), [pod("c")], 3.0)) is None


def test_an_observation_is_acted_on_once():
    found = manager()
    assert victim(look(found, summary(LOW, at=5.0), [pod("a")], 5.0)) is not None
    assert victim(look(found, summary(LOW, at=5.0), [pod("b")], 15.0)) is None
    assert found.thresholds_met, "the threshold is met all the same"
    assert victim(look(found, summary(LOW, at=5.1), [pod("b")], 25.0)) is not None


def test_an_observation_without_a_time_is_always_new():
    found = manager()
    assert victim(look(found, summary(LOW, at=None), [pod("a")], 0.0)) is not None
    assert victim(look(found, summary(LOW, at=None), [pod("b")], 0.0)) is not None


@pytest.mark.parametrize(
    "critical",
    [
        pod("c", priority=2_000_000_000),
        pod("c", annotations={"kubernetes.io/config.source": "file"}),
        pod("c", annotations={"kubernetes.io/config.mirror": "hash"}),
    ],
    ids=["system priority", "static", "mirror"],
)
def test_critical_pods_are_passed_over(critical):
    usage = {"c": GIBIBYTE, "other": 1}
    kill = victim(look(manager(), summary(LOW, usage), [critical, pod("other")], 0.0))
    assert kill is not None
    assert kill.pod.metadata.name == "other"
    assert victim(look(manager(), summary(LOW, usage), [critical], 0.0)) is None


def test_a_pod_from_the_api_is_not_static():
    from_api = pod("a", annotations={"kubernetes.io/config.source": "api"})
    assert victim(look(manager(), summary(LOW), [from_api], 0.0)) is not None


def test_memory_is_served_before_everything_else():
    found = manager(hard={"memory.available": "100Mi", "pid.available": "100", "nodefs.available": "10%"})
    observed = Summary(
        signals={
            "nodefs.available": Observation(available=1, capacity=100),
            "pid.available": Observation(available=1, capacity=1000),
            "memory.available": Observation(available=LOW, capacity=GIBIBYTE),
        },
        pods={"uid-web": PodStats()},
    )
    assert look(found, observed, [pod()], 0.0).starved == "memory"
    assert found.conditions == {"MemoryPressure", "DiskPressure", "PIDPressure"}


def test_a_restart_under_pressure_keeps_the_condition_for_a_transition_period():
    found = manager(transition_s=60.0)
    found.restore(frozenset({"MemoryPressure"}), 100.0)
    look(found, Summary(), [], 110.0)
    assert found.conditions == {"MemoryPressure"}
    look(found, Summary(), [], 160.0)
    assert found.conditions == frozenset()


def test_unknown_signals_are_ignored():
    observed = Summary(signals={"disk.available": Observation(available=0, capacity=1)})
    found = manager()
    assert look(found, observed, [pod()], 0.0).starved == ""


def test_the_message_names_threshold_and_container():
    kill = victim(look(manager(), summary(LOW, {"web": 2 * GIBIBYTE}), [pod(requests={"memory": "1Gi"})], 0.0))
    assert kill is not None
    assert kill.message == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container main was using 2Gi, request is 1Gi, has larger consumption of memory. "
    )
    assert kill.annotations == {
        "offending_containers": "main", "offending_containers_usage": "2Gi", "starved_resource": "memory"
    }  # fmt: skip


def test_the_message_for_a_pod_without_stats_is_short():
    kill = victim(look(manager(), summary(LOW), [pod()], 0.0))
    assert kill is not None
    assert kill.message == "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
    assert kill.annotations == {}


def test_a_pod_level_request_is_named_for_the_whole_pod():
    whole = pod(spec={"resources": {"requests": {"memory": "1Gi"}}})
    kill = victim(look(manager(), summary(LOW, {"web": 2 * GIBIBYTE}), [whole], 0.0))
    assert kill is not None
    assert "Pod web was using 2Gi, request is 1Gi, has larger consumption of memory. " in kill.message
    assert kill.annotations["offending_pod"] == "web"


def test_a_pod_whose_memory_was_not_measured_as_a_whole_is_not_named_as_a_whole():
    whole = pod(spec={"resources": {"requests": {"memory": "1Gi"}}})
    read = Summary(signals=summary(LOW).signals, pods={"uid-web": PodStats()})
    kill = victim(look(manager(), read, [whole], 0.0))
    assert kill is not None
    assert kill.message == "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
    assert "offending_pod" not in kill.annotations
