"""LowNodeUtilization and HighNodeUtilization, and the usage that they go by."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.descheduler.core import ordering
from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.measured import (
    NOTHING_MEASURED,
    ContainerUsage,
    KubernetesMetrics,
    Measured,
    QueryFailed,
    Sample,
)
from podyard.descheduler.core.plugins.high_node_utilization import HighNodeUtilization
from podyard.descheduler.core.plugins.low_node_utilization import LowNodeUtilization
from podyard.descheduler.core.plugins.pod_lifetime import PodLifeTime
from podyard.descheduler.core.state import CycleState
from podyard.objects import quantity
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from tests.support.objects import typed_node
from tests.unit.descheduler.make import node, pod, policy, run

LOW = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
HIGH = {"thresholds": {"cpu": 30}}
QUERY = "instance:node_cpu:ratio"
BY_QUERY = {
    "thresholds": {"MetricResource": 30},
    "targetThresholds": {"MetricResource": 50},
    "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": QUERY}},
}
MEASURED = {**LOW, "metricsUtilization": {"source": "KubernetesMetrics"}}


def asking(name: str, at: str, cpu: str = "1", **more: Any) -> Pod:
    """A pod that requests cpu of a node's four."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return pod(name, at, spec={"containers": [container], **more})


def carried_out(
    plugin: type[Plugin],
    pods: list[Pod],
    nodes: list[Node],
    args: dict,
    measured: Measured = NOTHING_MEASURED,
    **top: Any,
) -> CycleRecord:
    state = CycleState(nodes=nodes, pods=pods, measured=measured)
    record, _ = run(policy(plugin, args={plugin.NAME: args}, **top), state)
    return record


def evicted(plugin: type[Plugin], pods: list[Pod], nodes: list[Node], args: dict, **more: Any) -> list[str]:
    record = carried_out(plugin, pods, nodes, args, **more)
    assert [step.error for step in record.steps] == [""]
    return [one.name for step in record.steps for one in step.evicted]


FULL = [asking(f"p{at}", "n1") for at in range(4)]
"""All of one node."""
TWO = [node("n1"), node("n2")]


def test_pods_leave_the_full_node_until_it_is_at_its_target():
    assert evicted(LowNodeUtilization, FULL, TWO, LOW) == ["p0", "p1"]


