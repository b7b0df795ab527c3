"""Plugins that judge each pod by itself: PodLifeTime, RemoveFailedPods, RemovePodsHavingTooManyRestarts,
RemovePodsViolatingNodeAffinity. What the reference's own answers show is in tests/conformance."""

from collections.abc import Sequence
from typing import Any

import pytest

from podyard.descheduler.core import ages
from podyard.descheduler.core.evictions import EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.plugins.failed_pods import RemoveFailedPods
from podyard.descheduler.core.plugins.node_affinity import RemovePodsViolatingNodeAffinity
from podyard.descheduler.core.plugins.pod_lifetime import PodLifeTime
from podyard.descheduler.core.plugins.too_many_restarts import RemovePodsHavingTooManyRestarts
from podyard.descheduler.core.state import CycleState
from podyard.objects import selectors, times
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from tests.unit.descheduler.make import NOW, node, pod, policy, run

TWO_NODES = (node("n1"), node("n2"))


def evicted(
    plugin: type[Plugin], pods: Sequence[Pod], nodes: Sequence[Node] = TWO_NODES, top: dict | None = None, **args: Any
) -> list[str]:
    chosen = policy(plugin, args={plugin.NAME: args}, **(top or {}))
    record, _ = run(chosen, CycleState(nodes=nodes, pods=pods))
    assert [step.error for step in record.steps] == [""]
    return [one.name for step in record.steps for one in step.evicted]


def aged(name: str, seconds: float, **more: Any) -> Pod:
    return pod(name, creationTimestamp=times.rfc3339(NOW - seconds), **more)


def container(**state: Any) -> dict:
    return {"name": "c", **state}


def waiting(reason: str) -> dict:
    return container(state={"waiting": {"reason": reason}})


def terminated(reason: str = "", code: int = 0) -> dict:
    return container(state={"terminated": {"reason": reason, "exitCode": code}})


def test_life_time_is_exceeded_and_the_oldest_go_first():
    pods = [aged("at", 60), aged("over", 61), aged("old", 900, node="n2"), aged("ahead", -5), pod("timeless")]
    assert evicted(PodLifeTime, pods, maxPodLifeTimeSeconds=60) == ["timeless", "old", "over"]


def test_a_pod_of_which_nobody_can_say_when_it_was_created_stays():
    pods = [pod("never", creationTimestamp="long ago"), aged("old", 900)]
    assert evicted(PodLifeTime, pods, maxPodLifeTimeSeconds=60) == ["old"]
    failed = [pod("never", phase="Failed", creationTimestamp="long ago")]
    assert evicted(RemoveFailedPods, failed, minPodLifetimeSeconds=0) == []


@pytest.mark.parametrize(
    ("status", "args", "goes"),
    [
        ({}, {"states": ["Running"]}, True),
        ({}, {"states": ["Pending"]}, False),
        ({"reason": "NodeLost"}, {"states": ["NodeLost"]}, True),
        ({"containerStatuses": [waiting("CrashLoopBackOff")]}, {"states": ["CrashLoopBackOff"]}, True),
        ({"containerStatuses": [terminated("OOMKilled")]}, {"states": ["OOMKilled"]}, True),
        ({"initContainerStatuses": [terminated("Error")]}, {"states": ["Error"]}, False),
        (
            {"initContainerStatuses": [terminated("Error")]},
            {"states": ["Error"], "includingInitContainers": True},
            True,
        ),
        (
            {"ephemeralContainerStatuses": [terminated("Error")]},
            {"states": ["Error"], "includingEphemeralContainers": True},
            True,
        ),
        ({"containerStatuses": [terminated(code=137)]}, {"exitCodes": [1, 137]}, True),
        ({"containerStatuses": [terminated(code=2)]}, {"exitCodes": [1, 137]}, False),
        (
            {"ephemeralContainerStatuses": [terminated(code=1)]},
            {"exitCodes": [1], "includingEphemeralContainers": True},
            False,
        ),
        ({}, {"states": ["Running"], "ownerKinds": {"include": ["Job"]}}, False),
        ({}, {"states": ["Running"], "ownerKinds": {"include": ["ReplicaSet"]}}, True),
        ({}, {"states": ["Running"], "ownerKinds": {"exclude": ["ReplicaSet"]}}, False),
        ({}, {"states": ["Running"], "ownerKinds": {}}, True),
    ],
)
def test_states_exit_codes_and_owners(status: dict, args: dict, goes: bool):
    assert evicted(PodLifeTime, [pod(status=status)], **args) == (["web"] if goes else [])


