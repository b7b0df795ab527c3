"""The vectorised plugin against the plain reading of the rules, on random clusters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.pods import PodView
from podyard.framework.cycle_state import CycleState
from podyard.framework.status import Code
from podyard.plugins.pod_topology_spread.args import Args
from podyard.plugins.pod_topology_spread.plugin import REASON, REASON_NO_LABEL, PodTopologySpread
from tests.unit.plugins.pod_topology_spread import clusters, plain
from tests.unit.plugins.pod_topology_spread.clusters import Cluster

SYSTEM = msgspec.convert(
    [
        {"maxSkew": 3, "topologyKey": plain.HOST, "whenUnsatisfiable": clusters.SOFT},
        {"maxSkew": 5, "topologyKey": plain.ZONE, "whenUnsatisfiable": clusters.SOFT},
    ],
    tuple[plain.TopologySpreadConstraint, ...],
)
DEFAULTS = st.one_of(st.none(), clusters.constraints(defaults=True))


def make_plugin(defaults: list[dict[str, Any]] | None = None) -> PodTopologySpread:
    """The plugin with the system's default constraints, or with listed ones."""
    args = {} if defaults is None else {"defaultingType": "List", "defaultConstraints": defaults}
    return PodTopologySpread(msgspec.convert(args, Args))


def rules_of(plugin: PodTopologySpread, pod: PodView, action: str, cluster: Cluster) -> list[plain.Rule]:
    """The plain reading's constraints."""
    if pod.pod.spec.topology_spread_constraints:
        return plain.own_rules(pod, action)
    listed = SYSTEM if plugin.args.defaulting_type == "System" else plugin.args.default_constraints
    return plain.default_rules(pod, listed, action, cluster.owners())


def reasons(
    plugin: PodTopologySpread, state: CycleState, pod: PodView, cluster: Cluster, names: Iterable[str] | None = None
) -> dict[str, str]:
    """What the plugin says of nodes, in the plain reading's words; `filter` and `filter_one` must agree."""
    if PodTopologySpread.name in state.skip_filter:
        return {}
    table = cluster.table
    rows = table.rows() if names is None else np.array(sorted(table.row_of[name] for name in names), dtype=np.intp)
    codes = plugin.filter(state, pod, cluster.snapshot, rows).tolist()
    assert codes == [plugin.filter_one(state, pod, cluster.snapshot, row) for row in rows.tolist()]
    found: dict[str, str] = {}
    for row, code in zip(rows.tolist(), codes, strict=True):
        if code:
            status = plugin.verdict(state, code)
            expected = {Code.UNSCHEDULABLE: (REASON, plain.SKEWED), Code.UNRESOLVABLE: (REASON_NO_LABEL, plain.MISSING)}
            text, found[table.names[row]] = expected[status.code]
            assert status.reasons == (text,)
    return found


def pre_filtered(
    plugin: PodTopologySpread, pod: PodView, cluster: Cluster, state: CycleState | None = None
) -> CycleState:
    """The state after PreFilter."""
    state = CycleState() if state is None else state
    state.skip_filter.clear()
    status = plugin.pre_filter(state, pod, cluster.snapshot).status
    if status.code == Code.SKIP:
        state.skip_filter.add(plugin.name)
    else:
        assert status.ok
    return state


@settings(max_examples=200, deadline=None)
@given(cluster=clusters.clusters(), pod=clusters.incoming())
def test_filter_is_the_plain_reading(cluster: Cluster, pod: PodView) -> None:
    plugin = make_plugin()
    rules = plain.own_rules(pod, clusters.HARD)
    state = pre_filtered(plugin, pod, cluster)
    assert (plugin.name in state.skip_filter) == (not rules)
    assert reasons(plugin, state, pod, cluster) == plain.filtered(pod, rules, cluster.places(), {})


@settings(max_examples=100, deadline=None)
@given(cluster=clusters.clusters(), pod=clusters.incoming(own=False), defaults=DEFAULTS)
def test_default_constraints_filter_as_the_plain_reading(
    cluster: Cluster, pod: PodView, defaults: list[dict[str, Any]] | None
) -> None:
    plugin = make_plugin(defaults)
    rules = rules_of(plugin, pod, clusters.HARD, cluster)
    state = pre_filtered(plugin, pod, cluster)
    assert (plugin.name in state.skip_filter) == (not rules)
    assert reasons(plugin, state, pod, cluster) == plain.filtered(pod, rules, cluster.places(), {})


