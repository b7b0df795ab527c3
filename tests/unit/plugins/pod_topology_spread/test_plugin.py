"""Details of the plugin that the plain reading does not show: texts, faults, what is remembered."""

from typing import Any

import msgspec
import numpy as np
import pytest

from podyard.framework.cycle_state import CycleState, StateMissingError
from podyard.framework.status import Code
from podyard.plugins.pod_topology_spread import plugin as module
from podyard.plugins.pod_topology_spread.args import Args
from podyard.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.unit.plugins.pod_topology_spread.clusters import HARD, SOFT, Cluster, make_node, make_pod, placed, varied
from tests.unit.plugins.pod_topology_spread.plain import HOST, ZONE

SELECTOR = {"matchLabels": {"app": "a"}}


def constraint(action: str = HARD, key: str = ZONE, **more: Any) -> dict[str, Any]:
    """A constraint as a manifest has it."""
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": SELECTOR} | more


def three_zones() -> Cluster:
    """Nodes n0 to n2 in zones of their own, one matching pod on n0."""
    cluster = Cluster()
    for number in range(3):
        cluster.table.set_node(make_node(f"n{number}", labels={ZONE: f"z{number}", HOST: f"n{number}"}))
    cluster.table.place(placed(0, "n0", "one", {"app": "a"}, False))
    return cluster


def test_reasons_are_those_of_the_reference() -> None:
    plugin, cluster, state = PodTopologySpread(Args()), three_zones(), CycleState()
    cluster.table.set_node(make_node("n3"))
    pod = make_pod("new", labels={"app": "a"}, spec={"topologySpreadConstraints": [constraint()]})
    assert plugin.pre_filter(state, pod, cluster.snapshot).status.ok
    codes = {name: plugin.filter_one(state, pod, cluster.snapshot, row) for name, row in cluster.table.row_of.items()}
    skewed, missing = plugin.verdict(state, codes["n0"]), plugin.verdict(state, codes["n3"])
    assert skewed.code == Code.UNSCHEDULABLE
    assert skewed.reasons == ("node(s) didn't match pod topology spread constraints",)
    assert missing.code == Code.UNRESOLVABLE
    assert missing.reasons == ("node(s) didn't match pod topology spread constraints (missing required label)",)
    assert codes["n1"] == codes["n2"] == 0


def test_without_pre_filter_the_filter_fails_as_the_references_does() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    pod = make_pod("new", spec={"topologySpreadConstraints": [constraint()]})
    with pytest.raises(StateMissingError) as raised:
        plugin.filter(CycleState(), pod, cluster.snapshot, cluster.table.rows())
    assert str(raised.value) == 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    with pytest.raises(StateMissingError) as raised:
        plugin.score(CycleState(), pod, cluster.snapshot, cluster.table.rows())
    assert str(raised.value) == 'error reading "PreScorePodTopologySpread" from cycleState: not found'


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (HARD, "get constraints from pod: obtaining pod's hard topology spread constraints: "),
        (SOFT, "calculating preScoreState: obtaining pod's soft topology spread constraints: "),
    ],
)
def test_a_selector_that_cannot_be_compiled_is_an_error(action: str, text: str) -> None:
    plugin, cluster, state = PodTopologySpread(Args()), three_zones(), CycleState()
    faulty = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    pod = make_pod("new", spec={"topologySpreadConstraints": [constraint(action, labelSelector=faulty)]})
    hard = plugin.pre_filter(state, pod, cluster.snapshot).status
    soft = plugin.pre_score(state, pod, cluster.snapshot, cluster.table.rows())
    found, other = (hard, soft) if action == HARD else (soft, hard)
    assert found.code == Code.ERROR
    assert found.message == text + '"Near" is not a valid label selector operator'
    assert other.code == Code.SKIP


def test_pods_without_constraints_and_owners_are_not_scored_until_a_service_selects_them() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    pod = make_pod("new", labels={"app": "a"})
    assert plugin.pre_score(CycleState(), pod, cluster.snapshot, cluster.table.rows()).code == Code.SKIP
    before = plugin.score_token(pod, cluster.snapshot)
    assert before is not None  # None would be for ever
    cluster.known.put("services", {"metadata": {"name": "s", "namespace": "one"}, "spec": {"selector": {"app": "a"}}})
    assert plugin.pre_score(CycleState(), pod, cluster.snapshot, cluster.table.rows()).ok
    assert plugin.score_token(pod, cluster.snapshot) not in (None, before)


