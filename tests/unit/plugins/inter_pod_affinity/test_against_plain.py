"""What the plugin says is what the plain reading says: filters, scores, trials, and kept answers after any
sequence of changes."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.pods import PodView
from podyard.framework.cycle_state import CycleState
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code
from podyard.plugins.inter_pod_affinity.args import Args
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.unit.plugins.inter_pod_affinity import cases, plain
from tests.unit.plugins.inter_pod_affinity.plain import Cluster, Manifest

ARGS = st.builds(
    Args, hard_pod_affinity_weight=st.sampled_from((0, 1, 7)), ignore_preferred_terms_of_existing_pods=st.booleans()
)


def reasons(plugin: InterPodAffinity, state: CycleState, codes: dict[str, int]) -> dict[str, str]:
    """Reason by node, of codes by node."""
    return {name: plugin.verdict(state, code).message if code else "" for name, code in codes.items()}


def by_name(cluster: Snapshot, values: Any) -> dict[str, int]:
    """Values of all rows by node name."""
    return {cluster.nodes.names[row]: int(value) for row, value in zip(cluster.nodes.rows(), values, strict=True)}


def filtered(plugin: InterPodAffinity, state: CycleState, pod: PodView, cluster: Snapshot) -> dict[str, str]:
    """Reasons of all nodes; both ways of asking must agree."""
    rows = cluster.nodes.rows()
    codes = plugin.filter(state, pod, cluster, rows)
    assert codes.tolist() == [plugin.filter_one(state, pod, cluster, int(row)) for row in rows]
    return reasons(plugin, state, by_name(cluster, codes))


@given(cluster=cases.clusters(), pod=cases.pods("new"))
def test_every_node_is_rejected_for_the_plain_reason(cluster: Cluster, pod: Manifest) -> None:
    plugin, snapshot, state, asked = InterPodAffinity(Args()), cases.snapshot(cluster), CycleState(), cases.view(pod)
    expected = plain.verdicts(cluster, pod)
    if plugin.pre_filter(state, asked, snapshot).status.code == Code.SKIP:
        assert set(expected.values()) <= {""}
        return
    assert filtered(plugin, state, asked, snapshot) == expected


@given(cluster=cases.clusters(), pod=cases.pods("new"))
def test_skips_exactly_without_own_required_terms_and_matching_anti_affinity(cluster: Cluster, pod: Manifest) -> None:
    status = InterPodAffinity(Args()).pre_filter(CycleState(), cases.view(pod), cases.snapshot(cluster)).status
    own = plain.listed(pod, "podAffinity", "required") or plain.listed(pod, "podAntiAffinity", "required")
    kept_out = any(
        plain.of_placed(cluster, other, term, pod) and term["topologyKey"] in where
        for other, where in cluster.pods()
        for term in plain.listed(other, "podAntiAffinity", "required")
    )
    assert (status.code == Code.SKIP) == (not own and not kept_out)


@given(cluster=cases.clusters(), pod=cases.pods("new"), args=ARGS)
def test_every_node_gets_the_plain_points(cluster: Cluster, pod: Manifest, args: Args) -> None:
    plugin, snapshot, state, asked = InterPodAffinity(args), cases.snapshot(cluster), CycleState(), cases.view(pod)
    rows = snapshot.nodes.rows()
    expected = plain.points(cluster, pod, args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods)
    status = plugin.pre_score(state, asked, snapshot, rows)
    assert (status.code == Code.SKIP) == (expected is None)
    if expected is None:
        return
    scores = plugin.score(state, asked, snapshot, rows)
    assert scores.tolist() == [plugin.score_one(state, asked, snapshot, int(row)) for row in rows]
    assert by_name(snapshot, scores) == expected
    assert by_name(snapshot, plugin.normalize(state, asked, snapshot, rows, scores)) == plain.normalized(expected)


@given(data=st.data(), cluster=cases.clusters(), pod=cases.pods("new"))
def test_a_pod_more_or_less_is_what_a_changed_cluster_says(
    data: st.DataObject, cluster: Cluster, pod: Manifest
) -> None:
    plugin, snapshot, state, asked = InterPodAffinity(Args()), cases.snapshot(cluster), CycleState(), cases.view(pod)
    if plugin.pre_filter(state, asked, snapshot).status.code == Code.SKIP:
        return
    before = filtered(plugin, state, asked, snapshot)
    trial, placed = state.clone(), dict(cluster.placed)
    for number in range(data.draw(st.integers(1, 3))):
        there = sorted(uid for uid, (_, name) in placed.items() if name in cluster.nodes)
        if there and data.draw(st.booleans()):
            uid = data.draw(st.sampled_from(there))
            other, name = placed.pop(uid)
            known = snapshot.nodes.placed(uid)
            removed = known if known is not None else cases.view(other)
            status = plugin.remove_pod(trial, asked, removed, snapshot.nodes.row_of[name], snapshot)
        else:
            other, name = data.draw(cases.pods(f"extra{number}")), data.draw(st.sampled_from(sorted(cluster.nodes)))
            placed[f"extra{number}"] = other, name
            status = plugin.add_pod(trial, asked, cases.view(other), snapshot.nodes.row_of[name], snapshot)
        assert status.ok
    assert filtered(plugin, trial, asked, snapshot) == plain.verdicts(cluster._replace(placed=placed), pod)
    assert filtered(plugin, state, asked, snapshot) == before


class Kept:
    """One pod's answers, kept as the framework keeps them: asked again as a whole when the token changes,
    else for changed rows."""

    def __init__(self, plugin: InterPodAffinity, pod: Manifest, cluster: Snapshot) -> None:
        self.plugin = plugin
        self.pod = pod
        self.cluster = cluster
        self.state = CycleState()
        self.filter_token: Any = None
        self.score_token: Any = None
        self.filter_version = self.score_version = -1
        self.skips = self.unscored = False
        self.codes: dict[str, int] = {}
        self.points: dict[str, int] = {}

    def _rows(self, whole: bool, version: int) -> Any:
        nodes = self.cluster.nodes
        rows = nodes.rows().tolist() if whole else [row for row in nodes.changed_since(version) if nodes.live[row]]
        return np.array(rows, dtype=np.intp)

    def filtered(self) -> dict[str, str]:
        plugin, nodes, asked = self.plugin, self.cluster.nodes, cases.view(self.pod)
        token = plugin.filter_token(asked, self.cluster)
        whole = token != self.filter_token
        if whole:
            self.filter_token = token
            self.skips = plugin.pre_filter(self.state, asked, self.cluster).status.code == Code.SKIP
        rows = self._rows(whole, self.filter_version)
        codes = [0] * len(rows) if self.skips else plugin.filter(self.state, asked, self.cluster, rows).tolist()
        self.codes |= {nodes.names[row]: code for row, code in zip(rows.tolist(), codes, strict=True)}
        self.codes = {name: code for name, code in self.codes.items() if name in nodes.row_of}
        self.filter_version = nodes.version
        return reasons(plugin, self.state, self.codes)

    def filtered_with(self, extra: Manifest, name: str) -> dict[str, str]:
        """With one pod more, after `filtered`."""
        state, asked = self.state.clone(), cases.view(self.pod)
        row = self.cluster.nodes.row_of[name]
        assert self.plugin.add_pod(state, asked, cases.view(extra), row, self.cluster).ok
        return filtered(self.plugin, state, asked, self.cluster)

    def scored(self) -> dict[str, int] | None:
        plugin, nodes, asked = self.plugin, self.cluster.nodes, cases.view(self.pod)
        token = plugin.score_token(asked, self.cluster)
        whole = token != self.score_token
        if whole:
            self.score_token = token
            status = plugin.pre_score(self.state, asked, self.cluster, nodes.rows())
            self.unscored = status.code == Code.SKIP
        rows = self._rows(whole, self.score_version)
        points = [0] * len(rows) if self.unscored else plugin.score(self.state, asked, self.cluster, rows).tolist()
        self.points |= {nodes.names[row]: score for row, score in zip(rows.tolist(), points, strict=True)}
        self.points = {name: score for name, score in self.points.items() if name in nodes.row_of}
        self.score_version = nodes.version
        return None if self.unscored else self.points


def changed(
    data: st.DataObject, some: st.SearchStrategy[Manifest], cluster: Cluster, snapshot: Snapshot, spaces: cases.Spaces
) -> None:
    """One change of the cluster, to both sides; `some`: kinds of new pods."""
    kind = data.draw(st.sampled_from((*["place"] * 4, "remove", "remove", "relabel", "node", "no node", "space")))
    table, placed = snapshot.nodes, cluster.placed
    if kind == "place":
        uid, name = data.draw(st.sampled_from([f"p{n}" for n in range(9)])), data.draw(st.sampled_from(cases.NODES))
        placed[uid] = cases.named(data.draw(some), uid), name
        table.place(cases.view(placed[uid][0], name))
    elif kind == "remove" and placed:
        uid = data.draw(st.sampled_from(sorted(placed)))
        del placed[uid]
        table.remove(uid)
    elif kind == "relabel" and placed:
        uid = data.draw(st.sampled_from(sorted(placed)))
        pod, name = placed[uid]
        metadata = pod["metadata"] | {"labels": data.draw(cases.pod_labels)}
        placed[uid] = pod | {"metadata": metadata}, name
        table.place(cases.view(placed[uid][0], name))
    elif kind == "node":
        name = data.draw(st.sampled_from(cases.NODES))
        cluster.nodes[name] = data.draw(cases.node_labels)
        table.set_node(cases.node(name, cluster.nodes[name]))
    elif kind == "no node":
        name = data.draw(st.sampled_from(cases.NODES))
        cluster.nodes.pop(name, None)
        table.remove_node(name)
    elif kind == "space":
        name = data.draw(st.sampled_from(cases.SPACES))
        cluster.namespaces[name] = data.draw(cases.space_labels)
        spaces.set(name, cluster.namespaces[name])


def weights(args: Args) -> tuple[int, bool]:
    return args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods


@settings(max_examples=50)
@given(data=st.data(), cluster=cases.clusters(), args=ARGS)
def test_kept_answers_after_any_changes_are_those_made_from_scratch(
    data: st.DataObject, cluster: Cluster, args: Args
) -> None:
    spaces = cases.Spaces(cluster.namespaces)
    snapshot, plugin = Snapshot(cases.snapshot(cluster).nodes, spaces), InterPodAffinity(args)
    some = st.sampled_from(data.draw(st.lists(cases.kinds, min_size=1, max_size=3)))
    kept = [Kept(plugin, cases.named(data.draw(some), f"new{number}"), snapshot) for number in range(2)]
    for _ in range(data.draw(st.integers(4, 12))):
        for answers in kept if data.draw(st.booleans()) else kept[:1]:
            assert answers.filtered() == plain.verdicts(cluster, answers.pod)
            assert answers.scored() == plain.points(cluster, answers.pod, *weights(args))
        changed(data, some, cluster, snapshot, spaces)
    for answers in kept:
        assert answers.filtered() == plain.verdicts(cluster, answers.pod)
        if not answers.skips and cluster.nodes:
            extra, name = cases.named(data.draw(some), "extra"), data.draw(st.sampled_from(sorted(cluster.nodes)))
            more = cluster._replace(placed=cluster.placed | {"extra": (extra, name)})
            assert answers.filtered_with(extra, name) == plain.verdicts(more, answers.pod)


@settings(max_examples=50)
@given(data=st.data())
def test_pods_that_all_mean_each_other(data: st.DataObject) -> None:
    """Few kinds of pods that all meet, so that almost every change makes a difference to somebody."""
    zones = {name: {"zone": zone} for name, zone in zip(cases.NODES, ("z1", "z1", "z2", "z2", "z3"), strict=True)}
    cluster = Cluster(zones, {name: {"env": "prod"} for name in cases.SPACES}, {})
    spaces = cases.Spaces(cluster.namespaces)
    snapshot, plugin = Snapshot(cases.snapshot(cluster).nodes, spaces), InterPodAffinity(Args())
    kept = [
        Kept(plugin, cases.named(kind, f"new{number}"), snapshot) for number, kind in enumerate(cases.MEETING_KINDS)
    ]
    some = st.sampled_from(cases.MEETING_KINDS)
    for _ in range(12):
        changed(data, some, cluster, snapshot, spaces)
        for answers in kept:
            assert answers.filtered() == plain.verdicts(cluster, answers.pod)
            assert answers.scored() == plain.points(cluster, answers.pod, *weights(plugin.args))
