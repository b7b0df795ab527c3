"""The plan of a cycle: where pods would go, and who stays because of it."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.configuration.model import load
from podyard.descheduler.core import building, registry, state
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.framework import Answer, Evict, Target, Verdict
from podyard.descheduler.core.planning import Plan
from tests.support import objects
from tests.unit.descheduler.make import NOW, NoArgs, policy
from tests.unit.descheduler.test_plugins_that_fail import Sweep
from tests.unit.descheduler.world import Play, Scheduler, pod, view_of

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
TAINTS = "RemovePodsViolatingNodeTaints"
AFFINITY = "RemovePodsViolatingNodeAffinity"
PLUGINS = registry.by_name()


def one(plugin: str, args: dict[str, Any] | None = None, **more: Any) -> Any:
    return policy(PLUGINS[plugin], args={plugin: args or {}}, **more)


def prefers(zone: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
        }
    }


@pytest.mark.parametrize("obey", [True, False])
def test_a_pod_that_another_node_takes_goes_and_the_plan_says_where(obey: bool):
    view = view_of(
        [objects.node("n1", taints=[GPU]), objects.node("n2"), objects.node("n3", cpu="1")], {"n1": [pod("a", cpu="2")]}
    )
    play = Play(one(TAINTS), view, obey=obey)
    assert play.moved == {"a": "n2"}
    assert [record.planned_node for record in play.remembered] == ["n2"]


@pytest.mark.parametrize("obey", [True, False])
def test_a_pod_larger_than_any_target_stays_and_who_refuses_is_told(obey: bool):
    """descheduler#1695."""
    nodes = [objects.node("n1", cpu="8", taints=[GPU]), objects.node("n2", cpu="2"), objects.node("n3", cpu="2")]
    play = Play(one(TAINTS), view_of(nodes, {"n1": [pod("a", cpu="3")]}), obey=obey)
    why = "it would stay pending: NodeResourcesFit refuses 2 nodes: Insufficient cpu; TaintToleration refuses 1 node:"
    if obey:
        assert play.moved == {}
        assert play.kept["a"].startswith(why)
        assert [(record.outcome, record.problem) for record in play.remembered] == [("refused", play.kept["a"])]
    else:
        assert play.moved == {"a": ""}
        (record,) = play.remembered
        assert (record.outcome, record.problem) == ("moving", "")
        assert record.plan_problem.startswith(why)


def test_a_preferred_affinity_that_nobody_can_serve_moves_nothing():
    """descheduler#1707: the zone that it prefers is full, the other node is no better."""
    nodes = [objects.node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "a"))]
    big = pod("big", "other", cpu="4")
    chosen = one(AFFINITY, {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]})
    full = view_of(nodes, {"n1": [pod("a", cpu="2", **prefers("b")), pod("c", "x", cpu="1")], "n2": [big]})
    play = Play(chosen, full)
    assert play.kept == {
        "a": f"n3, where it would go, is no better for {AFFINITY}: it does not fulfil what it prefers better"
    }
    free = view_of(nodes, {"n1": [pod("a", cpu="2", **prefers("b"))]})
    assert Play(chosen, free).moved == {"a": "n2"}


def test_a_pod_that_would_come_back_to_its_node_stays():
    """Its node is the emptiest without it."""
    nodes = [objects.node("n1", cpu="8"), objects.node("n2")]
    view = view_of(nodes, {"n1": [pod("a", cpu="1")], "n2": [pod("b", "other", cpu="1")]})
    assert Play(policy(Sweep), view, Sweep).kept["a"] == "it would come back to n1"


def test_a_pod_that_may_come_back_to_its_node_stays():
    """Both nodes are as good: the uid of what comes decides, which nobody knows before."""
    view = view_of(
        [objects.node("n1"), objects.node("n2")], {"n1": [pod(f"a{number}", f"o{number}") for number in range(8)]}
    )
    kept = Play(policy(Sweep, maxNoOfPodsToEvictTotal=1), view, Sweep, obey=False).record
    empty = view_of([objects.node("n1"), objects.node("n2")], {"n1": [pod("a")]})
    assert Play(policy(Sweep), empty, Sweep).kept == {"a": "it would come back to n1"}
    assert kept.evicted == 1


