"""What holds whatever the policy and the cluster: limits, protections, and one eviction a pod."""

from collections import Counter
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from podyard.descheduler.core import building, registry
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.state import CycleState
from podyard.objects import times
from podyard.objects.pod import Pod
from tests.unit.descheduler.make import NOW, node, pod, policy, run

ARGS: Final[dict[str, dict[str, Any]]] = {
    "HighNodeUtilization": {"thresholds": {"cpu": 40}},
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 40}},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 100},
    "RemoveDuplicates": {},
    "RemoveFailedPods": {"minPodLifetimeSeconds": 0},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 3},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": [
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ]
    },
    "RemovePodsViolatingNodeTaints": {},
    "RemovePodsViolatingTopologySpreadConstraint": {},
}
PLUGINS: Final = [plugin for plugin in registry.PLUGINS if plugin.NAME in ARGS]

APART: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
IN_ZONE: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
SPREAD: Final = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **APART}
SPECS: Final[list[dict[str, Any]]] = [
    {},
    {"priority": 2_000_000_000},
    {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    {"tolerations": [{"operator": "Exists"}]},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}},
    {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_ZONE]}}
        }
    },
    {"topologySpreadConstraints": [SPREAD]},
]
PODS: Final = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(SPECS),
        st.sampled_from(["100m", "1"]),
        st.sampled_from(["Running", "Running", "Failed", "Succeeded"]),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=12,
)
LIMIT: Final = st.none() | st.integers(0, 3)


def made(at: int, drawn: tuple[str, dict[str, Any], str, str, int, bool]) -> Pod:
    on, spec, cpu, phase, restarts, old = drawn
    return pod(
        f"p{at}",
        on,
        phase=phase,
        labels={"app": "web"},
        namespace="default" if at % 3 else "prod",
        creationTimestamp=times.rfc3339(NOW - (200 if old else 50)),
        status={"containerStatuses": [{"name": "c", "restartCount": restarts}]},
        spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec},
    )


@given(PODS, LIMIT, LIMIT, LIMIT, st.booleans(), st.booleans(), st.sets(st.integers(0, 11)))
def test_limits_and_protections_hold_and_no_pod_goes_twice(
    drawn: list[Any],
    per_node: int | None,
    per_namespace: int | None,
    total: int | None,
    node_fit: bool,
    gone: bool,
    denied: set[int],
) -> None:
    nodes = [
        node("n1", "a=b:NoSchedule", labels={"zone": "a"}),
        node("n2", labels={"zone": "a"}),
        node("n3", labels={"zone": "b"}),
    ]
    state = CycleState(nodes=nodes, pods=[made(at, one) for at, one in enumerate(drawn)])
    limits = {
        "maxNoOfPodsToEvictPerNode": per_node,
        "maxNoOfPodsToEvictPerNamespace": per_namespace,
        "maxNoOfPodsToEvictTotal": total,
    }
    chosen = policy(
        *PLUGINS,
        args=ARGS,
        evictor={"nodeFit": node_fit},
        **{name: most for name, most in limits.items() if most is not None},
    )
    (judge,) = building.build(chosen, registry.by_name(), state, NOW)
    evicted: list[Pod] = []

    def answer(one: Eviction) -> EvictionResult:
        now = state.pods[one.pod.key]
        assert judge.evictor.filter(now).allowed, "the evictor refuses it as it is now"
        if node_fit:
            assert judge.evictor.pre_eviction_filter(now).allowed, "no node takes it as they are now"
        if int(now.metadata.name[1:]) in denied:
            return EvictionFailed("no")
        evicted.append(one.pod)
        return EvictionDone(gone=gone)

    record, _ = run(chosen, state, answer=answer)
    assert [step.error for step in record.steps] == [""] * len(PLUGINS)
    assert len({one.key for one in evicted}) == len(evicted) == record.evicted
    for most, counts in (
        (per_node, Counter(one.spec.node_name for one in evicted)),
        (per_namespace, Counter(one.metadata.namespace for one in evicted)),
        (total, Counter("all" for _ in evicted)),
    ):
        assert most is None or max(counts.values(), default=0) <= most
