"""What the cases of the plain reading do not say: texts, tokens, arguments, numbers."""

from typing import Any

import numpy as np
import pytest

from podyard.framework.cycle_state import CycleState
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginFault
from podyard.objects.meta import LabelSelectorRequirement
from podyard.plugins.inter_pod_affinity import filtering, scoring
from podyard.plugins.inter_pod_affinity.args import Args
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.support import objects
from tests.unit.plugins.inter_pod_affinity import cases
from tests.unit.plugins.inter_pod_affinity.cases import PREFERRED, REQUIRED

ZONES = {"n0": "z1", "n1": "z1", "n2": "z2"}


def pod(uid: str, app: str, affinity: dict[str, Any] | None = None) -> Any:
    return objects.pod(uid, uid=uid, namespace="one", labels={"app": app}, affinity=affinity or {})


def apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def likes(app: str) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}


@pytest.fixture
def cluster() -> Snapshot:
    """Two nodes in z1, one in z2, nothing on them."""
    return cases.snapshot(cases.Cluster({name: {"zone": zone} for name, zone in ZONES.items()}, {}, {}))


@pytest.fixture
def plugin() -> InterPodAffinity:
    return InterPodAffinity(Args())


def tokens(plugin: InterPodAffinity, cluster: Snapshot, manifest: Any) -> tuple[Any, Any]:
    """The tokens, after looking at everything as the framework does."""
    asked, state = cases.view(manifest), CycleState()
    found = plugin.filter_token(asked, cluster), plugin.score_token(asked, cluster)
    rows = cluster.nodes.rows()
    if plugin.pre_filter(state, asked, cluster).status.ok:
        plugin.filter(state, asked, cluster, rows)
    if plugin.pre_score(state, asked, cluster, rows).ok:
        plugin.score(state, asked, cluster, rows)
    return found


def test_a_plain_pod_placed_invalidates_nobody(plugin: InterPodAffinity, cluster: Snapshot) -> None:
    cluster.nodes.place(cases.view(pod("p0", "a", apart("a")), "n0"))
    cluster.nodes.place(cases.view(pod("p1", "a", likes("a")), "n0"))
    asked = [pod("x", "b"), pod("y", "a"), pod("z", "a", apart("a")), pod("w", "a", likes("a"))]
    before = [tokens(plugin, cluster, one) for one in asked]
    cluster.nodes.place(cases.view(pod("plain", "b"), "n2"))
    assert [tokens(plugin, cluster, one) for one in asked] == before


def test_a_mate_in_a_domain_that_has_one_changes_no_filter(plugin: InterPodAffinity, cluster: Snapshot) -> None:
    asked = pod("x", "a", apart("a"))
    cluster.nodes.place(cases.view(pod("p0", "a", apart("a")), "n0"))
    before, _ = tokens(plugin, cluster, asked)
    cluster.nodes.place(cases.view(pod("p1", "a", apart("a")), "n1"))
    assert tokens(plugin, cluster, asked)[0] == before
    cluster.nodes.place(cases.view(pod("p2", "a", apart("a")), "n2"))
    assert tokens(plugin, cluster, asked)[0] != before


def test_terms_of_other_pods_do_not_concern_a_pod_they_do_not_mean(plugin: InterPodAffinity, cluster: Snapshot) -> None:
    before = tokens(plugin, cluster, pod("x", "b"))
    cluster.nodes.place(cases.view(pod("p0", "a", apart("a") | likes("a")), "n0"))
    assert tokens(plugin, cluster, pod("x", "b")) == before


def test_pods_are_alike_by_namespace_labels_and_terms(plugin: InterPodAffinity) -> None:
    signed = [
        plugin.signature(cases.view(one))
        for one in (pod("p", "a", apart("a")), pod("q", "a", apart("a")), pod("r", "b", apart("a")), pod("s", "a"))
    ]
    assert signed[0] == signed[1]
    assert len(set(signed)) == 3