def test_room_that_pods_take_and_free_is_booked():
    """Two pods of 3 CPUs have to go, each other node has room for one; the third stays."""
    nodes = [objects.node("n1", cpu="12", taints=[GPU]), objects.node("n2"), objects.node("n3")]
    play = Play(one(TAINTS), view_of(nodes, {"n1": [pod(name, cpu="3") for name in "abc"]}))
    assert sorted(play.moved.values()) == ["n2", "n3"]
    assert list(play.kept) == ["c"]
    before, after = play.record.before["cpu"], play.record.after["cpu"]
    assert (before.least, before.most, after.least, after.most) == (0.0, 75.0, 25.0, 75.0)


def test_the_room_of_an_eviction_that_is_refused_is_given_back():
    nodes = [objects.node("n1", cpu="12", taints=[GPU]), objects.node("n2")]
    view = view_of(nodes, {"n1": [pod("a", cpu="3"), pod("b", cpu="3")]})

    def answer(wanted: Eviction) -> EvictionResult:
        return EvictionFailed("its budget") if wanted.pod.metadata.name == "a" else EvictionDone()

    assert Play(one(TAINTS), view, answer=answer).moved == {"b": "n2"}


@pytest.mark.parametrize(("priority", "why"), [(10, "it would stay pending"), (9, "it would come back to n1")])
def test_pods_that_wait_get_the_room_first_if_they_are_as_important(priority: int, why: str):
    """The room that the pod frees is the only one that is large enough, for both."""
    waiting = pod("w", "other", cpu="3", priority=priority)
    placed = {"n1": [pod("a", cpu="3", priority=10)], "n2": [pod("x", "", cpu="2")], "": [waiting]}
    play = Play(policy(Sweep), view_of([objects.node("n1"), objects.node("n2")], placed), Sweep)
    assert play.kept["a"].startswith(why)


def test_a_pod_that_waits_and_fits_already_has_its_room():
    nodes = [objects.node("n1", cpu="12", taints=[GPU]), objects.node("n2")]
    placed = {"n1": [pod("a", cpu="3", priority=10)], "": [pod("w", "other", cpu="2")]}
    assert Play(one(TAINTS), view_of(nodes, placed)).moved == {}


def test_pods_are_placed_by_the_profile_that_they_name():
    """`packed` likes the fullest node best; a name without a profile places nobody."""
    configuration = load(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packed
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: NodeResourcesFit}]
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
    )
    nodes = [objects.node("n1", taints=[GPU]), objects.node("n2"), objects.node("n3")]
    going = [pod("a", cpu="1"), pod("b", cpu="1", schedulerName="packed"), pod("c", cpu="1", schedulerName="nobody")]
    view = view_of(nodes, {"n1": going, "n3": [pod("x", "other", cpu="1")]})
    play = Play(one(TAINTS), view, configuration=configuration)
    assert play.moved == {"a": "n2", "b": "n3"}
    assert play.kept == {"c": "nobody can say where it would go: there is no scheduling profile called nobody"}


def test_what_ends_or_belongs_to_nobody_comes_nowhere():
    """Nobody makes another: there is nothing to plan, and nothing that keeps it."""
    nodes = [objects.node("n1", taints=[GPU]), objects.node("n2", taints=[GPU])]
    view = view_of(nodes, {"n1": [pod("bare", "")]})
    play = Play(one(TAINTS, evictor={"evictFailedBarePods": True}), view)
    assert (play.moved, play.kept) == ({}, {}), "the evictor protects it"
    failed = pod("f", phase="Failed")
    view = view_of(nodes, {"n1": [failed]})
    assert Play(one("RemoveFailedPods"), view).moved == {"f": ""}


