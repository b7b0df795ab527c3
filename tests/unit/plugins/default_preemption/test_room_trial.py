"""Whom a node would have to lose, worked out by sums: as by trying, and only where nothing else counts."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podyard.cluster.node_table import FIRST_CAPACITY
from podyard.framework.cycle_state import CycleState
from podyard.framework.plugin_times import TIMED_EVERY, PluginTimes
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.row_judge import RowJudge
from podyard.framework.status import PluginError, Status
from podyard.plugins import registry
from podyard.plugins.default_preemption import dry_run
from podyard.plugins.default_preemption.room_trial import MOST_KEPT, RoomTrials
from podyard.plugins.node_resources_fit.args import Args
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.plugins.default_preemption.scenes import Scene, budget, placed

OTHERS = ("PrioritySort", "NodeUnschedulable", "TaintToleration", "DefaultPreemption")


def profile(fit: NodeResourcesFit | None = None, *more: str) -> Profile:
    known = registry.by_name()
    plugins = [registry.create(known[name]) for name in (*OTHERS, *more)]
    return resolve("test", [Enabled(plugin=one) for one in (fit or NodeResourcesFit(Args()), *plugins)])


class Trials:
    """How often a node was tried out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        tried: Callable[..., Any] = dry_run._NodeTrial.run  # pyright: ignore[reportPrivateUsage]

        def run(trial: Any, *given: Any) -> Any:
            self.count += 1
            return tried(trial, *given)

        monkeypatch.setattr(dry_run._NodeTrial, "run", run)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(monkeypatch)


def scene(use: Profile, **more: Any) -> Scene:
    """4 CPUs, of which 3.5 are taken."""
    pods = [
        placed("small", "a", cpu="500m", priority=1),
        placed("large", "a", cpu="2", priority=2),
        placed("mine", "a", cpu="1", priority=10),
    ]
    return Scene([make_node("a", cpu="4")], pods, use=use, **more)


ME = make_pod("me", cpu="1", priority=10)


def test_where_only_room_counts_nothing_is_tried(trials: Trials) -> None:
    assert scene(profile()).tried(ME, "a") == (["small"], 0)
    assert scene(profile(), budgets=[budget(0, {"app": "web"})]).tried(ME, "a") == (["small"], 0)
    assert trials.count == 0


@pytest.mark.parametrize(("every", "tried"), [(1, 1), (TIMED_EVERY, 0)])
def test_where_people_are_to_see_each_call_the_node_is_tried(every: int, tried: int, trials: Trials) -> None:
    seen = scene(profile())
    seen.snapshot.timing = PluginTimes(lambda: 0.0, every)
    assert seen.tried(ME, "a") == (["small"], 0)
    assert trials.count == tried


def test_where_the_pod_has_no_room_either_way_the_node_is_tried_which_says_why(trials: Trials) -> None:
    refused = scene(profile()).tried(make_pod("me", cpu="4", priority=10), "a")
    assert getattr(refused, "reasons", ()) == ("Insufficient cpu",)
    assert trials.count == 1


