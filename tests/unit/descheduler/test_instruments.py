"""What the descheduler counts, under its own names and those of the reference."""

import platform

import prometheus_client
import pytest

from podyard.descheduler import reference_metrics
from podyard.descheduler.core.cycle import Attempt, CycleRecord, Step
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.instruments import Instruments
from tests.unit.descheduler.make import pod

LABELS = {"strategy": "Sweep", "profile": "p", "namespace": "default", "node": "n1"}
NAMES = ("descheduler_pods_evicted_total", "descheduler_pods_evicted")


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry(auto_describe=True)


def wanted(node: str = "n1") -> Eviction:
    return Eviction(pod(node=node), "p", "Sweep", "it should not be here", None)


def step(*answers: Answer, took_s: float = 0.0) -> Step:
    attempts = [Attempt(namespace="default", name="web", uid="u", node="n1", answer=answer) for answer in answers]
    return Step(profile="p", extension_point="Deschedule", plugin="Sweep", attempts=tuple(attempts), took_s=took_s)


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_counted_as_the_reference_counts_them(
    registry: prometheus_client.CollectorRegistry, name: str
) -> None:
    told = Instruments(registry)
    told.answered(wanted(), EvictionDone())
    told.answered(wanted(), EvictionDone(gone=True))
    told.answered(wanted(), EvictionFailed("its budget"))
    answers = (Answer.EVICTED, Answer.EVICTED, Answer.FAILED, Answer.NODE_LIMIT, Answer.STAYS)
    told.ended(CycleRecord(nodes=2, steps=(step(*answers),)), 1.0)
    (family,) = [one for one in registry.collect() if name in {sample.name for sample in one.samples}]
    assert {one.labels["result"]: one.value for one in family.samples} == {
        "success": 2,
        "error": 1,
        "maximum number of evicted pods per node reached": 1,
    }
    assert [{**one.labels, "result": ""} for one in family.samples] == [{**LABELS, "result": ""}] * 3
    ours = {"profile": "p", "strategy": "Sweep", "result": "stays"}
    assert registry.get_sample_value("podyard_descheduler_evictions_total", ours) == 1


def test_namespaces_and_nodes_are_counted_one_by_one_as_long_as_they_are_few(
    registry: prometheus_client.CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_metrics, "MOST_PLACES", 2)
    told = Instruments(registry)
    for node in ("n1", "n2", "n3", "n1", "n4"):
        told.answered(wanted(node), EvictionDone())
    found = {
        sample.labels["node"]: (sample.value, sample.labels["namespace"])
        for family in registry.collect()
        for sample in family.samples
        if sample.name == NAMES[0]
    }
    assert found == {"n1": (2, "default"), "n2": (1, "default"), "others": (2, "others")}


@pytest.mark.parametrize("prefix", ["descheduler", "descheduler_descheduler"])
def test_cycles_and_runs_are_timed_under_both_names(registry: prometheus_client.CollectorRegistry, prefix: str) -> None:
    told = Instruments(registry)
    told.ended(CycleRecord(nodes=2, steps=(step(took_s=0.2),)), 3.0)
    told.failed(200.0)
    assert registry.get_sample_value(f"{prefix}_loop_duration_seconds_count") == 2
    assert registry.get_sample_value(f"{prefix}_loop_duration_seconds_bucket", {"le": "100.0"}) == 1
    labels = {"strategy": "Sweep", "profile": "p"}
    assert registry.get_sample_value(f"{prefix}_strategy_duration_seconds_sum", labels) == 0.2
    assert registry.get_sample_value(f"{prefix}_strategy_duration_seconds_bucket", {**labels, "le": "100.0"}) == 1


def test_each_end_of_a_cycle_is_there_before_the_first(registry: prometheus_client.CollectorRegistry) -> None:
    told = Instruments(registry)

    def counted() -> list[float | None]:
        name = "podyard_descheduler_cycles_total"
        return [registry.get_sample_value(name, {"result": result}) for result in ("done", "skipped", "failed")]

    assert counted() == [0, 0, 0]
    told.ended(CycleRecord(nodes=2), 1.0)
    told.ended(CycleRecord(nodes=1, skipped="too few"), 1.0)
    told.failed(1.0)
    assert counted() == [1, 1, 1]


def test_the_build_is_told_as_far_as_it_is_known(registry: prometheus_client.CollectorRegistry) -> None:
    Instruments(registry)
    (family,) = [family for family in registry.collect() if family.name == "descheduler_build_info"]
    (sample,) = family.samples
    assert sample.value == 1
    assert sample.labels["GoVersion"] == f"{platform.python_implementation()} {platform.python_version()}"
    assert sample.labels["DeschedulerVersion"].startswith(sample.labels["AppVersion"] + ".")
    assert (sample.labels["GitBranch"], sample.labels["GitSha1"]) == ("", "")