@pytest.mark.parametrize(
    ("changed", "wanted", "goes"),
    [
        (50, {"type": "Ready"}, True),
        (50, {"type": "Ready", "status": "True"}, False),
        (50, {"reason": "Gone", "minTimeSinceLastTransitionSeconds": 50}, True),
        (49, {"minTimeSinceLastTransitionSeconds": 50}, False),
        (-1, {"minTimeSinceLastTransitionSeconds": 0}, False),
        (None, {"type": "Ready", "minTimeSinceLastTransitionSeconds": 0}, False),
    ],
)
def test_conditions_that_have_held_for_long_enough(changed: float | None, wanted: dict, goes: bool):
    condition = {"type": "Ready", "status": "False", "reason": "Gone"}
    if changed is not None:
        condition["lastTransitionTime"] = times.rfc3339(NOW - changed)
    found = evicted(PodLifeTime, [pod(status={"conditions": [condition]})], conditions=[wanted])
    assert found == (["web"] if goes else [])


def test_a_node_at_its_limit_does_not_keep_the_pods_of_others():
    pods = [aged("oldest", 90), aged("older", 80), aged("old", 70, node="n2")]
    limits = {"maxNoOfPodsToEvictPerNode": 1}
    assert evicted(PodLifeTime, pods, top=limits, maxPodLifeTimeSeconds=1) == ["oldest", "old"]
    assert evicted(PodLifeTime, pods, top={"maxNoOfPodsToEvictTotal": 2}, maxPodLifeTimeSeconds=1) == [
        "oldest",
        "older",
    ]


@pytest.mark.parametrize(
    ("status", "args", "goes"),
    [
        ({}, {}, False),
        ({}, {"minPodLifetimeSeconds": 600}, True),
        ({}, {"minPodLifetimeSeconds": 601}, False),
        ({"reason": "Evicted"}, {"reasons": ["Evicted"]}, True),
        ({"containerStatuses": [terminated("Error")]}, {"reasons": ["Evicted"]}, False),
        ({}, {"reasons": [""]}, False),
        ({"containerStatuses": [terminated(code=3)]}, {"exitCodes": [3]}, True),
        ({"initContainerStatuses": [terminated(code=3)]}, {"exitCodes": [3]}, False),
        ({"initContainerStatuses": [terminated(code=3)]}, {"exitCodes": [3], "includingInitContainers": True}, True),
        ({}, {"excludeOwnerKinds": ["ReplicaSet"]}, False),
    ],
)
def test_failed_pods_go_after_an_hour_or_as_told(status: dict, args: dict, goes: bool):
    if args and "minPodLifetimeSeconds" not in args:
        args = {**args, "minPodLifetimeSeconds": 600}
    pods = [aged("failed", 600, phase="Failed", status=status), aged("runs", 600, status=status)]
    assert evicted(RemoveFailedPods, pods, **args) == (["failed"] if goes else [])
    assert evicted(RemoveFailedPods, [aged("failed", 3600, phase="Failed")]) == ["failed"]


def restarted(name: str, count: int, init: int = 0, **more: Any) -> Pod:
    status = {
        "containerStatuses": [container(restartCount=count)],
        "initContainerStatuses": [container(restartCount=init)],
    }
    return pod(name, status=status, **more)


def test_the_most_restarted_pod_of_a_node_goes_first():
    pods = [restarted("at", 3), restarted("most", 9), restarted("few", 2, init=7), restarted("other", 5, node="n2")]
    plugin = RemovePodsHavingTooManyRestarts
    assert evicted(plugin, pods, podRestartThreshold=3) == ["most", "at", "other"]
    found = evicted(plugin, pods, podRestartThreshold=3, includingInitContainers=True)
    assert found[-1:] == ["other"]
    assert sorted(found) == ["at", "few", "most", "other"]
    assert evicted(plugin, pods, podRestartThreshold=3, states=["CrashLoopBackOff"]) == []
    limits = {"maxNoOfPodsToEvictPerNode": 1}
    assert evicted(plugin, pods, top=limits, podRestartThreshold=3) == ["most", "other"]


