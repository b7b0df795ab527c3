"""Which pods may be evicted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.descheduler.core import loading, registry
from podyard.descheduler.core.evictor_args import DefaultEvictorArgs
from podyard.descheduler.core.framework import Verdict
from podyard.descheduler.core.node_fit import NodeFit
from podyard.descheduler.core.plugins import default_evictor
from podyard.descheduler.core.plugins.default_evictor import DefaultEvictor
from podyard.descheduler.core.state import CycleState
from podyard.objects.core import Namespace, PersistentVolumeClaim
from podyard.objects.errors import QuantityError
from podyard.objects.pod import Pod
from podyard.objects.policy import PodDisruptionBudget
from tests.unit.descheduler.make import NOW, handle, node, pod

CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
SCRATCH = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "ds-1"}]


def evictor(state: CycleState | None = None, **args: object) -> DefaultEvictor:
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "profiles": [{"name": "p", "pluginConfig": [{"name": "DefaultEvictor", "args": args}]}],
    }
    policy = loading.load(msgspec.json.encode(document).decode(), registry.by_name(), {})
    return DefaultEvictor(policy.profiles[0].plugin_config[0].args, handle(state or CycleState(nodes=(), pods=())))


def reasons(one: Pod, state: CycleState | None = None, **args: object) -> tuple[str, ...]:
    verdict = evictor(state, **args).filter(one)
    assert verdict.allowed is not bool(verdict.reasons)
    return verdict.reasons


@pytest.mark.parametrize(
    ("one", "reason", "lifted_by"),
    [
        (pod(owners=[]), "pod does not have any ownerRefs", {}),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), "pod is a mirror pod", {}),
        (pod(annotations={"kubernetes.io/config.source": "file"}), "pod is a static pod", {}),
        (pod(deletionTimestamp="2027-01-01T00:00:00Z"), "pod is terminating", {}),
        (pod(owners=DAEMON), "daemonset pods are protected against eviction", {"evictDaemonSetPods": True}),
        (
            pod(spec=SCRATCH),
            "pod has local storage and is protected against eviction",
            {"evictLocalStoragePods": True},
        ),
    ],
    ids=["bare", "mirror", "static", "terminating", "daemon set", "local storage"],
)
def test_protections_that_hold_by_default(one: Pod, reason: str, lifted_by: dict):
    assert reasons(one) == (reason,)
    if lifted_by:
        assert reasons(one, **lifted_by) == ()


def test_system_critical_pods_stay_and_with_them_those_above_the_threshold():
    critical, high = pod(spec={"priority": 2_000_000_000}), pod(spec={"priority": 1000})
    assert reasons(critical) == (
        "pod has system critical priority and is protected against eviction",
        "pod has higher priority than specified priority class threshold",
    )
    assert reasons(high) == ()
    assert reasons(high, priorityThreshold={"value": 1000}) == (
        "pod has higher priority than specified priority class threshold",
    )
    assert reasons(pod(spec={"priority": 999}), priorityThreshold={"value": 1000}) == ()
    assert reasons(pod(), priorityThreshold={"value": 1}) == (), "no priority is below every threshold"
    assert reasons(critical, evictSystemCriticalPods=True, priorityThreshold={"value": 1}) == ()


def test_failed_bare_pods_may_go_if_so_set():
    failed = pod(owners=[], phase="Failed")
    assert reasons(failed) == ("pod does not have any ownerRefs",)
    assert reasons(failed, evictFailedBarePods=True) == ()
    assert reasons(pod(owners=[]), evictFailedBarePods=True) == (
        "pod does not have any ownerRefs and is not in failed phase",
    )


def test_pods_with_claims_stay_if_so_set():
    assert reasons(pod(spec=CLAIM)) == ()
    assert reasons(pod(spec=CLAIM), ignorePvcPods=True) == ("pod with PVC is protected against eviction",)


def test_or_only_those_of_some_storage_classes():
    claims = {
        ("default", "data"): msgspec.convert(
            {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}, PersistentVolumeClaim
        )
    }
    state = CycleState(nodes=(), pods=(), claims=claims)

    def protect(name: str) -> dict:
        classes = {"protectedStorageClasses": [{"name": name}]}
        return {"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": {"PodsWithPVC": classes}}}

    assert reasons(pod(spec=CLAIM), state, **protect("fast")) == ('pod using protected storage class "fast"',)
    assert reasons(pod(spec=CLAIM), state, **protect("slow")) == ()
    assert "not found" in reasons(pod(spec=CLAIM), **protect("slow"))[0], "what is unknown protects"


def test_pods_without_a_budget_stay_if_so_set():
    budget = msgspec.convert(
        {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}},
        PodDisruptionBudget,
    )
    state = CycleState(nodes=(), pods=(), budgets=[budget])
    reason = "pod does not have a PodDisruptionBudget and is protected against eviction"
    assert reasons(pod(labels={"app": "a"}), state, ignorePodsWithoutPDB=True) == ()
    assert reasons(pod(labels={"app": "b"}), state, ignorePodsWithoutPDB=True) == (reason,)


def test_pods_with_resource_claims_stay_if_so_set():
    claimed = pod(spec={"resourceClaims": [{"name": "gpu"}]})
    protections = {"podProtections": {"extraEnabled": ["PodsWithResourceClaims"]}}
    assert reasons(claimed) == ()
    assert len(reasons(claimed, **protections)) == 1


def test_the_new_protections_make_the_flags_irrelevant():
    assert reasons(pod(spec=SCRATCH), podProtections={"defaultDisabled": ["PodsWithLocalStorage"]}) == ()
    assert len(reasons(pod(owners=DAEMON), podProtections={"defaultDisabled": ["PodsWithLocalStorage"]})) == 1


def test_only_pods_that_the_selector_takes():
    selector = {"labelSelector": {"matchLabels": {"app": "a"}}}
    assert reasons(pod(labels={"app": "a"}), **selector) == ()
    assert reasons(pod(), **selector) == ("pod labels do not match the labelSelector filter in the policy parameter",)


def test_an_owner_keeps_its_least_replicas():
    two = CycleState(nodes=(), pods=[pod("a"), pod("b")])
    assert reasons(pod("a"), two, minReplicas=2) == ()
    assert reasons(pod("a"), two, minReplicas=3) == ("owner has 2 replicas which is less than minReplicas of 3",)
    several = pod("a", owners=[*DAEMON, {"kind": "ReplicaSet", "name": "x", "uid": "x"}])
    assert reasons(several, two, minReplicas=3, evictDaemonSetPods=True) == (), "several owners are not checked"


def test_young_pods_stay():
    reason = "pod age is not older than MinPodAge: &Duration{Duration:1m0s,} seconds"
    old = pod(status={"startTime": "2027-01-15T07:59:00Z"})
    young = pod(status={"startTime": "2027-01-15T07:59:01Z"})
    assert NOW == 1_800_000_000.0  # 2027-01-15T08:00:00Z
    assert reasons(old, minPodAge="1m") == ()
    assert reasons(young, minPodAge="1m") == (reason,)
    assert len(reasons(pod(), minPodAge="0s")) == 1, "a pod that has not started has no age"


@pytest.mark.parametrize("written", ["garbage", "2027-01-15T25:00:00Z", "9223372036854775807"])
def test_a_pod_of_which_nobody_can_say_when_it_started_stays(written: str):
    (reason,) = reasons(pod(status={"startTime": written}), minPodAge="1m")
    assert reason.endswith(f" seconds: its start time {written!r} is no time")


def test_all_reasons_are_told_not_the_first():
    assert len(reasons(pod(owners=[], spec=SCRATCH, deletionTimestamp="2027-01-01T00:00:00Z"))) == 3


def test_the_evict_annotation_opens_every_door():
    marked = pod(owners=[], spec=SCRATCH, annotations={"descheduler.alpha.kubernetes.io/evict": "false"})
    assert evictor().filter(marked) == Verdict(True)


def test_the_no_eviction_annotation_closes_it_if_it_is_mandatory():
    marked = pod(annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""})
    assert evictor(noEvictionPolicy="Mandatory").filter(marked) == Verdict(False)
    assert evictor(noEvictionPolicy="Preferred").filter(marked).allowed


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        (node("n2"), True),
        (node("n2", ready="False"), False),
        (node("n2", unschedulable=True), False),
        (node("n2", "a=b:NoSchedule"), False),
        (node("n2", "a=b:NoExecute"), False),
        (node("n2", "a=b:PreferNoSchedule"), True),
    ],
    ids=["free", "not ready", "cordoned", "NoSchedule", "NoExecute", "PreferNoSchedule"],
)
def test_node_fit_wants_another_node(other, fits: bool):
    state = CycleState(nodes=[node("n1"), other], pods=[pod()])
    verdict = evictor(state, nodeFit=True).pre_eviction_filter(pod())
    assert verdict == (Verdict(True) if fits else Verdict(False, (default_evictor.REASON_NO_FIT,)))


def test_node_fit_counts_what_the_pods_there_request():
    def asking(name: str, cpu: str, on: str) -> Pod:
        return pod(name, on, spec={"containers": [{"name": "m", "resources": {"requests": {"cpu": cpu}}}]})

    one = asking("one", "1500m", "n1")
    for taken, fits in (("2500m", True), ("2501m", False)):
        state = CycleState(nodes=[node("n1"), node("n2")], pods=[one, asking("other", taken, "n2")])
        assert evictor(state, nodeFit=True).pre_eviction_filter(one).allowed is fits


def test_node_fit_respects_node_affinity_and_own_anti_affinity():
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
            ]
        }
    }
    one = pod("one", spec={"affinity": apart})
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[one, pod("other", "n2", labels={"app": "a"})])
    assert not evictor(state, nodeFit=True).pre_eviction_filter(one).allowed
    pinned = pod("pinned", spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    assert not evictor(state, nodeFit=True).pre_eviction_filter(pinned).allowed


def test_a_pod_whose_own_anti_affinity_makes_no_sense_fits_nowhere():
    """The reference takes the fault for a misfit of every node."""
    term = {"topologyKey": "rack", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[])
    assert not evictor(state, nodeFit=True).pre_eviction_filter(pod(spec={"affinity": apart})).allowed


def test_node_fit_goes_by_the_spec_however_far_a_resize_is():
    resources = {"requests": {"cpu": "3"}}
    container = {"name": "m", "resources": resources}
    told = {"containerStatuses": [{"name": "m", "resources": {"requests": {"cpu": "4"}}}]}
    one = pod("one", spec={"containers": [container]}, status=told)
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[one, pod("other", "n2", spec={"containers": [
        {"name": "m", "resources": {"requests": {"cpu": "1"}}}]})])  # fmt: skip
    assert evictor(state, nodeFit=True).pre_eviction_filter(one).allowed


def test_node_fit_knows_the_room_that_evictions_have_made():
    def asking(name: str, on: str) -> Pod:
        return pod(name, on, spec={"containers": [{"name": "m", "resources": {"requests": {"cpu": "3"}}}]})

    one, other = asking("one", "n1"), asking("other", "n2")
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[one, other])
    judge = evictor(state, nodeFit=True)
    assert not judge.pre_eviction_filter(one).allowed
    state.evicted(other, NOW, gone=False)
    assert not judge.pre_eviction_filter(one).allowed, "on its way out it still takes room"
    state.evicted(other, NOW, gone=True)
    assert judge.pre_eviction_filter(one).allowed


def test_a_node_with_a_pod_whose_requests_make_no_sense_never_has_room():
    """Asked a second time, too: the sum that broke off is not taken for what the pods there request."""
    garbled = pod("a", "n2", spec={"containers": [{"name": "m", "resources": {"requests": {"cpu": "lots"}}}]})
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[pod("web"), garbled])
    judge = evictor(state, nodeFit=True)
    for _ in range(2):
        with pytest.raises(QuantityError):
            judge.pre_eviction_filter(state.pods["default", "web"])


PLACED = st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(["1", "2", "3"])), max_size=9)


@given(PLACED, st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 8)), max_size=20))
def test_what_was_searched_before_changes_no_answer(placed: list[tuple[str, str]], story: list[tuple[int, bool, int]]):
    """Pods are asked about and go, in any order: each answer is that of a search from scratch. Every third
    has an anti-affinity against all others."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def asking(at: int, on: str, cpu: str) -> Pod:
        container = {"name": "m", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], **({} if at % 3 else {"affinity": apart})}
        return pod(f"p{at}", on, labels={"app": "web" if at % 2 else "db"}, spec=spec)

    pods = [asking(at, on, cpu) for at, (on, cpu) in enumerate(placed)]
    nodes = [node("n1"), node("n2"), node("n3")]
    state = CycleState(nodes=nodes, pods=pods)
    again = NodeFit(nodes, state)
    for asked, goes, gone in story:
        for one in pods[asked : asked + 2]:
            assert again.elsewhere(one) is NodeFit(nodes, state).elsewhere(one)
            assert again.somewhere(one) is NodeFit(nodes, state).somewhere(one)
        for one in pods[gone : gone + 1]:
            state.evicted(one, NOW, gone=goes)