class Picky(Sweep):
    NAME = "Picky"
    BETTER: Any = Verdict(True)

    def is_better(self, pod: Any, target: Target) -> Verdict:
        del pod
        if isinstance(self.BETTER, Exception):
            raise self.BETTER
        return self.BETTER if target.node.metadata.name == "n2" else Verdict(True)


@pytest.mark.parametrize(
    ("better", "why"),
    [
        (Verdict(False, ("too loud",)), "n2, where it would go, is no better for Picky: too loud"),
        (Verdict(False), "n2, where it would go, is no better for Picky"),
        (ValueError("boom"), "n2, where it would go, is no better for Picky: it failed: ValueError: boom"),
        (True, "n2, where it would go, is no better for Picky: it failed: answered bool, not a Verdict"),
    ],
)
def test_a_plugin_of_ones_own_says_whether_a_node_is_better(better: Any, why: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Picky, "BETTER", better)
    view = view_of([objects.node("n1", taints=[GPU]), objects.node("n2")], {"n1": [pod("a")]})
    play = Play(policy(Picky), view, Picky)
    assert play.kept == {"a": why}
    assert [fault.point for fault in play.record.faults] == ([] if type(better) is Verdict else ["is_better"])


class Both:
    """Asks for everything, and remembers what it is answered."""

    NAME = "Both"
    ARGS = NoArgs
    ANSWERS: list[Answer] = []

    def __init__(self, args: Any, handle: Any) -> None:
        del args
        self._handle = handle

    @classmethod
    def faults(cls, args: Any) -> list[str]:
        del args
        return []

    def deschedule(self, nodes: Any) -> Any:
        del nodes
        for found in list(self._handle.state.pods.values()):
            self.ANSWERS.append((yield Evict(found)))


def test_a_plugin_is_told_that_a_pod_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Both, "ANSWERS", [])
    view = view_of([objects.node("n1", cpu="8"), objects.node("n2")], {"n1": [pod("a")], "n2": [pod("b", cpu="1")]})
    Play(policy(Both), view, Both)
    assert Both.ANSWERS == [Answer.STAYS, Answer.EVICTED]


# ---- any cluster, any policy

SHAPES = (
    {},
    {"nodeSelector": {"zone": "a"}},
    {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    prefers("b"),
    {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        }
    },
    {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    },
)
ARGS: dict[str, dict[str, Any]] = {
    "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    "LowNodeUtilization": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}},
    "RemoveDuplicates": {},
    AFFINITY: {
        "nodeAffinityType": [
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ]
    },
    TAINTS: {},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingTopologySpreadConstraint": {},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 3600},
}
PODS = st.lists(
    st.tuples(
        st.sampled_from(SHAPES),
        st.sampled_from(("web", "db", "job", "")),
        st.sampled_from(("100m", "500m", "1", "2500m")),
        st.integers(0, 5),
        st.sampled_from((0, 10, 2_000_000_000)),
    ),
    max_size=14,
)
NODES = st.lists(
    st.tuples(st.sampled_from(("a", "b", "c")), st.sampled_from(("2", "4")), st.booleans(), st.booleans()),
    min_size=2,
    max_size=6,
)
LIMIT = st.none() | st.integers(0, 3)


