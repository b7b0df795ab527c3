"""Which pods a node takes: pressure is asked first, then what preemption cannot help, then the rest."""

import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.admission import counted_as
from podyard.node_agent.core.eviction.admission import refusal
from podyard.node_agent.core.eviction.critical import quality_of_service
from podyard.proto.facts import PodStatusFact
from tests.unit.node_agent.make import Playing, agent, node, pod, signals, view

TOLERATION = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
MEMORY, DISK = "MemoryPressure", "DiskPressure"


@pytest.mark.parametrize(
    ("candidate", "conditions", "told"),
    [
        (pod(), set(), ""),
        (pod(), {MEMORY}, "The node had condition: [MemoryPressure]. "),
        (pod(tolerations=[TOLERATION]), {MEMORY}, ""),
        (pod(requests={"cpu": "1"}), {MEMORY}, ""),
        (pod(requests={"cpu": "1"}), {DISK}, "The node had condition: [DiskPressure]. "),
        (pod(tolerations=[TOLERATION]), {MEMORY, DISK}, "The node had condition: [DiskPressure MemoryPressure]. "),
        (pod(priority=2_000_000_000), {MEMORY, DISK}, ""),
    ],
    ids=["no pressure", "best effort", "tolerates", "burstable", "disk takes none", "both", "critical"],
)
def test_admission(candidate, conditions: set[str], told: str):
    assert refusal(candidate, conditions) == told


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (pod(), "BestEffort"),
        (pod(requests={"cpu": "0"}), "BestEffort"),
        (pod(requests={"cpu": "1"}), "Burstable"),
        (pod(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}), "Guaranteed"),
        (pod(limits={"cpu": "1000m", "memory": "1Gi"}, requests={"cpu": "1"}), "Guaranteed"),
        (pod(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}), "Burstable"),
        (pod(requests={"nvidia.com/gpu": "1"}), "BestEffort"),
    ],
    ids=["nothing", "zero", "request", "all equal", "limits alone", "limit above", "other resource"],
)
def test_quality_of_service(one, expected: str):
    assert quality_of_service(one) == expected


def put(found: list[effects.Effect]) -> list[PodStatusFact]:
    return [one.fact for one in found if isinstance(one, effects.PutPodStatus)]


def bind(playing: Playing, *pods, at: float = 100.0) -> list[effects.Effect]:
    return [effect for one in pods for effect in playing.pod_seen(view(one), at, at)]


def on(*there, **of_node) -> Playing:
    """An agent with one node of 4 CPUs, 8 GiB and 110 pods, unless told, on which these pods run."""
    playing = agent(hard={"memory.available": "100Mi"})
    playing.node_seen(node(**of_node), (), 0.0)
    assert put(bind(playing, *there)) == []
    return playing