def check_scores(
    plugin: PodTopologySpread, pod: PodView, cluster: Cluster, feasible: Sequence[str], state: CycleState
) -> None:
    """Scores of all feasible nodes, at once and one by one, are the plain reading's."""
    rules = rules_of(plugin, pod, clusters.SOFT, cluster)
    snapshot, table = cluster.snapshot, cluster.table
    rows = np.array(sorted(table.row_of[name] for name in feasible), dtype=np.intp)
    status = plugin.pre_score(state, pod, snapshot, rows)
    assert (status.code == Code.SKIP) == (not rules)
    if not rules:
        return
    raw = plugin.score(state, pod, snapshot, rows)
    assert raw.tolist() == [plugin.score_one(state, pod, snapshot, row) for row in rows.tolist()]
    before = raw.copy()
    points = plugin.normalize(state, pod, snapshot, rows, raw)
    assert raw.tolist() == before.tolist(), "raw scores are kept by the framework"
    own = bool(pod.pod.spec.topology_spread_constraints)
    all_labels = own or plugin.args.defaulting_type == "List"
    expected = plain.scored(pod, rules, cluster.places(), feasible, all_labels=all_labels)
    found = zip(rows.tolist(), raw.tolist(), points.tolist(), strict=True)
    assert {table.names[row]: (score, point) for row, score, point in found} == expected


@settings(max_examples=200, deadline=None)
@given(data=st.data(), cluster=clusters.clusters(), own=st.booleans(), defaults=DEFAULTS)
def test_scores_are_the_plain_reading(
    data: st.DataObject, cluster: Cluster, own: bool, defaults: list[dict[str, Any]] | None
) -> None:
    pod = data.draw(clusters.incoming(own=own))
    feasible = data.draw(st.lists(st.sampled_from(list(cluster.table.row_of)), min_size=1, unique=True))
    check_scores(make_plugin(defaults), pod, cluster, feasible, CycleState())


@settings(max_examples=200, deadline=None)
@given(data=st.data(), cluster=clusters.clusters(), pod=clusters.incoming())
def test_trials_count_as_the_plain_reading(data: st.DataObject, cluster: Cluster, pod: PodView) -> None:
    """Pods more and less on one node, ending ones too: removing one that was never counted lowers the count
    (spread-terminating-victim)."""
    plugin = make_plugin()
    name = data.draw(st.sampled_from(list(cluster.table.row_of)))
    state = pre_filtered(plugin, pod, cluster)
    if plugin.name in state.skip_filter:
        return
    trial, done = state.clone(), list[tuple[PodView, int]]()
    row = cluster.table.row_of[name]
    for number, _, namespace, labels, ending in data.draw(st.lists(clusters.PLACED, max_size=4)):
        other = clusters.placed(number, name, namespace, labels, ending)
        more = data.draw(st.sampled_from([1, -1]))
        ask = plugin.add_pod if more == 1 else plugin.remove_pod
        assert ask(trial, pod, other, row, cluster.snapshot).ok
        done.append((other, more))
    rules = plain.own_rules(pod, clusters.HARD)
    assert reasons(plugin, trial, pod, cluster) == plain.filtered(pod, rules, cluster.places(), {name: done})
    assert reasons(plugin, state, pod, cluster) == plain.filtered(pod, rules, cluster.places(), {}), (
        "a trial is forgotten"
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data(), cluster=clusters.clusters(), steps=clusters.STEPS, own=st.booleans(), defaults=DEFAULTS)
def test_a_kept_state_after_any_changes_is_a_fresh_one(
    data: st.DataObject,
    cluster: Cluster,
    steps: list[tuple[Any, ...]],
    own: bool,
    defaults: list[dict[str, Any]] | None,
) -> None:
    plugin = make_plugin(defaults)
    pod = data.draw(clusters.incoming(own=own))
    state = pre_filtered(plugin, pod, cluster)
    for step in steps:
        cluster.do(step)
        pre_filtered(plugin, pod, cluster, state)
        expected = plain.filtered(pod, rules_of(plugin, pod, clusters.HARD, cluster), cluster.places(), {})
        assert reasons(plugin, state, pod, cluster) == expected
        names = list(cluster.table.row_of)
        if names:
            feasible = data.draw(st.one_of(st.just(names), st.lists(st.sampled_from(names), min_size=1, unique=True)))
            check_scores(plugin, pod, cluster, feasible, state)