def test_pods_with_constraints_of_one_kind_have_no_token_for_the_other() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    hard, soft = (make_pod("new", spec={"topologySpreadConstraints": [constraint(kind)]}) for kind in (HARD, SOFT))
    assert plugin.score_token(hard, cluster.snapshot) is None
    assert plugin.filter_token(soft, cluster.snapshot) is None


def test_tokens_change_with_pods_that_count_only() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    spec = {"topologySpreadConstraints": [constraint(), constraint(SOFT, HOST)]}
    pod = make_pod("new", labels={"app": "a"}, spec=spec)

    def tokens() -> tuple[object, object]:
        return plugin.filter_token(pod, cluster.snapshot), plugin.score_token(pod, cluster.snapshot)

    before = tokens()
    cluster.table.place(placed(1, "n1", "one", {"app": "b"}, False))
    cluster.table.place(placed(2, "n1", "two", {"app": "a"}, False))
    cluster.table.place(placed(3, "n1", "one", {"app": "a"}, True))
    assert tokens() == before
    cluster.table.place(placed(4, "n1", "one", {"app": "a"}, False))
    assert tokens()[0] != before[0]
    assert tokens()[1] != before[1]


def test_tokens_change_when_nodes_do() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    spec = {"topologySpreadConstraints": [constraint(), constraint(SOFT)]}
    pod = make_pod("new", labels={"app": "a"}, spec=spec)
    seen: list[tuple[object, object]] = []
    for step in (
        ("node", "n1", {"labels": {ZONE: "z0", HOST: "n1"}}),
        ("node", "n1", {"labels": {ZONE: "z0", HOST: "n1"}, "taints": [{"key": "t", "effect": "NoSchedule"}]}),
        ("no node", "n2"),
    ):
        seen.append((plugin.filter_token(pod, cluster.snapshot), plugin.score_token(pod, cluster.snapshot)))
        cluster.do(step)
    seen.append((plugin.filter_token(pod, cluster.snapshot), plugin.score_token(pod, cluster.snapshot)))
    assert len({hard for hard, _ in seen}) == len({soft for _, soft in seen}) == 4


@pytest.mark.parametrize("aspect", ["labels", "namespace", "nodes", "constraints", "owner", "uid"])
@pytest.mark.parametrize("own", [True, False])
def test_pods_that_differ_in_what_is_read_have_other_signatures(aspect: str, own: bool) -> None:
    plugin = PodTopologySpread(Args())
    first, other = [
        make_pod(
            name,
            labels={"app": name},
            namespace=name,
            spec={
                "nodeSelector": {"disk": name},
                "topologySpreadConstraints": [constraint(maxSkew=skew)] if own else [],
            },
            owner=("ReplicaSet", name),
        )
        for name, skew in (("a", 1), ("b", 2))
    ]
    irrelevant = ("owner", "uid") if own else ("constraints", "uid")
    alike = plugin.signature(first) == plugin.signature(varied(first, other, aspect))
    assert alike == (aspect in irrelevant)


def test_terminating_pods_do_not_count_and_a_pod_that_begins_to_end_counts_no_more() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    pod = make_pod("new", labels={"app": "a"}, spec={"topologySpreadConstraints": [constraint()]})

    def codes() -> list[int]:
        state = CycleState()
        plugin.pre_filter(state, pod, cluster.snapshot)
        return plugin.filter(state, pod, cluster.snapshot, cluster.table.rows()).tolist()

    row = cluster.table.rows().tolist().index(cluster.table.row_of["n0"])
    assert codes()[row] != 0
    cluster.table.place(placed(0, "n0", "one", {"app": "a"}, True))
    assert codes() == [0, 0, 0]


def test_soft_spreading_prefers_the_emptier_zone() -> None:
    plugin, cluster, state = PodTopologySpread(Args()), three_zones(), CycleState()
    pod = make_pod("new", labels={"app": "a"}, spec={"topologySpreadConstraints": [constraint(SOFT)]})
    rows = np.array([cluster.table.row_of[name] for name in ("n0", "n1")], dtype=np.intp)
    rows.sort()
    assert plugin.pre_score(state, pod, cluster.snapshot, rows).ok
    scores = plugin.score(state, pod, cluster.snapshot, rows)
    points = plugin.normalize(state, pod, cluster.snapshot, rows, scores).tolist()
    found = {cluster.table.names[row]: point for row, point in zip(rows.tolist(), points, strict=True)}
    assert found == {"n0": 0, "n1": 100}