GIB = 1024 * 1024 * 1024
ZONE = {"nodeSelector": {"zone": "a"}}
PORT = {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


@pytest.mark.parametrize(
    ("there", "of_node", "new", "reason", "message"),
    [
        (
            [pod("a", requests={"cpu": "3500m"})], {}, pod(requests={"cpu": "600m"}),
            "OutOfcpu", "Node didn't have enough resource: cpu, requested: 600, used: 3500, capacity: 4000",
        ),
        (
            [pod("a", requests={"memory": "6Gi"})], {}, pod(requests={"memory": "3Gi"}),
            "OutOfmemory", (f"Node didn't have enough resource: memory, requested: {3 * GIB}, used: {6 * GIB}, "
            f"capacity: {8 * GIB}"),
        ),
        (
            [pod("a"), pod("b")], {"pods": "2"}, pod(requests={"cpu": "9"}),
            "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
        ),
        (
            [], {}, pod(requests={"ephemeral-storage": "1"}),
            "OutOfephemeral-storage",
            "Node didn't have enough resource: ephemeral-storage, requested: 1, used: 0, capacity: 0",
        ),
        (
            [], {"amounts": {"example.com/disk": "1"}}, pod(requests={"example.com/disk": "2"}),
            "OutOfexample.com/disk",
            "Node didn't have enough resource: example.com/disk, requested: 2, used: 0, capacity: 1",
        ),
        (
            [], {}, pod(spec=ZONE),
            "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            [pod("a", spec=PORT)], {}, pod(spec=PORT),
            "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
        (
            [], {"taints": [{"key": "k", "effect": "NoExecute"}]}, pod(),
            "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
        ),
        (
            [], {}, pod(labels={"kubernetes.io/os": "windows"}, requests={"cpu": "9"}),
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        (
            [], {}, pod(spec={"os": {"name": "windows"}, **ZONE}),
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS",
        ),
        (
            [], {}, pod(priority=2_000_000_000, requests={"cpu": "5"}),
            "UnexpectedAdmissionError",
            ("Unexpected error while attempting to recover from admission failure: preemption: error finding a set "
            "of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]"),
        ),
        (
            [pod("a", requests={"cpu": "4"})], {}, pod(priority=2_000_000_000, requests={"cpu": "1"}, spec=ZONE),
            "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
    ],
    ids=[
        "cpu", "memory", "pods come first", "ephemeral storage", "extended", "affinity comes after room", "ports",
        "taint", "label before room", "system before affinity", "critical, nobody to go", "critical, misfit",
    ],
)  # fmt: skip
def test_a_refused_pod_ends_with_the_kubelets_reason(there, of_node, new, reason: str, message: str):
    found = bind(on(*there, **of_node), new)
    (told,) = [one for one in found if isinstance(one, effects.PodRefused)]
    assert (told.reason, told.message) == (reason, message)
    (fact,) = put(found)
    assert (fact.phase, fact.reason, fact.message, fact.ended) == (
        "Failed",
        reason,
        f"Pod was rejected: {message}",
        True,
    )
    assert fact.conditions == (), "the kubelet says no condition of a pod that it refuses"
    assert fact.refused


@pytest.mark.parametrize(
    ("there", "of_node", "new"),
    [
        ([pod("a", requests={"cpu": "3500m"})], {}, pod(requests={"cpu": "500m"})),
        ([], {}, pod(requests={"example.com/disk": "2"})),
        ([], {"labels": {"zone": "a"}}, pod(spec=ZONE)),
        ([], {"taints": [{"key": "k", "effect": "NoSchedule"}]}, pod()),
        ([], {"taints": [{"key": "k", "effect": "NoExecute"}]}, pod(tolerations=[{"operator": "Exists"}])),
        (
            [], {"taints": [{"key": "k", "effect": "NoExecute"}]},
            pod(annotations={"kubernetes.io/config.source": "file"}),
        ),
        ([], {"labels": {"kubernetes.io/os": "windows"}}, pod(spec={"os": {"name": "windows"}})),
    ],
    ids=["just fits", "not the node's", "affinity", "for scheduling", "tolerated", "static", "of its system"],
)  # fmt: skip
def test_what_the_kubelet_does_not_mind_is_taken(there, of_node, new):
    playing = on(*there, **of_node)
    assert put(bind(playing, new)) == []


def test_pressure_is_asked_before_room():
    playing = on(pod("a", requests={"cpu": "4"}))
    playing.observe(signals(0, at=99.0), 99.0)
    (fact,) = put(bind(playing, pod("late", labels={"kubernetes.io/os": "windows"})))
    assert fact.reason == "Evicted"


def test_a_pod_that_ended_takes_no_room_and_one_that_ends_does():
    ends = pod("a", requests={"cpu": "4"}, annotations={"podyard.io/run-duration": "5s"})
    playing = on(ends)
    playing.tick(101.0)
    assert put(bind(playing, pod("b", requests={"cpu": "1"}), at=105.0))[0].reason == "OutOfcpu"
    playing.tick(106.0)
    assert put(bind(playing, pod("c", requests={"cpu": "1"}), at=107.0)) == []


def test_after_a_restart_those_that_run_are_not_judged_and_count_for_the_others():
    playing = agent()
    runs = PodStatusFact(namespace="default", name="runs", uid="uid-runs", node="n1", phase="Running")
    old = pod("runs", requests={"cpu": "3"}, creationTimestamp="2026-01-02T00:00:00Z")
    new = pod("new", requests={"cpu": "3"}, creationTimestamp="2026-01-01T00:00:00Z")
    found = playing.node_seen(node(), [view(new), view(old, status=runs)], 100.0)
    assert [(one.name, one.reason) for one in put(found)] == [("new", "OutOfcpu")]


def test_a_critical_pod_has_others_go_and_starts_when_they_are_gone():
    """Of the best-effort ones none, since that frees nothing; of the burstable the one that is enough."""
    playing = on(
        pod("idle"),
        pod("small", requests={"cpu": "1"}),
        pod("large", requests={"cpu": "2"}),
        pod("guaranteed", requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}),
    )
    playing.tick(101.0)
    found = bind(playing, pod("critical", requests={"cpu": "2"}, priority=2_000_000_000), at=110.0)
    told = [(one.about.name, one.reason, one.message) for one in found if isinstance(one, effects.Announce)]
    assert told == [
        ("large", "Preempting", "Preempted in order to admit critical pod"),
        ("large", "Killing", "Stopping container main"),
    ]
    assert [one.resource for one in found if isinstance(one, effects.PodPreempted)] == ["cpu"]
    (gone,) = put(playing.tick(112.0))
    assert (gone.name, gone.phase, gone.reason, gone.ended) == ("large", "Failed", "Preempting", True)
    (condition,) = [one for one in gone.conditions if one.type == "DisruptionTarget"]
    assert (condition.reason, condition.message) == (
        "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.",
    )  # fmt: skip
    assert put(playing.tick(112.9)) == []
    assert [(one.name, one.phase) for one in put(playing.tick(113.0))] == [("critical", "Running")]


def test_a_critical_pod_spares_burstable_pods_that_guaranteed_ones_make_needless():
    """The guaranteed one has to go; of two equal burstable ones the later goes for the rest."""
    playing = on(
        pod("first", requests={"cpu": "1"}),
        pod("second", requests={"cpu": "1"}),
        pod("guaranteed", requests={"cpu": "2", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}),
    )
    found = bind(playing, pod("critical", requests={"cpu": "3"}, priority=2_000_000_000))
    assert [one.about.name for one in found if isinstance(one, effects.Announce)] == ["second", "guaranteed"]


def test_a_critical_pod_takes_nobody_of_its_own_importance():
    first = pod("first", requests={"cpu": "4"}, priority=2_000_000_000)
    second = pod("second", requests={"cpu": "1"}, priority=2_000_000_000)
    third = pod("third", requests={"cpu": "1"}, priority=2_000_001_000)
    playing = on(first)
    assert put(bind(playing, second))[0].reason == "UnexpectedAdmissionError"
    assert put(bind(playing, third)) == []
    assert [one.name for one in put(playing.tick(102.0))] == ["first"]


@pytest.mark.parametrize(
    ("reason", "counted"),
    [("OutOfcpu", "OutOfcpu"), ("OutOfpods", "OutOfpods"), ("Evicted", "Evicted"),
     ("OutOfexample.com/disk", "OutOfExtendedResources")],
)  # fmt: skip
def test_refusals_are_counted_by_few_reasons(reason: str, counted: str):
    assert counted_as(reason) == counted
