"""Suite `schedule`: one scheduling cycle, judged node by node. Every pod on its own against the same
snapshot."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.feasibility import Feasibility
from podyard.framework.one_node import filter_one
from podyard.framework.profile import Profile
from podyard.framework.scoring import Scoreboard
from podyard.framework.status import Status
from tests.conformance import profiles
from tests.conformance.clusters import Cluster, ClusterInput
from tests.conformance.differences import ABSENT, Difference, between, same

UNSCORED: Final = frozenset({"DynamicResources"})
"""Score plugins that the data leaves out: always 0."""


class PodExpected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of one pod, so that none is overlooked. Those with a default are in suite `preempt` only."""

    error: str | None
    prefilter: dict[str, Any] | None
    prefilter_nodes: list[str] | None
    nominated_node_feasible: bool | None
    nodes: dict[str, Any]
    best: list[str]
    unschedulable_plugins: list[str]
    pending_plugins: list[str]
    message: str | None
    message_before_postfilter: str | None
    postfilter: dict[str, Any] | None
    feasible: list[str] | msgspec.UnsetType = msgspec.UNSET


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pods: dict[str, PodExpected]


def check(given: dict[str, Any], expected: Any) -> None:
    """
    :raises msgspec.ValidationError: if a case has another shape than this suite compares
    """
    cluster = msgspec.convert(given, ClusterInput)
    pods = msgspec.convert(expected, Expected).pods
    if set(pods) != set(cluster.schedule):
        raise msgspec.ValidationError("expected.pods are not those of input.schedule")


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What Podyard makes of a case, in the form of `expected`."""
    wanted = msgspec.convert(given, ClusterInput)
    configured = profiles.configured(wanted.config)
    cluster, profile = Cluster.of(wanted, configured.names), configured.profiles[0]
    cycle = Cycle(profile, cluster.snapshot)
    return {"pods": {name: attempt(cycle, profile, cluster, cluster.pod(name)).told for name in wanted.schedule}}


class Attempted(NamedTuple):
    """One pod's cycle. `judgement` is missing if the attempt ended as an error; `told` has the form of the
    data."""

    told: dict[str, Any]
    result: CycleResult
    feasibility: Feasibility | None


def attempt(cycle: Cycle, profile: Profile, cluster: Cluster, pod: PodView, *, scored: bool = True) -> Attempted:
    """One pod's cycle, as the scheduler runs it, and what each node was told.

    :param cycle: of `profile` over the cluster's snapshot
    :param scored: tell scores too
    """
    result = cycle.run(pod)
    if result.error:
        return Attempted(_failed(profile, cluster, pod, result), result, None)
    feasibility = cycle.judge(pod)
    nodes: dict[str, Any] = {}
    best: list[str] = []
    if feasibility.pre_filtered.status.ok:
        nodes, best = _nodes(profile if scored else None, cluster, pod, feasibility)
    told = _told(result) | {
        "prefilter": None if feasibility.pre_filtered.status.ok else status_of(feasibility.pre_filtered.status),
        "prefilter_nodes": _narrowed(feasibility),
        "nominated_node_feasible": _nominated_passes(cluster, pod, feasibility),
        "nodes": nodes,
        "best": best,
    }
    return Attempted(told, result, feasibility)


def status_of(status: Status) -> dict[str, Any]:
    """A rejection as the data spells it."""
    return {"plugin": status.plugin or None, "code": status.code.label, "reasons": sorted(status.reasons)}


def _told(result: CycleResult) -> dict[str, Any]:
    found = result.diagnosis
    return {
        "error": None,
        "unschedulable_plugins": [] if found is None else list(found.unschedulable_plugins),
        "pending_plugins": [] if found is None else list(found.pending_plugins),
        "message": None if found is None else result.message,
        "message_before_postfilter": None if found is None else found.message(),
        "postfilter": None,
    }


def _narrowed(feasibility: Feasibility) -> list[str] | None:
    names = feasibility.pre_filtered.node_names
    return None if names is None else sorted(names)


def _nominated_passes(cluster: Cluster, pod: PodView, feasibility: Feasibility) -> bool | None:
    if not pod.nominated_node:
        return None
    row = cluster.table.row_of.get(pod.nominated_node)
    return row is not None and feasibility.status(row) is None


def _nodes(
    profile: Profile | None, cluster: Cluster, pod: PodView, feasibility: Feasibility
) -> tuple[dict[str, Any], list[str]]:
    """Of each node its status or scores; and the best, sorted. Without a profile nothing is scored."""
    scoreboard = None
    if profile is not None and feasibility.feasible_count:
        scoreboard = Scoreboard(profile, feasibility, cluster.snapshot)
        scoreboard.refresh(pod)
    nodes: dict[str, Any] = {}
    for name, row in sorted(cluster.table.row_of.items()):
        status = feasibility.status(row)
        if status is not None:
            nodes[name] = {"filter": status_of(status)}
        elif scoreboard is not None:
            score = scoreboard.node_score(row)
            nodes[name] = {"scores": dict(score.plugins), "total": score.total}
        else:
            nodes[name] = {}
    return nodes, [] if scoreboard is None else [cluster.table.names[row] for row in scoreboard.best()]


def _failed(profile: Profile, cluster: Cluster, pod: PodView, result: CycleResult) -> dict[str, Any]:
    """The attempt ended as an error: of the nodes only what each says by itself is known."""
    nodes: dict[str, Any] = {}
    for name in sorted(cluster.table.row_of):
        status = filter_one(profile, name, pod, cluster.snapshot)
        nodes[name] = {} if status.ok else {"filter": status_of(status)}
    return {
        "error": result.error,
        "prefilter": None,
        "prefilter_nodes": None,
        "nominated_node_feasible": None,
        "nodes": nodes,
        "best": [],
        "unschedulable_plugins": [],
        "pending_plugins": [],
        "message": None,
        "message_before_postfilter": None,
        "postfilter": None,
    }


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """All that differs, pod by pod."""
    for name, wanted in expected["pods"].items():
        yield from compare_pod(name, wanted, got["pods"][name])


def compare_pod(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    """One pod. An error that is not expected is all that is told of it; with an expected one the data lists
    some nodes only."""
    if found["error"] and not wanted["error"]:
        yield Difference((name, "error"), None, found["error"], f"error {found['error'][:80]}")
        return
    for key in wanted:
        if key == "nodes":
            yield from _compare_nodes(name, wanted, found)
        else:
            group = f"prefilter {_plugin(wanted[key]) or _plugin(found[key])}" if key == "prefilter" else key
            for one in between(wanted[key], found.get(key, ABSENT), (name, key)):
                yield one._replace(group=group)


def _compare_nodes(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    theirs, ours = wanted["nodes"], found["nodes"]
    for node in theirs if wanted["error"] else dict.fromkeys((*theirs, *ours)):
        yield from _compare_node((name, node), theirs.get(node, ABSENT), ours.get(node, ABSENT))


def _compare_node(where: tuple[str, str], wanted: Any, found: Any) -> Iterator[Difference]:
    if wanted is ABSENT or found is ABSENT or wanted.keys() != found.keys():
        rejector = _rejector(wanted) or _rejector(found)
        yield Difference(where, wanted, found, f"filter {rejector}" if rejector else "nodes")
    elif "filter" in wanted:
        if not same(wanted["filter"], found["filter"]):
            yield Difference((*where, "filter"), wanted["filter"], found["filter"], f"filter {_rejector(wanted)}")
    else:
        yield from _compare_scores(where, wanted, found)


def _compare_scores(
    where: tuple[str, str], wanted: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[Difference]:
    """A plugin that is missing on one side has 0 points."""
    theirs = wanted["scores"]
    ours = {plugin: points for plugin, points in found["scores"].items() if plugin not in UNSCORED}
    for plugin in dict.fromkeys((*theirs, *ours)):
        if not same(theirs.get(plugin, 0), ours.get(plugin, 0)):
            missing = theirs.get(plugin, ABSENT), ours.get(plugin, ABSENT)
            yield Difference((*where, "scores", plugin), *missing, f"score {plugin}")
    if not same(wanted["total"], found["total"]):
        yield Difference((*where, "total"), wanted["total"], found["total"], "total")


def _rejector(node: Any) -> str:
    return _plugin(node["filter"]) if node is not ABSENT and "filter" in node else ""


def _plugin(status: Any) -> str:
    return "" if status is None else status["plugin"] or "narrowed"