def test_equal_to_a_threshold_is_below_and_equal_to_the_target_is_not_above():
    args = {"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 75}}
    pods = [*FULL, asking("other", "n2")]
    assert evicted(LowNodeUtilization, pods, TWO, args) == ["p0"]
    assert evicted(LowNodeUtilization, pods[1:], TWO, args) == []


@pytest.mark.parametrize(
    ("args", "nodes"),
    [
        ({"numberOfNodes": 1}, TWO),
        ({"evictableNamespaces": {"exclude": ["default"]}}, TWO),
        ({"evictionLimits": {"node": 0}}, TWO),
        ({"targetThresholds": {"cpu": 100}}, TWO),
        ({}, [node("n1"), node("n2", unschedulable=True)]),
        ({}, [node("n1"), node("n2", "a=b:PreferNoSchedule")]),
    ],
    ids=["number of nodes", "namespaces", "limit", "nobody is above", "cordoned", "taint"],
)
def test_nobody_leaves(args: dict, nodes: list[Node]):
    assert evicted(LowNodeUtilization, FULL, nodes, {**LOW, **args}) == []


def test_a_destination_with_more_taints_than_the_pod_has_tolerations_is_none():
    """Counted, not matched: one toleration of everything is one toleration."""
    everything = [{"operator": "Exists"}]
    pods = [asking(f"p{at}", "n1", tolerations=everything) for at in range(4)]
    tainted = [node("n1"), node("n2", "a=b:NoSchedule")]
    assert evicted(LowNodeUtilization, pods, tainted, LOW) == ["p0", "p1"]
    tainted = [node("n1"), node("n2", "a=b:NoSchedule", "c=d:NoSchedule")]
    assert evicted(LowNodeUtilization, pods, tainted, LOW) == []


def test_the_least_important_leave_first_and_the_limit_of_the_run_holds():
    pods = [asking("high", "n1", priority=9), asking("low", "n1", priority=1), asking("none", "n1"), asking("x", "n1")]
    found = evicted(LowNodeUtilization, pods, TWO, {**LOW, "evictionLimits": {"node": 1}})
    assert found == ["none"]


def test_deviation_is_from_the_average_of_all_nodes():
    args = {**LOW, "thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}, "useDeviationThresholds": True}
    pods = [asking("a", "n1"), asking("b", "n1"), asking("c", "n1"), asking("d", "n2")]
    assert evicted(LowNodeUtilization, pods, TWO, args) == ["a"], "the average is 50: below 40 and above 60"


def test_a_pod_that_stays_frees_nothing_and_does_not_count_against_the_limit_of_the_run():
    args = {"LowNodeUtilization": {**LOW, "evictionLimits": {"node": 1}}}
    state = CycleState(nodes=TWO, pods=FULL)
    record, asked = run(
        policy(LowNodeUtilization, args=args),
        state,
        answer=lambda one: EvictionFailed("no") if one.pod.metadata.name == "p0" else EvictionDone(),
    )
    assert [one.pod.metadata.name for one in asked] == ["p0", "p1"]
    assert record.evicted == 1


def test_a_cordoned_node_takes_no_pods_of_nodes_that_are_to_become_free():
    pods = [asking("a", "n1", "1"), asking("b", "n2", "3")]
    assert evicted(HighNodeUtilization, pods, TWO, HIGH) == ["a"]
    assert evicted(HighNodeUtilization, pods, [node("n1"), node("n2", unschedulable=True)], HIGH) == []


def test_room_that_destinations_do_not_have_stops_it():
    assert evicted(LowNodeUtilization, FULL, [node("n1"), typed_node("n2", pods="0")], LOW) == []


def test_nodes_that_are_used_little_are_emptied():
    nodes = [node("n1"), node("n2"), node("n3")]
    pods = [
        asking("few", "n1"),
        *(asking(f"p{at}", "n2") for at in range(3)),
        *(asking(f"q{at}", "n3") for at in range(2)),
    ]
    assert evicted(HighNodeUtilization, pods, nodes, HIGH) == ["few"]
    assert evicted(HighNodeUtilization, pods, nodes, {**HIGH, "numberOfNodes": 1}) == []
    assert evicted(HighNodeUtilization, pods[:1], nodes, HIGH) == [], "all nodes are"
    mode = {"evictionModes": ["OnlyThresholdingResources"]}
    assert evicted(HighNodeUtilization, pods, nodes, {**HIGH, **mode}) == ["few"]
    assert evicted(HighNodeUtilization, [pod("few"), *pods[1:]], nodes, {**HIGH, **mode}) == []


def metrics(nodes: Mapping[str, str], pods: Mapping[str, str]) -> Measured:
    """Cpu of nodes and pods."""
    return Measured(
        KubernetesMetrics(
            {name: {"cpu": quantity.nano(cpu), "memory": quantity.nano("1Gi")} for name, cpu in nodes.items()},
            {
                ("default", name): (ContainerUsage("c", {"cpu": quantity.nano(cpu), "memory": quantity.nano("1Mi")}),)
                for name, cpu in pods.items()
            },
        )
    )


def test_usage_may_be_measured():
    pods = [asking(f"p{at}", "n1", "1m") for at in range(4)]
    measured = metrics({"n1": "3", "n2": "100m"}, {"p1": "500m", "p2": "700m", "p3": "900m"})
    assert evicted(LowNodeUtilization, pods, TWO, MEASURED, measured=measured) == ["p1", "p2"], (
        "p0 was not measured: it stays"
    )


def queried(**shares: float) -> Measured:
    return Measured(prometheus={QUERY: tuple(Sample({"instance": name}, share) for name, share in shares.items())})


def test_a_query_tells_of_nodes_only_so_one_pod_leaves_or_as_many_as_allowed():
    measured = queried(n1=0.9, n2=0.1)
    assert evicted(LowNodeUtilization, FULL, TWO, BY_QUERY, measured=measured) == ["p0"]
    more = {**BY_QUERY, "evictionLimits": {"node": 3}}
    assert evicted(LowNodeUtilization, FULL, TWO, more, measured=measured) == ["p0", "p1", "p2"]


def test_shares_are_whole_hundredths_rounded_down():
    args = {**BY_QUERY, "targetThresholds": {"MetricResource": 56}}
    assert evicted(LowNodeUtilization, FULL, TWO, args, measured=queried(n1=0.57, n2=0.1)) == [], (
        "0.57 * 100 is 56.99999999999999"
    )


@pytest.mark.parametrize(
    ("args", "measured", "error"),
    [
        (MEASURED, Measured(), "error initializing usage client: metrics client not initialized"),
        (
            {**LOW, "metricsUtilization": {"metricsServer": True}},
            Measured(),
            "error initializing usage client: metrics client not initialized",
        ),
        (BY_QUERY, Measured(), "error initializing usage client: prometheus client not initialized"),
        (
            {**LOW, "metricsUtilization": {"source": "Datadog"}},
            Measured(),
            "error initializing usage client: unrecognized metrics source",
        ),
        ({**LOW, "metricsUtilization": {}}, Measured(), "error initializing usage client: metrics source is empty"),
        (
            MEASURED,
            metrics({"n1": "4"}, {}),
            'error getting node usage: unable to find node "n2" in the collected metrics',
        ),
        (
            {**MEASURED, "thresholds": {"x.y/gpu": 1}, "targetThresholds": {"x.y/gpu": 2}},
            metrics({"n1": "4", "n2": "0"}, {}),
            'error getting node usage: unable to find "x.y/gpu" resource for collected "n1" node metric',
        ),
        (BY_QUERY, queried(n1=0.9), "error getting node usage: unable to find metric entry for n2"),
        (
            BY_QUERY,
            queried(n1=1.25, n2=0),
            'error getting node usage: the collected metrics sample for "n1" has value 1.25 outside of <0; 1> interval',
        ),
        (
            BY_QUERY,
            queried(n1=float("nan"), n2=0),
            'error getting node usage: the collected metrics sample for "n1" has value NaN outside of <0; 1> interval',
        ),
        (
            BY_QUERY,
            queried(n1=1e-7 - 1, n2=0),
            'error getting node usage: the collected metrics sample for "n1" has value -0.9999999 outside of <0; 1> interval',
        ),
        (
            BY_QUERY,
            queried(n1=1e16, n2=0),
            'error getting node usage: the collected metrics sample for "n1" has value 10000000000000000 outside of <0; 1> interval',
        ),
        (
            BY_QUERY,
            Measured(prometheus={QUERY: (Sample({"node": "n1"}, 0.5),)}),
            "error getting node usage: the collected metrics sample is missing 'instance' key",
        ),
        (
            BY_QUERY,
            Measured(prometheus={QUERY: QueryFailed("connection refused")}),
            "error getting node usage: unable to capture prometheus metrics: connection refused",
        ),
        (
            BY_QUERY,
            Measured(prometheus={}),
            "error getting node usage: unable to capture prometheus metrics: the query was not asked",
        ),
    ],
)
def test_without_usage_the_plugin_does_nothing_and_says_why(args: dict, measured: Measured, error: str):
    record = carried_out(LowNodeUtilization, FULL, TWO, args, measured)
    (step,) = record.steps
    assert (step.attempts, step.error) == ((), error)
    assert [fault.plugin for fault in record.faults] == ["LowNodeUtilization"]


def test_other_plugins_run_though_usage_is_missing():
    chosen = policy(
        LowNodeUtilization,
        PodLifeTime,
        args={LowNodeUtilization.NAME: MEASURED, PodLifeTime.NAME: {"maxPodLifeTimeSeconds": 1}},
    )
    record, _ = run(chosen, CycleState(nodes=TWO, pods=FULL))
    assert [(step.plugin, len(step.evicted), bool(step.error)) for step in record.steps] == [
        ("PodLifeTime", 4, False),
        ("LowNodeUtilization", 0, True),
    ]


CPUS = st.sampled_from(["100m", "500m", "1", "1500m"])


@given(
    st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3"]), CPUS), max_size=14), st.integers(0, 60), st.integers(0, 40)
)
def test_no_pod_leaves_a_node_that_is_at_its_target(placed: list[tuple[str, str]], low: int, more: int):
    """Before each eviction its node is above the target, and the destinations together have room; no pod
    leaves a destination."""
    nodes = [node(f"n{at}") for at in (1, 2, 3)]
    args = {"thresholds": {"cpu": low}, "targetThresholds": {"cpu": low + more}}
    cpus = {f"p{at}": quantity.milli(cpu) for at, (_, cpu) in enumerate(placed)}
    used = {one.metadata.name: 0 for one in nodes}
    for at, (name, _) in enumerate(placed):
        used[name] += cpus[f"p{at}"]
    below = {name for name, cpu in used.items() if cpu / 4000 * 100 <= low}
    room = sum(int((low + more) * 0.01 * 4000) - used[name] for name in below)

    def answer(one: Eviction) -> EvictionDone:
        nonlocal room
        name, cpu = one.pod.spec.node_name, cpus[one.pod.metadata.name]
        assert name not in below
        assert used[name] > int((low + more) * 0.01 * 4000)
        assert room > 0
        used[name] -= cpu
        room -= cpu
        return EvictionDone(gone=True)

    pods = [asking(f"p{at}", name, cpu) for at, (name, cpu) in enumerate(placed)]
    state = CycleState(nodes=nodes, pods=pods)
    run(policy(LowNodeUtilization, args={LowNodeUtilization.NAME: args}), state, answer=answer)


@pytest.mark.parametrize(
    ("containers", "told", "expected"),
    [
        ([{}], "", "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "", "Burstable"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1000m", "memory": "1"}}], "", "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1"}}], "", "Burstable"),
        ([{"requests": {"x.y/gpu": "1"}}], "", "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "", "BestEffort"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}], "", "Burstable"),
        ([{}], "Guaranteed", "Guaranteed"),
    ],
)
def test_quality_of_service(containers: list[dict], told: str, expected: str):
    listed = [{"name": f"c{at}", "resources": one} for at, one in enumerate(containers)]
    assert ordering.quality_of_service(pod(spec={"containers": listed}, status={"qosClass": told})) == expected


def test_who_goes_first():
    prefers = {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}}
    guaranteed = {"status": {"qosClass": "Guaranteed"}}
    pods = [
        pod("high", spec={"priority": 2}),
        pod("solid", spec={"priority": 1}, **guaranteed),
        pod("shy", spec={"priority": 1}, **prefers),
        pod("low", spec={"priority": 1}),
        pod("none", **guaranteed),
    ]
    found = [one.metadata.name for one in ordering.least_important_first(pods)]
    assert found == ["none", "low", "shy", "solid", "high"]
