"""Plugins that look at where pods are to each other: RemoveDuplicates,
RemovePodsViolatingInterPodAntiAffinity, RemovePodsViolatingTopologySpreadConstraint."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.descheduler.core.evictions import EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.labelled import Labelled
from podyard.descheduler.core.plugins import default_evictor, topology_spread
from podyard.descheduler.core.plugins.duplicates import RemoveDuplicates
from podyard.descheduler.core.plugins.inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from podyard.descheduler.core.plugins.topology_spread import RemovePodsViolatingTopologySpreadConstraint
from podyard.descheduler.core.state import CycleState
from podyard.objects import selectors
from podyard.objects.meta import LabelSelector
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from tests.support.objects import typed_node
from tests.unit.descheduler.make import OWNER, node, pod, policy, run

ANTI_AFFINITY = RemovePodsViolatingInterPodAntiAffinity
SPREAD = RemovePodsViolatingTopologySpreadConstraint
THREE_NODES = (node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}), node("n3", labels={"zone": "b"}))


def evicted(
    plugin: type[Plugin], pods: Sequence[Pod], nodes: Sequence[Node] = THREE_NODES, top: dict | None = None, **args: Any
) -> list[str]:
    chosen = policy(plugin, args={plugin.NAME: args}, **(top or {}))
    record, _ = run(chosen, CycleState(nodes=nodes, pods=pods))
    assert [step.error for step in record.steps] == [""]
    return [one.name for step in record.steps for one in step.evicted]


def owned(name: str, at: str, *, image: str = "web", owners: list[dict] | None = None, **more: Any) -> Pod:
    spec = {"containers": [{"name": "c", "image": image}], **more}
    return pod(name, at, spec=spec, owners=OWNER if owners is None else owners)


def test_a_node_keeps_its_share_of_duplicates():
    pods = [owned(f"w{at}", "n1") for at in range(5)]
    assert len(evicted(RemoveDuplicates, pods)) == 3, "of five pods on three nodes two may stay"
    assert len(evicted(RemoveDuplicates, pods, THREE_NODES[:2])) == 2


def test_pods_of_other_images_or_owners_are_no_duplicates():
    job = [{"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "job-1"}]
    pods = [owned("a", "n1"), owned("b", "n1", image="other"), owned("c", "n1", owners=job)]
    assert evicted(RemoveDuplicates, pods) == []
    assert evicted(RemoveDuplicates, [*pods, owned("d", "n1")], excludeOwnerKinds=["ReplicaSet"]) == []
    assert evicted(RemoveDuplicates, [*pods, owned("d", "n1")]) == ["d"]


def test_duplicates_that_fit_on_one_node_only_stay():
    pods = [owned(f"w{at}", "n1", nodeSelector={"zone": "a"}) for at in range(3)]
    assert evicted(RemoveDuplicates, pods) == []


def test_nodes_that_only_a_pod_without_a_choice_could_use_take_no_share():
    first, pinned = owned("first", "n1"), owned("pinned", "n1", nodeSelector={"zone": "a"})
    free = owned("zoned", "n1", nodeSelector={"zone": "b"})
    assert evicted(RemoveDuplicates, [first, pinned, free]) == ["zoned"], "three pods, of which two nodes take two"


def test_a_node_at_its_limit_does_not_keep_duplicates_of_others():
    pods = [owned(f"{at}-{count}", at) for at in ("n1", "n2") for count in range(4)]
    assert evicted(RemoveDuplicates, pods, top={"maxNoOfPodsToEvictPerNode": 1}) == ["n1-3", "n2-3"]


def repelling(name: str, at: str, key: str = "kubernetes.io/hostname", *, term: dict | None = None, **more: Any) -> Pod:
    one = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}, **(term or {})}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
    spec = {"affinity": {"podAntiAffinity": required}, **more.pop("spec", {})}
    return pod(name, at, labels={"app": "web"}, spec=spec, **more)


def test_the_pod_that_repels_goes_and_the_other_stays():
    pods = [
        repelling("rude", "n1"),
        pod("calm", "n1", labels={"app": "web"}),
        pod("alone", "n2", labels={"app": "web"}),
    ]
    assert evicted(ANTI_AFFINITY, pods) == ["rude"]


def test_whoever_has_gone_is_in_nobodys_way():
    pods = [repelling("a", "n1"), repelling("b", "n1"), repelling("c", "n1")]
    assert len(evicted(ANTI_AFFINITY, pods)) == 2


def test_a_refused_pod_stays_in_the_way():
    pods = [repelling("a", "n1"), repelling("b", "n1")]
    state = CycleState(nodes=THREE_NODES, pods=pods)
    record, asked = run(
        policy(ANTI_AFFINITY),
        state,
        answer=lambda one: EvictionFailed("no") if one.pod.metadata.name == "a" else EvictionDone(),
    )
    assert [one.pod.metadata.name for one in asked] == ["a", "b"]
    assert record.evicted == 1
    assert asked[0].reason == "its anti-affinity keeps b away"


def test_the_least_important_pod_goes_first():
    pods = [repelling("high", "n1", spec={"priority": 9}), repelling("low", "n1", spec={"priority": 1})]
    assert evicted(ANTI_AFFINITY, pods) == ["low"]


def test_domains_count_and_on_the_same_node_no_label_is_needed():
    pods = [repelling("a", "n2", "zone"), pod("b", "n3", labels={"app": "web"})]
    assert evicted(ANTI_AFFINITY, pods) == ["a"]
    assert evicted(ANTI_AFFINITY, [repelling("a", "n1", "zone"), pods[1]]) == []
    unlabelled = [repelling("a", "n1", "rack"), pod("b", "n1", labels={"app": "web"}), repelling("c", "n2", "rack")]
    assert evicted(ANTI_AFFINITY, unlabelled) == ["a"]


def test_pods_of_the_same_name_never_conflict():
    pods = [
        repelling("a", "n1", term={"namespaces": ["prod"]}),
        pod("a", "n1", namespace="prod", labels={"app": "web"}),
    ]
    assert evicted(ANTI_AFFINITY, pods) == []
    pods[1] = pod("b", "n1", namespace="prod", labels={"app": "web"})
    assert evicted(ANTI_AFFINITY, pods) == ["a"]
    assert evicted(ANTI_AFFINITY, pods, namespaces={"exclude": ["prod"]}) == [], "not looked at on either side"


def test_a_term_that_makes_no_sense_moves_nobody():
    senseless = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}}
    assert evicted(ANTI_AFFINITY, [repelling("a", "n1", term=senseless), repelling("b", "n1", term=senseless)]) == []


def spread(name: str, at: str, *, app: str = "web", constraint: dict | None = None, **more: Any) -> Pod:
    one = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **(constraint or {}),
    }
    spec = {"topologySpreadConstraints": [one], **more.pop("spec", {})}
    return pod(name, at, labels={"app": app, **more.pop("labels", {})}, spec=spec, **more)


def test_pods_leave_the_large_domain_until_it_is_within_the_skew():
    pods = [spread(f"p{at}", "n1") for at in range(5)]
    assert len(evicted(SPREAD, pods)) == 2, "5 and 0 become 3 and 2"
    assert len(evicted(SPREAD, [spread(f"p{at}", "n1", constraint={"maxSkew": 3}) for at in range(5)])) == 1
    assert evicted(SPREAD, pods[:1]) == []


def test_the_most_important_pods_without_a_choice_of_nodes_go_first():
    """The reference's comment says otherwise; its code evicts from the back."""
    chooses = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    pods = [
        spread("chooses", "n1", spec={"affinity": chooses, "priority": 9}),
        spread("none", "n1"),
        spread("low", "n1", spec={"priority": 1}),
        spread("high", "n1", spec={"priority": 5}),
    ]
    assert sorted(evicted(SPREAD, pods, topologyBalanceNodeFit=False)) == ["high", "low"]


