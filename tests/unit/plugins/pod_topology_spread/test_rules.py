"""Rules that are easy to miss, one small cluster each: nodes n0 to n2 in zones z0 to z2, two matching pods on
n0."""

from typing import Any

import pytest

from podyard.framework.cycle_state import CycleState
from podyard.plugins.pod_topology_spread.args import Args
from podyard.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.unit.plugins.pod_topology_spread.clusters import HARD, SOFT, Cluster, make_node, make_pod, placed
from tests.unit.plugins.pod_topology_spread.plain import HOST, ZONE

WEB = {"matchLabels": {"app": "web"}}


def cluster_of(**more_labels: dict[str, str]) -> Cluster:
    """The cluster, with more labels for nodes by name."""
    cluster = Cluster()
    for number in range(3):
        name = f"n{number}"
        cluster.table.set_node(make_node(name, labels={ZONE: f"z{number}", HOST: name} | more_labels.get(name, {})))
    for number in range(2):
        cluster.table.place(placed(number, "n0", "one", {"app": "web", "rev": "1"}, False))
    return cluster


def rejected(cluster: Cluster, constraint: dict[str, Any], **spec: Any) -> list[str]:
    """Nodes that do not take a pod with one hard constraint: skew 2 over zones, pods of web, unless it says
    otherwise."""
    plugin, state = PodTopologySpread(Args()), CycleState()
    whole = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": HARD, "labelSelector": WEB} | constraint
    pod = make_pod("new", labels={"app": "web", "rev": "2"}, spec={"topologySpreadConstraints": [whole]} | spec)
    assert plugin.pre_filter(state, pod, cluster.snapshot).status.ok
    rows = cluster.table.rows()
    codes = plugin.filter(state, pod, cluster.snapshot, rows).tolist()
    return sorted(cluster.table.names[row] for row, code in zip(rows.tolist(), codes, strict=True) if code)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param({}, ["n0"], id="two pods and the new one are three more than none"),
        pytest.param({"maxSkew": 3}, [], id="a greater skew is allowed"),
        pytest.param(
            {"labelSelector": {}, "maxSkew": 1}, [], id="an empty selector counts no placed pod, but the pod itself"
        ),
        pytest.param({"labelSelector": None, "maxSkew": 1}, [], id="no selector counts nothing"),
        pytest.param({"labelSelector": {"matchLabels": {"rev": "1"}}}, [], id="the pod does not count itself"),
        pytest.param({"labelSelector": {"matchLabels": {"rev": "1"}}, "maxSkew": 1}, ["n0"], id="though others count"),
        pytest.param({"matchLabelKeys": ["rev"], "maxSkew": 1}, [], id="matchLabelKeys narrow it, not merged"),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "web", "rev": "2"}}, "matchLabelKeys": ["rev"], "maxSkew": 1},
            [],
            id="matchLabelKeys, merged",
        ),
        pytest.param(
            {"labelSelector": None, "matchLabelKeys": ["rev"], "maxSkew": 1}, [], id="matchLabelKeys of no selector"
        ),
        pytest.param({"matchLabelKeys": ["other"]}, ["n0"], id="matchLabelKeys that the pod lacks"),
    ],
)
def test_who_counts(constraint: dict[str, Any], expected: list[str]) -> None:
    assert rejected(cluster_of(), constraint) == expected


def test_fewer_domains_than_demanded_make_the_lowest_count_zero() -> None:
    cluster = cluster_of()
    for node in ("n1", "n2"):
        for number in range(2):
            cluster.table.place(placed(int(node[1]) * 4 + number, node, "one", {"app": "web"}, False))
    assert rejected(cluster, {"minDomains": 3}) == []
    assert rejected(cluster, {"minDomains": 4}) == ["n0", "n1", "n2"]


def test_nodes_that_the_pod_cannot_use_do_not_count_unless_the_policy_says_so() -> None:
    cluster = cluster_of(n0={"disk": "ssd"})
    chosen = {"nodeSelector": {"disk": "ssd"}}
    assert rejected(cluster, {}) == ["n0"]
    assert rejected(cluster, {}, **chosen) == [], "the domain of n0 is the only one, so it is the lowest"
    assert rejected(cluster, {"nodeAffinityPolicy": "Honor"}, **chosen) == []
    assert rejected(cluster, {"nodeAffinityPolicy": "Ignore"}, **chosen) == ["n0"]


def test_taints_count_only_if_the_policy_says_so() -> None:
    cluster = cluster_of()
    for name in ("n1", "n2"):
        taint = {"key": "t", "effect": "NoSchedule"}
        cluster.table.set_node(make_node(name, labels={ZONE: f"z{name[1]}", HOST: name}, taints=[taint]))
    tolerant = {"tolerations": [{"key": "t", "operator": "Exists"}]}
    assert rejected(cluster, {}) == ["n0"]
    assert rejected(cluster, {"nodeTaintsPolicy": "Honor"}) == []
    assert rejected(cluster, {"nodeTaintsPolicy": "Honor"}, **tolerant) == ["n0"]


def test_a_node_without_the_label_of_any_constraint_counts_for_none() -> None:
    cluster = cluster_of(n0={"rack": "a"})
    both = [
        {"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": HARD, "labelSelector": WEB} for key in (ZONE, "rack")
    ]
    assert rejected(cluster, {}, topologySpreadConstraints=both) == ["n1", "n2"], "n0 is the only domain of both"