def test_a_node_selector_that_makes_no_sense_is_told_when_it_is_asked():
    judge = evictor(CycleState(nodes=[node("n1"), node("n2")], pods=[]), nodeFit=True, nodeSelector="a in (b")
    for _ in range(2):
        with pytest.raises(ValueError, match="unable to parse requirement"):
            judge.pre_eviction_filter(pod())


def test_a_budget_whose_selector_makes_no_sense_covers_nobody():
    senseless = {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    budgets = [
        msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, PodDisruptionBudget)
        for name, spec in (("bad", senseless), ("good", {"selector": {"matchLabels": {"app": "web"}}}))
    ]
    state = CycleState(nodes=(), pods=(), budgets=budgets)
    assert reasons(pod(labels={"app": "web"}), state, ignorePodsWithoutPDB=True) == ()
    assert reasons(pod(), state, ignorePodsWithoutPDB=True) == (
        "pod does not have a PodDisruptionBudget and is protected against eviction",
    )


def test_only_namespaces_that_the_selector_takes():
    namespace = msgspec.convert({"metadata": {"name": "default", "labels": {"env": "dev"}}}, Namespace)
    state = CycleState(nodes=(), pods=(), namespaces={"default": namespace})
    dev = {"namespaceLabelSelector": {"matchLabels": {"env": "dev"}}}
    assert evictor(state, **dev).pre_eviction_filter(pod()).allowed
    assert evictor(state, **dev).pre_eviction_filter(pod(namespace="other")).reasons == (
        default_evictor.REASON_NAMESPACE,
    )
    assert evictor(state).pre_eviction_filter(pod(namespace="other")).allowed


def test_faults_are_told_all_at_once():
    args = msgspec.convert(
        {"priorityThreshold": {"value": 1, "name": "x"}, "noEvictionPolicy": "Never",
         "podProtections": {"extraEnabled": ["A"], "defaultDisabled": ["B", "B"]}, "evictDaemonSetPods": True},
        DefaultEvictorArgs,
    )  # fmt: skip
    assert len(DefaultEvictor.faults(args)) == 7