@given(
    NODES, PODS, st.lists(st.sampled_from(sorted(ARGS)), min_size=1, unique=True), LIMIT, LIMIT, LIMIT,
    st.booleans(), st.booleans(), st.sets(st.integers(0, 13)),
)  # fmt: skip
def test_a_dry_run_plans_what_the_real_run_does(
    nodes: list[Any],
    pods: list[Any],
    chosen: list[str],
    per_node: int | None,
    per_namespace: int | None,
    total: int | None,
    node_fit: bool,
    obey: bool,
    denied: set[int],
):
    """In any cluster, by any policy: limits, budgets and protections hold, every pod that goes runs where it
    was planned to, and with `obey` none ends pending, comes back, or fares no better."""
    documents = [
        objects.node(
            f"n{at}", cpu=cpu, labels={"zone": zone}, taints=[GPU] if tainted else [], unschedulable=cordoned and at > 0
        )
        for at, (zone, cpu, tainted, cordoned) in enumerate(nodes)
    ]
    placed: dict[str, list[Any]] = {}
    for at, (shape, owner, cpu, on, priority) in enumerate(pods):
        more = {"namespace": "prod" if at % 3 == 0 else "default"}
        document = pod(f"p{at}", owner, cpu=cpu, priority=priority, **more, **shape)
        placed.setdefault(f"n{on % len(nodes)}", []).append(document)
    view = view_of(documents, placed)
    limits = {
        "maxNoOfPodsToEvictPerNode": per_node,
        "maxNoOfPodsToEvictPerNamespace": per_namespace,
        "maxNoOfPodsToEvictTotal": total,
    }
    made = policy(
        *(PLUGINS[name] for name in chosen),
        args={name: ARGS[name] for name in chosen},
        evictor={"nodeFit": node_fit},
        **{name: most for name, most in limits.items() if most is not None},
    )
    scheduler = Scheduler(view, load("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"))
    came: dict[str, str] = {}

    def refused(wanted: Eviction) -> bool:
        return int(wanted.pod.metadata.name[1:]) in denied

    def judged(wanted: Eviction) -> EvictionResult:
        return EvictionFailed("its budget") if refused(wanted) else EvictionDone()

    def done(wanted: Eviction) -> EvictionResult:
        if not refused(wanted):
            came[wanted.pod.metadata.name] = scheduler.replace(wanted)
        return judged(wanted)

    dry = Play(made, view, obey=obey, dry_run=True, answer=judged)
    real = Play(made, view, obey=obey, answer=done)
    assert dry.attempts == real.attempts
    assert dry.remembered == []
    assert real.moved.keys() == came.keys()
    for name, node in came.items():
        assert real.moved[name] == node
        if not node:
            break  # what waits gets room that is freed later, which the test does not play
    gone = [one for one in real.attempts if one.answer is Answer.EVICTED]
    assert len({one.name for one in gone}) == len(gone)
    if obey:
        home = {one.name: one.node for one in gone}
        assert all(node and node != home[name] for name, node in came.items())
    else:
        assert real.kept == {}
    for most, counts in (
        (per_node, Counter(one.node for one in gone)),
        (per_namespace, Counter(one.namespace for one in gone)),
        (total, Counter("all" for _ in gone)),
    ):
        assert most is None or max(counts.values(), default=0) <= most
    (judge,) = building.build(made, PLUGINS, state.state_of(view), NOW)
    assert all(judge.evictor.filter(one.pod).allowed for one in real.asked), "protected"


def test_who_asks_for_what_is_no_amount_keeps_nobody_from_going():
    """Nobody can say what such a node has, or such a pod takes: nothing goes there, and it counts for
    nothing."""
    strange = objects.node("n0")
    strange["status"]["allocatable"]["cpu"] = "much"
    nodes = [strange, objects.node("n1", taints=[GPU]), objects.node("n2")]
    view = view_of(nodes, {"n1": [pod("a")]})
    odd = view_of(nodes, {"n1": [pod("a")], "n2": [pod("o", "", cpu="much")]})
    for found in (view, odd):
        assert Play(one(TAINTS), found).moved == {"a": "n2"}


def test_a_plan_that_breaks_keeps_nobody_from_going(monkeypatch: pytest.MonkeyPatch):
    def broken(*given: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Plan, "place", broken)
    view = view_of([objects.node("n1", taints=[GPU]), objects.node("n2")], {"n1": [pod("a"), pod("b")]})
    play = Play(one(TAINTS), view, obey=False)
    assert play.moved == {"a": "", "b": ""}
    assert {one.plan_problem for one in play.attempts} == {"nobody can say where it would go: RuntimeError: boom"}
    assert [fault.plugin for fault in play.record.faults] == ["the plan"]
    assert Play(one(TAINTS), view).kept == dict.fromkeys("ab", "nobody can say where it would go: RuntimeError: boom")