def test_pods_that_no_smaller_domain_would_take_stay_unless_that_is_not_asked():
    nodes = [THREE_NODES[0], node("n2", labels={"zone": "b"}, unschedulable=True)]
    pods = [spread(f"p{at}", "n1") for at in range(4)]
    assert evicted(SPREAD, pods, nodes) == []
    assert len(evicted(SPREAD, pods, nodes, topologyBalanceNodeFit=False)) == 2


def test_pods_that_fit_into_the_smaller_domain_go_before_more_important_ones():
    nodes = [THREE_NODES[0], typed_node("n2", cpu="1", labels={"zone": "b"})]
    large = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}], "priority": 9}
    pods = [spread(f"small{at}", "n1") for at in range(2)] + [spread(f"big{at}", "n1", spec=large) for at in range(2)]
    assert sorted(evicted(SPREAD, pods, nodes)) == ["small0", "small1"]


def test_soft_constraints_are_looked_at_if_named():
    pods = [spread(f"p{at}", "n1", constraint={"whenUnsatisfiable": "ScheduleAnyway"}) for at in range(4)]
    assert evicted(SPREAD, pods) == []
    assert len(evicted(SPREAD, pods, constraints=["ScheduleAnyway"])) == 2


def test_labels_that_must_match_divide_the_pods():
    keyed = {"matchLabelKeys": ["rev"]}
    pods = [spread(f"p{at}", "n1", constraint=keyed, labels={"rev": str(at)}) for at in range(4)]
    assert evicted(SPREAD, pods) == []