@pytest.mark.parametrize("plugin", ["NodePorts", "InterPodAffinity"])
def test_where_another_plugin_looks_at_what_is_on_the_node_it_is_tried(plugin: str, trials: Trials) -> None:
    port = {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    me = make_pod("me", priority=10, containers=[port], affinity=affinity)
    assert scene(profile(None, plugin)).tried(me, "a") == (["small"], 0)
    assert trials.count == 1


def test_where_others_are_to_have_room_the_node_is_tried(trials: Trials) -> None:
    other = make_pod("other", cpu="1", priority=20, nominated="a")
    assert scene(profile(), nominated=[other]).tried(ME, "a") == (["large"], 0)
    assert trials.count == 1


@pytest.mark.parametrize("fault", [ValueError("no"), [("cpu",)], [("cpu", -1)], [(1, 1)], [("cpu", True)], None, 7])
def test_a_plugin_that_cannot_say_what_the_pod_wants_is_asked_pod_by_pod(fault: object, trials: Trials) -> None:
    class Unsure(NodeResourcesFit):
        def room_wanted(self, state: CycleState) -> Sequence[tuple[str, int]]:
            if isinstance(fault, Exception):
                raise fault
            return fault  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    where = scene(profile(Unsure(Args())))
    assert where.tried(ME, "a") == (["small"], 0)
    assert trials.count == 1
    [told] = where.snapshot.take_faults()
    assert (told.plugin, told.point) == ("NodeResourcesFit", "room_wanted")


def test_a_plugin_that_fails_for_the_node_itself_fails_as_where_it_is_tried(
    monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    def fails(*given: Any) -> Any:
        raise PluginError("TaintToleration", "filter", "broken")

    monkeypatch.setattr(RowJudge, "nodes_alone_take", fails)
    assert scene(profile()).tried(ME, "a") == (["small"], 0)
    assert trials.count == 1


def test_a_node_that_does_not_take_the_pod_for_itself_is_no_candidate(trials: Trials) -> None:
    """Though NodeResourcesFit, which is asked first, says that pods less would help."""
    tainted = Scene([make_node("a", taints=[("k", "", "NoSchedule")])], [placed("p", "a", cpu="4")], use=profile())
    refused = tainted.tried(make_pod("me", cpu="1", priority=10), "a")
    assert isinstance(refused, Status)
    assert refused.plugin == "TaintToleration"
    assert trials.count == 1


def test_what_is_kept_is_kept_for_a_size_and_a_priority(trials: Trials) -> None:
    here = scene(profile())
    assert here.tried(ME, "a") == (["small"], 0)
    assert here.tried(make_pod("me", cpu="2500m", priority=10), "a") == (["large"], 0)
    assert here.tried(make_pod("me", cpu="2500m", priority=20), "a") == (["large"], 0)
    assert here.tried(make_pod("me", cpu="4", priority=20), "a") == (["mine", "large", "small"], 0)
    assert isinstance(here.tried(make_pod("me", cpu="4", priority=10), "a"), Status)
    assert here.tried(make_pod("me", cpu="1", priority=2), "a") == (["small"], 0)
    assert trials.count == 1, "the node that has no room even without them"


def test_what_is_kept_goes_with_the_budgets_it_is_about(trials: Trials) -> None:
    guarded = placed("guarded", "a", cpu="4", labels={"app": "web"})
    here = Scene([make_node("a")], [guarded], budgets=[budget(0, {"app": "web"})], use=profile())
    assert here.tried(ME, "a") == (["guarded"], 1)
    here.set_budgets([budget(1, {"app": "web"})])
    assert here.tried(ME, "a") == (["guarded"], 0)
    here.set_budgets([])
    assert here.tried(ME, "a") == (["guarded"], 0)
    assert trials.count == 0


def test_what_is_kept_is_found_again_after_the_table_grew(trials: Trials) -> None:
    here = scene(profile())
    assert here.tried(ME, "a") == (["small"], 0)
    for number in range(FIRST_CAPACITY):
        here.snapshot.nodes.set_node(make_node(f"n{number}", cpu="4"))
        here.snapshot.nodes.place(placed(f"on-{number}", f"n{number}", cpu="4"))
    last = f"n{FIRST_CAPACITY - 1}"
    assert here.tried(ME, last) == ([f"on-{FIRST_CAPACITY - 1}"], 0)
    assert here.tried(ME, "a") == (["small"], 0)
    assert trials.count == 0


def test_sizes_that_preempt_no_more_are_forgotten() -> None:
    here = scene(profile())
    for cpu in range(MOST_KEPT * 2):
        here.tried(make_pod("me", cpu=f"{1000 + cpu}m", priority=10), "a")
    assert len(here.snapshot.nodes.index(RoomTrials)._kept) == MOST_KEPT  # pyright: ignore[reportPrivateUsage]