def test_without_prefilter_and_prescore_the_texts_are_the_references(
    plugin: InterPodAffinity, cluster: Snapshot
) -> None:
    asked, state, rows = cases.view(pod("x", "a")), CycleState(), cluster.nodes.rows()
    with pytest.raises(PluginFault, match=r'^error reading "PreFilterInterPodAffinity" from cycleState: not found$'):
        plugin.filter(state, asked, cluster, rows)
    with pytest.raises(PluginFault, match=r'^failed to read "PreScoreInterPodAffinity" from cycleState: not found$'):
        plugin.score(state, asked, cluster, rows)


def test_terms_that_cannot_be_read_reject_the_pod_everywhere(plugin: InterPodAffinity, cluster: Snapshot) -> None:
    broken = LabelSelectorRequirement(key="app", operator="Nonsense")
    manifest = pod("x", "a", apart("a"))
    (term,) = manifest["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    term["labelSelector"] = {"matchExpressions": [{"key": broken.key, "operator": broken.operator}]}
    status = plugin.pre_filter(CycleState(), cases.view(manifest), cluster).status
    assert status.code == Code.UNRESOLVABLE
    assert status.message.startswith("parsing pod: ")


@pytest.mark.parametrize(
    ("raw", "points"),
    [
        pytest.param([0, 1, 3], [0, 33, 100], id="cut off"),
        pytest.param([-5, 0, 5], [0, 50, 100], id="below zero"),
        pytest.param([7, 7], [0, 0], id="all alike"),
        pytest.param([0, 29, 100], [0, 28, 100], id="0.29 is a little less than 29 of 100 in float64"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_points_are_normalised_in_float64_and_cut_off(raw: list[int], points: list[int]) -> None:
    assert scoring.normalized(np.array(raw, dtype=np.int64)).tolist() == points


def test_the_same_pod_sees_other_labels_of_a_namespace_at_once(plugin: InterPodAffinity) -> None:
    table = cases.snapshot(cases.Cluster({"n0": {"zone": "z1"}}, {}, {})).nodes
    spaces = cases.Spaces({"one": {}, "two": {}})
    cluster = Snapshot(table, spaces)
    other = pod("p0", "a")
    other["metadata"]["namespace"] = "two"
    table.place(cases.view(other, "n0"))
    manifest = pod("x", "b", apart("a"))
    (term,) = manifest["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    term["namespaceSelector"] = {"matchLabels": {"env": "prod"}}
    asked, state, codes, seen = cases.view(manifest), CycleState(), [], []
    for labels in ({}, {"env": "prod"}, {}):
        spaces.set("two", labels)
        seen.append(plugin.filter_token(asked, cluster))
        assert plugin.pre_filter(state, asked, cluster).status.ok
        codes += plugin.filter(state, asked, cluster, table.rows()).tolist()
    assert codes == [0, filtering.NOT_APART, 0]
    assert seen[0] != seen[1] != seen[2]


def test_a_domain_that_came_and_went_between_two_looks(plugin: InterPodAffinity, cluster: Snapshot) -> None:
    """Counts that were made before and after know different numbers of domains, though every node is where it
    was."""
    asked, state, rows = cases.view(pod("x", "a")), CycleState(), cluster.nodes.rows()
    anybody: dict[str, Any] = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
    cluster.nodes.place(cases.view(pod("p0", "a", apart("a")), "n0"))
    assert plugin.pre_filter(state, asked, cluster).status.ok
    for zone in ("z9", "z2"):
        cluster.nodes.set_node(cases.node("n2", {"zone": zone}))
    cluster.nodes.place(cases.view(pod("p1", "b", anybody), "n2"))
    assert plugin.pre_filter(state, asked, cluster).status.ok
    assert plugin.filter(state, asked, cluster, rows).tolist() == [filtering.KEPT_OUT] * 3