def test_plans_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLANS_BYTES", 2 * module.PLAN_BYTES)
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    answers: list[list[int]] = []
    for _ in range(2):
        for skew in range(1, 5):
            state = CycleState()
            spec = {"topologySpreadConstraints": [constraint(maxSkew=skew)]}
            pod = make_pod("new", labels={"app": "a"}, spec=spec)
            plugin.pre_filter(state, pod, cluster.snapshot)
            answers.append(plugin.filter(state, pod, cluster.snapshot, cluster.table.rows()).tolist())
    assert answers[:4] == answers[4:]
    assert sum(map(bool, answers[0])) == 1
    assert answers[1:4] == [[0, 0, 0]] * 3


def test_it_says_which_objects_default_constraints_read() -> None:
    assert PodTopologySpread.reads == ("services", "replicationcontrollers", "replicasets", "statefulsets")


def test_listed_defaults_demand_all_labels_and_system_ones_do_not() -> None:
    cluster = three_zones()
    cluster.table.set_node(make_node("n3", labels={HOST: "n3"}))
    cluster.known.put("services", {"metadata": {"name": "s", "namespace": "one"}, "spec": {"selector": {"app": "a"}}})
    pod = make_pod("new", labels={"app": "a"})
    row = cluster.table.row_of["n3"]
    listed = {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 3, "topologyKey": HOST, "whenUnsatisfiable": SOFT},
            {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": SOFT},
        ],
    }
    found: list[int] = []
    for args in (Args(), msgspec.convert(listed, Args)):
        plugin, state, rows = PodTopologySpread(args), CycleState(), cluster.table.rows()
        plugin.pre_score(state, pod, cluster.snapshot, rows)
        scores = plugin.score(state, pod, cluster.snapshot, rows)
        points = plugin.normalize(state, pod, cluster.snapshot, rows, scores)
        found.append(int(points[rows.tolist().index(row)]))
    assert found == [100, 0]


def test_a_controller_with_another_selector_is_followed() -> None:
    plugin, cluster = PodTopologySpread(Args()), three_zones()
    pod, rows = make_pod("new", labels={"app": "a"}, owner=("ReplicaSet", "rs")), cluster.table.rows()
    found: list[object] = []
    for app in ("b", "a", None):
        if app is None:
            cluster.known.drop("replicasets", ("one", "rs"))
        else:
            spec = {"selector": {"matchLabels": {"app": app}}}
            cluster.known.put("replicasets", {"metadata": {"name": "rs", "namespace": "one"}, "spec": spec})
        state = CycleState()
        status = plugin.pre_score(state, pod, cluster.snapshot, rows)
        found.append(len(set(plugin.score(state, pod, cluster.snapshot, rows).tolist())) if status.ok else status.code)
    assert found == [1, 2, Code.SKIP], "all nodes alike; n0 has a pod of app a; no owner, no constraints"


def test_what_is_kept_for_scoring_is_made_again_for_other_nodes_and_other_labels() -> None:
    plugin, cluster, kept = PodTopologySpread(Args()), three_zones(), CycleState()
    cluster.table.place(placed(1, "n0", "one", {"app": "a"}, False))
    cluster.table.place(placed(2, "n0", "one", {"app": "a"}, False))
    pod = make_pod("new", labels={"app": "a"}, spec={"topologySpreadConstraints": [constraint(SOFT)]})
    row, found = cluster.table.row_of["n0"], list[int]()

    def ask(*names: str) -> None:
        rows = np.array(sorted(cluster.table.row_of[name] for name in names), dtype=np.intp)
        assert plugin.pre_score(kept, pod, cluster.snapshot, rows).ok
        found.append(plugin.score_one(kept, pod, cluster.snapshot, row))

    ask("n0", "n1", "n2")
    ask("n0")
    ask("n0", "n1", "n2")
    cluster.table.set_node(make_node("n1", labels={ZONE: "z2", HOST: "n1"}))
    ask("n0", "n1", "n2")
    assert found == [5, 3, 5, 4], "3 pods, times log 5 with three domains, log 3 with one, log 4 with two"