def _scores(
    plugin: PodTopologySpread, state: CycleState, pod: PodView, cluster: Cluster, names: Iterable[str]
) -> Mapping[str, int]:
    if plugin.name in state.skip_score:
        return {}
    return {name: plugin.score_one(state, pod, cluster.snapshot, cluster.table.row_of[name]) for name in names}


@settings(max_examples=100, deadline=None)
@given(data=st.data(), cluster=clusters.clusters(), steps=clusters.STEPS, own=st.booleans(), defaults=DEFAULTS)
def test_equal_tokens_mean_equal_answers_for_unchanged_nodes(
    data: st.DataObject,
    cluster: Cluster,
    steps: list[tuple[Any, ...]],
    own: bool,
    defaults: list[dict[str, Any]] | None,
) -> None:
    plugin, table = make_plugin(defaults), cluster.table
    pod = data.draw(clusters.incoming(own=own))
    signature = plugin.signature(pod)
    if data.draw(st.booleans()) and cluster.known.objects("services"):
        steps = [*steps, ("no service",)]
    for step in steps:
        state = pre_filtered(plugin, pod, cluster)
        if plugin.pre_score(state, pod, cluster.snapshot, table.rows()).code == Code.SKIP:
            state.skip_score.add(plugin.name)
        tokens = plugin.filter_token(pod, cluster.snapshot), plugin.score_token(pod, cluster.snapshot)
        names, version = list(table.row_of), table.version
        before = reasons(plugin, state, pod, cluster), _scores(plugin, state, pod, cluster, names)
        if step == ("no service",):
            cluster.known.drop("services", next(iter(cluster.known.objects("services"))))
        else:
            cluster.do(step)
        changed = {table.names[row] for row in table.changed_since(version)}
        same = [name for name in names if name in table.row_of and name not in changed]
        fresh = pre_filtered(make_plugin(defaults), pod, cluster)
        if tokens[0] == plugin.filter_token(pod, cluster.snapshot):
            now = reasons(make_plugin(defaults), fresh, pod, cluster, same)
            assert now == {name: reason for name, reason in before[0].items() if name in same}
            assert (plugin.name in state.skip_filter) == (plugin.name in fresh.skip_filter)
        if tokens[1] == plugin.score_token(pod, cluster.snapshot) and set(names) == set(table.row_of):
            if plugin.pre_score(fresh, pod, cluster.snapshot, table.rows()).code == Code.SKIP:
                fresh.skip_score.add(plugin.name)
            assert _scores(plugin, fresh, pod, cluster, same) == {
                name: score for name, score in before[1].items() if name in same
            }
        assert plugin.signature(pod) == signature


@settings(max_examples=100, deadline=None)
@given(data=st.data(), cluster=clusters.clusters(), own=st.booleans(), defaults=DEFAULTS)
def test_pods_of_equal_signature_are_alike(
    data: st.DataObject, cluster: Cluster, own: bool, defaults: list[dict[str, Any]] | None
) -> None:
    plugin = make_plugin(defaults)
    first = data.draw(clusters.incoming(own=own))
    second = clusters.varied(first, data.draw(clusters.incoming(own=own)), data.draw(st.sampled_from(clusters.ASPECTS)))
    places, names = cluster.places(), list(cluster.table.row_of)
    answers: list[object] = []
    for pod in (first, second):
        hard, soft = (rules_of(plugin, pod, action, cluster) for action in (clusters.HARD, clusters.SOFT))
        answers.append((plain.filtered(pod, hard, places, {}), plain.scored(pod, soft, places, names, all_labels=True)))
    assert plugin.signature(first) != plugin.signature(second) or answers[0] == answers[1]
    assert plugin.signature(first) == plugin.signature(clusters.varied(first, first, "uid"))
