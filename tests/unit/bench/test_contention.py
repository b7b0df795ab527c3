"""What `bench contention` plays, how it judges what is left, and what it says of it."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest
from rich.console import Console

from podyard.bench import end_state, meters, mixed
from podyard.bench.contention import ContentionResult, SchedulerFigures
from podyard.bench.end_state import EndState
from podyard.bench.render import contention as shown_contention
from podyard.bench.tally import Tally
from podyard.cli.top import figures
from podyard.cli.top.figures import Look
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.plugins.defaults import default_profile
from tests.unit.framework.builders import make_node, make_pod, on

PROFILE = default_profile()
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": mixed.HOST, "labelSelector": {"matchLabels": {mixed.APP: "a"}}}
            ]
        }
    }
}

# -- what is played


def test_the_load_is_the_same_for_the_same_seed_and_another_for_another():
    one, same, other = (mixed.load(50, offered=1.0, apart=0.2, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.pods != other.pods
    assert [node["status"] for node in one.nodes] != [node["status"] for node in other.nodes]


@pytest.mark.parametrize("offered", [0.5, 1.02])
def test_the_load_offers_the_cpu_that_is_asked_for_in_mixed_sizes_a_fifth_of_it_apart(offered: float):
    load = mixed.load(1000, offered=offered, apart=0.2, seed=1)
    sizes = Counter(_cpu(pod) for pod in load.pods)
    total = sum(size * count for size, count in sizes.items())
    assert offered * load.cpu_milli <= total < offered * load.cpu_milli + 50 * max(mixed.SIZES)
    assert set(sizes) == set(mixed.SIZES)
    apart = [pod for pod in load.pods if "affinity" in pod["spec"]]
    assert len(apart) == load.apart == pytest.approx(0.2 * len(load.pods), rel=0.02)
    groups = Counter(pod["metadata"]["labels"][mixed.APP] for pod in apart)
    fewest, most = mixed.APP_SIZES
    assert fewest <= min(groups.values()) < max(groups.values()) <= most
    names = [pod["metadata"]["name"] for pod in load.pods]
    assert len(set(names)) == len(names)


def _cpu(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


# -- how the end is judged


def judge(*pods: PodView, nodes: int = 2) -> EndState:
    """Nodes of 4 CPUs, n0, n1, ..."""
    made = [make_node(f"n{number}", cpu="4", labels={mixed.HOST: f"n{number}"}) for number in range(nodes)]
    view: Any = SimpleNamespace(
        nodes={node.metadata.name: NodeView(node, node.metadata.name, node.metadata.uid, 1) for node in made},
        pods={pod.key: pod for pod in pods},
        pods_on=lambda name: {pod.uid: pod for pod in pods if pod.bound is not None and pod.bound.node == name},
        objects=lambda resource: {},
        version=lambda resource: 0,
    )
    return end_state.judge(view, PROFILE)


def member(name: str, cpu: str, node: str = "", spec: dict[str, Any] | None = None) -> PodView:
    """A pod of the app, on a node or pending."""
    made = make_pod(name, cpu=cpu, labels={mixed.APP: "a"}, spec=spec)
    return on(made, node) if node else made


def test_an_unbound_pod_that_fits_is_found_and_one_that_does_not_is_not():
    there = [member("big", "3", "n0"), member("other", "2", "n1")]
    assert judge(*there, member("small", "2")).fitting == {"small": "n1"}
    found = judge(*there, member("small", "2500m"))
    assert found.fitting == {}
    assert (found.bound, found.unbound, found.cpu_filled) == (2, 1, 5 / 8)


def test_the_profiles_filters_decide_what_fits():
    there = [member("one", "1", "n0", APART), member("two", "1", "n1", APART)]
    assert judge(*there, member("three", "1", spec=APART)).fitting == {}
    assert judge(*there, member("three", "1", spec=APART), nodes=3).fitting == {"three": "n2"}


def test_a_node_over_its_allocatable_and_mates_that_should_be_apart_are_found():
    found = judge(member("one", "3", "n0"), member("two", "3", "n0"), member("three", "3", "n1"))
    assert (found.overloaded, found.too_close) == (("n0",), ())
    found = judge(member("one", "1", "n1", APART), member("two", "1", "n1", APART), member("three", "1", "n0", APART))
    assert (found.overloaded, found.too_close) == ((), ("n1",))


# -- what is counted


async def test_what_a_process_counted_before_it_was_killed_is_added_to_what_it_counts_now(
    monkeypatch: pytest.MonkeyPatch,
):
    child: Any = SimpleNamespace(service="scheduler", instance="scheduler-1", http="", starts=1)
    said: list[str] = []

    async def look(places: list[Any]) -> list[Look]:
        samples = figures.parse(said.pop(0)) if said[0] else {}
        return [Look(service=place.service, instance=place.instance, at=0.0, samples=samples) for place in places]

    monkeypatch.setattr("podyard.bench.tally.looking.look", look)
    tally = Tally([child])
    line = 'conflicts_total{{cause="fit"}} {}\ndecisions_total {}\n'
    for starts, text in ((1, line.format(1, 10)), (1, line.format(3, 20)), (2, line.format(1, 5))):
        child.starts = starts
        said.append(text)
        await tally.take()
    assert tally.total("scheduler-1", "decisions_total") == 25
    assert tally.by("scheduler-1", "conflicts_total", "cause") == {"fit": 4}
    assert tally.total("scheduler-2", "decisions_total") == 0


# -- what is said


def result(**more: Any) -> ContentionResult:
    one = SchedulerFigures(
        instance="scheduler-1",
        starts=2,
        decisions=900,
        share=0.9,
        conflicts=27,
        conflict_rate=0.03,
        conflicts_by_cause={"fit": 20, "InterPodAffinity": 7},
        retries=25,
        given_up=2,
    )
    end = EndState(bound=800, unbound=100, cpu_filled=0.975, fitting={}, overloaded=(), too_close=())
    given: dict[str, Any] = {
        "nodes": 100,
        "pods": 900,
        "pods_apart": 180,
        "seconds": 2.0,
        "pods_per_second_average": 400.0,
        "seconds_to_rest": 3.0,
        "cpu_us_per_pod": {"queue-1": 200.4, "scheduler-1": 1300.0},
        "decisions": 1000,
        "conflicts": 27,
        "conflict_rate": 0.027,
        "conflicts_by_cause": {"fit": 20, "InterPodAffinity": 7},
        "retries": 25,
        "schedulers": (one,),
        "killed": ("scheduler-1", "binder-1"),
        "unexplained": (),
        "end": end,
    }
    return ContentionResult(**given | more)


def said(run: ContentionResult, alone: ContentionResult | None = None) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(shown_contention.report(run, alone))
    return " ".join(captured.get().split())


def test_a_good_run_is_told():
    text = said(result(), result())
    assert text.startswith("97.5% of the CPU filled 800 of 900 pods (180 keep apart) bound on 100 nodes in 2.0 s")
    assert "2.70% of 1,000 decisions conflicted (goal: below 5%): fit 20, InterPodAffinity 7; 25 retried." in text
    assert "1,500 us of CPU a pod: scheduler-1 1,300, queue-1 200." in text
    assert "100 pods are left: none of them fits any node, each is parked with a reason." in text
    assert "Killed midway: scheduler-1 and binder-1." in text
    assert "One scheduler bound 800 of the same pods (97.5% of the CPU) in 2.0 s: +0.00% with several" in text


def test_faults_are_told_with_names():
    bad = EndState(
        bound=800,
        unbound=100,
        cpu_filled=0.9,
        fitting={f"p{number}": "n1" for number in range(7)},
        overloaded=("n1",),
        too_close=("n2", "n3"),
    )
    text = said(result(end=bad, unexplained=("p9 in inFlight",)))
    assert "7 of them fit a node: p0 on n1, p1 on n1, p2 on n1, p3 on n1, p4 on n1, ...;" in text
    assert "1 are not parked with a reason: p9 in inFlight; 1 nodes are overloaded: n1;" in text
    assert "2 nodes break anti-affinity: n2, n3" in text


def test_cpu_counts_over_starts_and_of_what_has_ended_as_it_was_seen_last(monkeypatch: pytest.MonkeyPatch):
    seconds = {1: 10.0, 2: 5.0}

    def used(pids: dict[str, int]) -> dict[str, float]:
        try:
            return {name: seconds[pid] for name, pid in pids.items()}
        except KeyError as missing:
            raise psutil.NoSuchProcess(int(missing.args[0])) from None

    monkeypatch.setattr(meters, "cpu_seconds", used)
    cpu = meters.CpuOverStarts()
    cpu.begin({"scheduler": 1, "queue": 2})
    seconds[1], seconds[2] = 13.0, 5.5
    cpu.take({"scheduler": 1, "queue": 2})
    del seconds[1]
    cpu.take({"scheduler": 1, "queue": 2})
    seconds[3] = 2.0
    cpu.take({"scheduler": 3, "queue": 2})
    assert cpu.used() == {"scheduler": 5.0, "queue": 0.5}


def test_it_is_written_as_json():
    assert msgspec.json.decode(msgspec.json.encode(result()))["end"]["cpu_filled"] == 0.975
