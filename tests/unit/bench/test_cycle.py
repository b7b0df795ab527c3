"""`bench cycle`: what it measures, and how it is told."""

import itertools
import time

import msgspec
import pytest
from rich.console import Console

from podyard.bench import cluster, cycles
from podyard.bench.render import cycle as shown_cycle
from podyard.plugins.defaults import default_profile


@pytest.fixture(autouse=True)
def few_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "FIRST_PODS", 2)
    monkeypatch.setattr(cycles, "SEEN_PODS", 5)


def test_all_kinds_are_measured_on_all_sizes_and_told() -> None:
    told: list[str] = []
    result = cycles.measure(default_profile(), (60, 30), 60, told.append)
    assert (result.nodes, result.pods) == (60, 120)
    assert [one.nodes for one in result.curve] == [30, 60]
    for one in result.curve:
        assert tuple(one.kinds) == cluster.KINDS
        assert all(cost.first_us > 0 and cost.seen_us > 0 and cost.assume_us > 0 for cost in one.kinds.values())
    assert result.kinds == result.curve[1].kinds
    assert told[0] == "30 nodes: placing 60 pods"
    document = msgspec.json.decode(msgspec.json.encode(result))
    assert set(document["kinds"]["anti-affinity"]) == {"first_us", "seen_us", "assume_us"}
    console = Console(width=200)
    with console.capture() as written:
        console.print(shown_cycle.report(result))
    text = written.get()
    assert all(kind in text for kind in cluster.KINDS)
    assert "30 NODES" in text
    assert "120 placed pods" in text


def test_figures_are_medians_of_the_cycle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.accumulate(
        itertools.cycle((100.0, 1e-3, 50.0, 7e-3))
    )  # between pods, cycle, making the placed pod, assuming
    monkeypatch.setattr(time, "thread_time", lambda: next(ticks))
    for cost in cycles.measure_size(default_profile(), 30, lambda text: None).kinds.values():
        assert (round(cost.first_us), round(cost.seen_us), round(cost.assume_us)) == (1000, 1000, 7000)


def test_pods_of_a_kind_are_alike_or_have_nothing_in_common() -> None:
    for kind in cluster.KINDS:
        seen, first = list(cluster.alike(kind, 3)), list(cluster.different(kind, 3))
        assert len({msgspec.json.encode((pod.labels, pod.pod.spec)) for pod in seen}) == 1
        for one, other in itertools.combinations(first, 2):
            assert one.labels != other.labels
            assert one.usage.requests != other.usage.requests
            assert one.pod.spec.affinity != other.pod.spec.affinity or one.pod.spec.affinity is None
            assert one.pod.spec.node_selector != other.pod.spec.node_selector or not one.pod.spec.node_selector


def test_a_pod_that_finds_no_node_is_no_figure() -> None:
    with pytest.raises(cycles.UnplacedError, match=r"kind selector found no node of 3: 0/3 nodes are available"):
        cycles.measure_size(default_profile(), 3, lambda text: None)