def test_scores_count_hosts_by_node_though_labels_are_the_same() -> None:
    cluster = cluster_of(n1={HOST: "n0"})
    spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": SOFT, "labelSelector": WEB}
    plugin, state, rows = PodTopologySpread(Args()), CycleState(), cluster.table.rows()
    pod = make_pod("new", labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
    assert plugin.pre_score(state, pod, cluster.snapshot, rows).ok
    found = zip(rows.tolist(), plugin.score(state, pod, cluster.snapshot, rows).tolist(), strict=True)
    assert {cluster.table.names[row]: score for row, score in found} == {"n0": 3, "n1": 0, "n2": 0}, (
        "2 pods, weight log 5"
    )


def test_removing_a_terminating_victim_lowers_a_count_that_never_had_it() -> None:
    cluster = cluster_of()
    ending = placed(5, "n0", "one", {"app": "web"}, True)
    cluster.table.place(ending)
    plugin, state, row = PodTopologySpread(Args()), CycleState(), cluster.table.row_of["n0"]
    spread = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": HARD, "labelSelector": WEB}
    pod = make_pod("new", labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
    assert plugin.pre_filter(state, pod, cluster.snapshot).status.ok
    assert plugin.filter_one(state, pod, cluster.snapshot, row) != 0
    trial = state.clone()
    assert plugin.remove_pod(trial, pod, ending, row, cluster.snapshot).ok
    assert plugin.filter_one(trial, pod, cluster.snapshot, row) == 0
    assert plugin.add_pod(trial, pod, ending, row, cluster.snapshot).ok
    assert plugin.filter_one(trial, pod, cluster.snapshot, row) != 0


def test_an_empty_selector_counts_pods_of_trials() -> None:
    cluster = cluster_of()
    plugin, state = PodTopologySpread(Args()), CycleState()
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": HARD, "labelSelector": {}}
    pod = make_pod("new", spec={"topologySpreadConstraints": [spread]})
    row = cluster.table.row_of["n1"]
    assert plugin.pre_filter(state, pod, cluster.snapshot).status.ok
    assert plugin.filter_one(state, pod, cluster.snapshot, row) == 0
    trial = state.clone()
    assert plugin.add_pod(trial, pod, placed(5, "n1", "one", {"any": "label"}, False), row, cluster.snapshot).ok
    assert plugin.filter_one(trial, pod, cluster.snapshot, row) != 0
    assert plugin.add_pod(trial, pod, placed(6, "n1", "two", {}, False), row, cluster.snapshot).ok
    assert plugin.remove_pod(trial, pod, placed(5, "n1", "one", {}, False), row, cluster.snapshot).ok
    assert plugin.filter_one(trial, pod, cluster.snapshot, row) == 0, "a pod of another namespace counts in no trial"


def scores(cluster: Cluster, *constraints: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Raw and normalised scores of all nodes for a pod of web; without constraints of its own the system's
    defaults apply."""
    plugin, state, rows = PodTopologySpread(Args()), CycleState(), cluster.table.rows()
    soft = [{"maxSkew": 1, "whenUnsatisfiable": SOFT, "labelSelector": WEB} | one for one in constraints]
    pod = make_pod("new", labels={"app": "web"}, spec={"topologySpreadConstraints": soft})
    assert plugin.pre_score(state, pod, cluster.snapshot, rows).ok
    raw = plugin.score(state, pod, cluster.snapshot, rows)
    points = plugin.normalize(state, pod, cluster.snapshot, rows, raw)
    found = zip(rows.tolist(), raw.tolist(), points.tolist(), strict=True)
    return {cluster.table.names[row]: (score, point) for row, score, point in found}


def test_nodes_that_lack_a_label_get_no_points_and_count_for_no_weight() -> None:
    cluster = cluster_of(n0={"rack": "a"}, n1={"rack": "b"})
    for number in range(2, 9):
        cluster.table.place(placed(number, "n0", "one", {"app": "web"}, False))
    found = scores(cluster, {"topologyKey": HOST}, {"topologyKey": "rack"})
    assert found == {"n0": (25, 0), "n1": (0, 100), "n2": (0, 0)}, "9 pods, weight log 4 twice: 24.95"


def test_for_system_defaults_a_node_without_zone_is_in_a_zone_of_empty_name() -> None:
    cluster = cluster_of(n1={ZONE: ""})
    cluster.table.set_node(make_node("n3", labels={HOST: "n3"}))
    for number in range(2, 8):
        cluster.table.place(placed(number, "n3", "one", {"app": "web"}, False))
    cluster.known.put(
        "services", {"metadata": {"name": "web", "namespace": "one"}, "spec": {"selector": {"app": "web"}}}
    )
    found = scores(cluster)
    # Weights: 4 hosts, log 6 = 1.79; 3 zones, log 5 = 1.61. Skews 3 and 5 add 2 and 4.
    assert found["n0"][0] == 13, "2 pods on the host, 2 in the zone: 3.58 + 2 + 3.22 + 4 = 12.80"
    assert found["n1"][0] == 16, "none on the host, 6 of n3 in the zone: 2 + 9.66 + 4 = 15.66"
    assert found["n2"][0] == 6, "nothing: 2 + 4"
    assert found["n3"][0] == 13, "6 pods on the host, and no zone to be crowded: 10.75 + 2"