def needing(label: str, kind: str = "required", name: str = "web", **more: Any) -> Pod:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [label]}]}
    affinity: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    if kind == "preferred":
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}]}
    return pod(name, spec={"affinity": {"nodeAffinity": affinity}}, **more)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("one", "types", "goes"),
    [
        (needing("b"), [REQUIRED], True),
        (needing("a"), [REQUIRED], False),
        (needing("c"), [REQUIRED], False),
        (needing("b"), [PREFERRED], False),
        (needing("b", "preferred"), [PREFERRED], True),
        (needing("a", "preferred"), [PREFERRED], False),
        (needing("c", "preferred"), [PREFERRED], False),
        (needing("b", "preferred"), [REQUIRED], False),
        (needing("b"), ["nonsense"], False),
        (needing("b"), ["nonsense", REQUIRED], True),
        (pod(spec={"nodeSelector": {"zone": "b"}}), [REQUIRED], False),
    ],
    ids=str,
)
def test_pods_go_where_their_node_affinity_points(one: Pod, types: list[str], goes: bool):
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]
    assert evicted(RemovePodsViolatingNodeAffinity, [one], nodes, nodeAffinityType=types) == (["web"] if goes else [])


def test_what_is_liked_best_is_looked_for_once_for_all_that_prefer_the_same(monkeypatch: pytest.MonkeyPatch):
    """Else each pod would be held against each node."""
    compiled: list[object] = []
    compile_term = selectors.compile_term
    monkeypatch.setattr(selectors, "compile_term", lambda term: compiled.append(term) or compile_term(term))
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]
    pods = [needing("b", "preferred", f"b{at}") for at in range(3)] + [needing("a", "preferred", "a")]
    assert evicted(RemovePodsViolatingNodeAffinity, pods, nodes, nodeAffinityType=[PREFERRED]) == ["b0", "b1", "b2"]
    assert len(compiled) == 2


def test_an_empty_preference_likes_no_node():
    """Though an empty required term takes none either, and an empty selector takes all."""
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {}}]}
    one = pod(spec={"affinity": {"nodeAffinity": affinity}})
    assert evicted(RemovePodsViolatingNodeAffinity, [one], nodeAffinityType=[PREFERRED]) == []


def test_a_pod_that_no_node_would_take_stays_where_its_affinity_does_not_want_it():
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}, unschedulable=True)]
    assert evicted(RemovePodsViolatingNodeAffinity, [needing("b")], nodes, nodeAffinityType=[REQUIRED]) == []


def test_a_better_node_may_be_cordoned_as_long_as_the_pod_fits_where_it_is():
    """The reference looks for the best node among all, and for one that would take the pod among all."""
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}, unschedulable=True)]
    found = evicted(RemovePodsViolatingNodeAffinity, [needing("b", "preferred")], nodes, nodeAffinityType=[PREFERRED])
    assert found == ["web"]


def test_an_affinity_that_makes_no_sense_moves_nobody():
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}]}
    pods = [
        pod("a", spec={"affinity": {"nodeAffinity": required}}),
        pod("b", spec={"affinity": {"nodeAffinity": preferred}}),
    ]
    assert evicted(RemovePodsViolatingNodeAffinity, pods, nodeAffinityType=[REQUIRED, PREFERRED]) == []


def test_what_the_api_refuses_stays_and_the_next_is_tried():
    chosen = policy(
        RemovePodsHavingTooManyRestarts, args={RemovePodsHavingTooManyRestarts.NAME: {"podRestartThreshold": 1}}
    )
    state = CycleState(nodes=TWO_NODES, pods=[restarted("a", 9), restarted("b", 8)])
    record, asked = run(
        chosen, state, answer=lambda one: EvictionFailed("no") if one.pod.metadata.name == "a" else EvictionDone()
    )
    assert [one.pod.metadata.name for one in asked] == ["a", "b"]
    assert [one.name for one in record.steps[0].evicted] == ["b"]
    assert asked[1].reason == "was restarted 8 times on its node"


def test_an_age_is_whole_seconds_and_nothing_is_younger_than_now():
    began = times.seconds_of("2026-01-01T00:00:00Z")
    ages_s = [ages.age_s("2026-01-01T00:00:00Z", began + after_s) for after_s in (-1.0, -0.5, 0.0, 0.9, 61.9)]
    assert ages_s == [None, None, 0, 0, 61]
    assert (ages.age_s("yesterday", began), ages.age_s(None, began)) == (None, int(ages.OLDEST_S))