def test_nodes_that_the_constraint_does_not_count_have_no_domain():
    tainted = [THREE_NODES[0], node("n2", "a=b:NoSchedule", labels={"zone": "b"})]
    pods = [spread(f"p{at}", "n1", constraint={"nodeTaintsPolicy": "Honor"}) for at in range(4)]
    assert evicted(SPREAD, pods, tainted, topologyBalanceNodeFit=False) == []
    pods = [spread(f"p{at}", "n1") for at in range(4)]
    assert len(evicted(SPREAD, pods, tainted, topologyBalanceNodeFit=False)) == 2


def test_an_affinity_that_makes_no_sense_is_fulfilled_by_no_node():
    """So no node has a domain but by its pods, which all are in one."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    senseless = {"affinity": {"nodeAffinity": required}}
    pods = [spread(f"p{at}", "n1", spec=senseless) for at in range(4)]
    assert evicted(SPREAD, pods, topologyBalanceNodeFit=False) == []


def test_pods_that_are_on_their_way_out_do_not_count():
    """Whatever their annotations say: the filters let these through."""
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": {default_evictor.EVICT_ANNOTATION: ""}}
    pods = [spread(f"p{at}", "n1", **(leaving if at else {})) for at in range(5)]
    assert evicted(SPREAD, pods) == []


@given(st.lists(st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "db", "rev": "1"}]), max_size=9))
def test_pods_that_are_found_by_their_labels_are_those_that_the_selector_takes(labels: list[dict[str, str]]):
    pods = [pod(f"p{at}", labels=one) for at, one in enumerate(labels)]
    counted = Labelled(pods)
    for selector in (
        {},
        {"matchLabels": {"app": "web"}},
        {"matchLabels": {"app": "db", "rev": "1"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web", "db"]}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
        {"matchLabels": {"app": "db"}, "matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]},
    ):
        compiled = selectors.compile_labels(msgspec.convert(selector, LabelSelector))
        assert list(counted.matching(compiled)) == [one for one in pods if compiled.matches(one.metadata.labels)]


def test_nodes_are_looked_at_once_for_all_constraints_that_count_the_same(monkeypatch: pytest.MonkeyPatch):
    """Else each constraint of each workload would look at each node."""
    looked: list[str] = []
    counts = topology_spread._Constraint.counts
    monkeypatch.setattr(
        topology_spread._Constraint, "counts", lambda self, one: looked.append(one.metadata.name) or counts(self, one)
    )
    other = {"labelSelector": {"matchLabels": {"app": "db"}}}
    pods = [spread(f"p{at}", "n1") for at in range(4)]
    pods += [spread(f"q{at}", "n1", app="db", constraint=other) for at in range(4)]
    assert len(evicted(SPREAD, pods)) == 4
    assert looked == ["n1", "n2", "n3"]


def test_where_pods_of_one_workload_fit_says_nothing_of_a_workload_that_goes_elsewhere():
    """No pod can go to n2; that was found out first, and keeps nobody from n1."""
    nodes = [THREE_NODES[0], node("n2", labels={"zone": "b"}, unschedulable=True)]
    other = {"labelSelector": {"matchLabels": {"app": "db"}}}
    pods = [spread(f"to-n2-{at}", "n1") for at in range(4)]
    pods += [spread(f"to-n1-{at}", "n2", app="db", constraint=other) for at in range(4)]
    assert sorted(evicted(SPREAD, pods, nodes)) == ["to-n1-2", "to-n1-3"]


def test_what_is_found_out_of_the_same_nodes_is_kept_while_it_is_asked_for():
    """Host names make as many sets of nodes as there are workloads: to keep them all takes too much room."""
    many = [node(f"n{at}", labels={"zone": str(at)}) for at in range(topology_spread.KEPT_FITS + 2)]
    asked = topology_spread._Nodes(many, CycleState(nodes=many, pods=[]))
    (constraint,) = spread("p", "n1").spec.topology_spread_constraints
    compiled = topology_spread._compiled(constraint, pod())
    assert compiled.topology_key == "zone"
    first, second = asked.fit(compiled, frozenset("0")), asked.fit(compiled, frozenset("1"))
    for one in range(2, len(many)):
        asked.fit(compiled, frozenset([str(one)]))
        assert asked.fit(compiled, frozenset("0")) is first
    assert asked.fit(compiled, frozenset("1")) is not second, "it has not been asked for since"


def test_a_selector_that_makes_no_sense_spreads_nobody():
    senseless = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}}
    assert evicted(SPREAD, [spread(f"p{at}", "n1", constraint=senseless) for at in range(4)]) == []


def test_nodes_at_their_limit_are_not_asked_again():
    pods = [spread(f"p{at}", "n1") for at in range(9)]
    chosen = policy(SPREAD, maxNoOfPodsToEvictPerNode=1)
    record, _ = run(chosen, CycleState(nodes=THREE_NODES, pods=pods))
    assert [one.problem for one in record.steps[0].attempts] == [
        "",
        "maximum number of evicted pods per node reached",
    ]


SIZES = st.lists(st.integers(0, 12), min_size=2, max_size=6)


@given(SIZES, st.integers(1, 3))
def test_spreading_narrows_and_never_overshoots(sizes: list[int], skew: int):
    """Somebody goes if, and only if, the skew is exceeded. No domain gives more than brings it to the
    average, rounded down; whoever places the evicted into the smallest domains has a smaller skew than
    before. It may still be more than allowed, as in the reference: 0, 6 and 7 with a skew of 3."""
    nodes = [node(f"n{at}", labels={"zone": f"z{at}"}) for at in range(len(sizes))]
    pods = [
        spread(f"p{at}-{count}", f"n{at}", constraint={"maxSkew": skew})
        for at, size in enumerate(sizes)
        for count in range(size)
    ]
    gone = Counter(name[1:].partition("-")[0] for name in evicted(SPREAD, pods, nodes, topologyBalanceNodeFit=False))
    before = max(sizes) - min(sizes)
    assert (gone.total() > 0) is (before > skew)
    left = [size - gone[str(at)] for at, size in enumerate(sizes)]
    assert all(count >= int(sum(sizes) / len(sizes)) for at, count in enumerate(left) if gone[str(at)])
    for _ in range(gone.total()):
        left[left.index(min(left))] += 1
    assert max(left) - min(left) < before or not gone


@given(SIZES)
def test_no_node_has_fewer_duplicates_than_its_share_after_giving_some(sizes: list[int]):
    nodes = [node(f"n{at}") for at in range(len(sizes))]
    pods = [owned(f"p{at}-{count}", f"n{at}") for at, size in enumerate(sizes) for count in range(size)]
    gone = Counter(name[1:].partition("-")[0] for name in evicted(RemoveDuplicates, pods, nodes))
    share = -(-sum(sizes) // len(sizes))
    assert [size - gone[str(at)] for at, size in enumerate(sizes)] == [min(size, share) for size in sizes]


@given(
    st.lists(
        st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(["zone", "kubernetes.io/hostname"])), max_size=9
    )
)
def test_nobody_is_left_beside_a_pod_that_it_repels(placed: list[tuple[str, str]]):
    pods = [repelling(f"p{at}", name, key) for at, (name, key) in enumerate(placed)]
    gone = evicted(ANTI_AFFINITY, pods)
    assert evicted(ANTI_AFFINITY, [one for one in pods if one.metadata.name not in gone]) == []
    assert len(gone) < max(len(pods), 1)
