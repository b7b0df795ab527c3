"""Suite `preempt`: PostFilter for pods that no node takes. As suite `schedule`, without scores, and with what
preemption would do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.feasibility import Feasibility
from podyard.framework.profile import Profile
from podyard.framework.status import Code, Status
from podyard.plugins.default_preemption import choice
from podyard.plugins.default_preemption import plugin as preemption
from podyard.plugins.default_preemption.plugin import DefaultPreemption
from podyard.proto.decisions import Victim
from podyard.proto.message import PodRef
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.scheduler.core.effects import Preempt
from podyard.scheduler.core.messages import Changed, Popped, Work
from podyard.scheduler.core.scheduler import Scheduler
from tests.conformance import profiles
from tests.conformance.clusters import Cluster, ClusterInput
from tests.conformance.differences import ABSENT, Difference, between, same
from tests.conformance.noted import NotedPostFilter
from tests.conformance.suites import schedule


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `postfilter`, so that none is overlooked. `nominated_node` and `victims` repeat a single
    acceptable outcome."""

    code: str
    message: str
    nominating_mode: str
    acceptable: list[dict[str, Any]]
    nominated_node: str | None
    victims: list[str] | None
    deleted: list[str]
    nominations_cleared: dict[str, list[str]]
    potential_nodes: list[str]
    dry_run: dict[str, Any]
    num_candidates: int | msgspec.UnsetType = msgspec.UNSET


def check(given: dict[str, Any], expected: Any) -> None:
    """
    :raises msgspec.ValidationError: if a case has another shape than this suite compares
    """
    schedule.check(given, expected)
    for pod in expected["pods"].values():
        msgspec.convert(pod["postfilter"], Expected | None)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What Podyard makes of a case, in the form of `expected`; `outcome` is the one that it took."""
    wanted = msgspec.convert(given, ClusterInput)
    configured = profiles.configured(wanted.config)
    cluster, profile = Cluster.of(wanted, configured.names), configured.profiles[0]
    return {"pods": {name: _attempt(profile, cluster, cluster.pod(name)) for name in wanted.schedule}}


def _attempt(profile: Profile, cluster: Cluster, pod: PodView) -> dict[str, Any]:
    noted = [NotedPostFilter(plugin) for plugin in profile.post_filter]
    cycle = Cycle(msgspec.structs.replace(profile, post_filter=tuple(noted)), cluster.snapshot)
    found = schedule.attempt(cycle, profile, cluster, pod, scored=False)
    if found.result.error or found.feasibility is None:
        return found.told
    told = found.told | {"nodes": {name: node for name, node in found.told["nodes"].items() if "filter" in node}}
    if found.feasibility.feasible_count:
        told["feasible"] = [name for name, node in found.told["nodes"].items() if "filter" not in node]
    elif noted:
        told["postfilter"] = _post_filter(noted, cluster, pod, found.result, found.feasibility)
        told["postfilter"] |= _carried_out(profile, cluster, pod)
    return told


def _carried_out(profile: Profile, cluster: Cluster, pod: PodView) -> dict[str, Any]:
    """What the scheduler's core wants done: whom to delete, and whose nominations end."""
    core = Scheduler({profile.name: profile}, cluster.view, "conformance")
    core.step(Changed(cluster.changes), 0.0)
    popped = PoppedPod(namespace=pod.namespace, name=pod.name, uid=pod.uid, attempt="1-1", profile=profile.name)
    core.step(Popped(PopReply(epoch=1, pods=(popped,))), 0.0)
    effects = core.step(Work(1), 0.0)
    wanted = next((effect for effect in effects if isinstance(effect, Preempt)), None)
    if wanted is None:
        return {"deleted": [], "nominations_cleared": []}
    return {"deleted": _names(wanted.victims), "nominations_cleared": _names(wanted.result.cleared)}


def _names(pods: Iterable[Victim | PodRef]) -> list[str]:
    return sorted(f"{pod.namespace}/{pod.name}" for pod in pods)


def _post_filter(
    noted: list[NotedPostFilter], cluster: Cluster, pod: PodView, result: CycleResult, feasibility: Feasibility
) -> dict[str, Any]:
    diagnosis = feasibility.diagnosis()
    before = diagnosis.message()
    return {
        "code": _code([status for plugin in noted for status in plugin.said]).label,
        "message": result.message.removeprefix(before).lstrip(" "),
        "nominating_mode": "nil" if result.nominated_node is None else "override",
        "outcome": _outcome(result.nominated_node, result.victims),
        **_dry_run(noted, cluster, pod, feasibility, diagnosis),
    }


def _code(said: list[Status]) -> Code:
    """The status of all PostFilter plugins together. Source: framework.go, RunPostFilterPlugins."""
    decisive = (status.code for status in said if status.code != Code.UNSCHEDULABLE)
    return next(decisive, Code.UNSCHEDULABLE)


def _outcome(node: str | None, victims: tuple[Victim, ...]) -> dict[str, Any] | None:
    if not victims:
        return None
    return {"node": node, "victims": _names(victims), "pdb_violations": sum(victim.pdb_violation for victim in victims)}


def _dry_run(
    noted: list[NotedPostFilter], cluster: Cluster, pod: PodView, feasibility: Feasibility, diagnosis: Diagnosis
) -> dict[str, Any]:
    """What preemption would do on each node that it may help."""
    names = cluster.table.names
    rows = preemption.potential_rows(cluster.snapshot, diagnosis)
    told: dict[str, Any] = {"potential_nodes": sorted(names[row] for row in rows), "dry_run": {}}
    ours = next((one.plugin for one in noted if one.said and isinstance(one.plugin, DefaultPreemption)), None)
    if ours is None or preemption.ineligible(pod, cluster.snapshot, diagnosis) or not rows:
        return told
    trial = preemption.dry_run(feasibility.state.clone(), pod, cluster.snapshot, diagnosis)
    told["num_candidates"] = choice.candidates_wanted(ours.args, len(rows))
    for row in rows:
        found = trial.search(np.array([row]), 1)
        for status in found.statuses.values():
            told["dry_run"][names[row]] = {"code": status.code.label, "reasons": sorted(status.reasons)}
        for candidate in found.candidates:
            victims = preemption.victims_of(candidate)
            told["dry_run"][names[row]] = {"victims": _names(victims), "pdb_violations": len(candidate.violating)}
    return told


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """All that differs, pod by pod."""
    for name, wanted in expected["pods"].items():
        found = got["pods"][name]
        rest = {key: value for key, value in wanted.items() if key not in ("postfilter", "feasible")}
        yield from schedule.compare_pod(name, rest, found)
        if found["error"]:
            continue
        yield from _grouped(between(wanted.get("feasible", ABSENT), found.get("feasible", ABSENT), (name, "feasible")))
        yield from _compare_post_filter((name, "postfilter"), wanted["postfilter"], found.get("postfilter"))


def _compare_post_filter(where: tuple[str, ...], wanted: Any, found: Any) -> Iterator[Difference]:
    if wanted is None or found is None:
        if wanted is not found:
            yield Difference(where, wanted, found, "postfilter")
        return
    for key in ("code", "message", "potential_nodes", "num_candidates", "dry_run"):
        yield from _grouped(between(wanted.get(key, ABSENT), found.get(key, ABSENT), (*where, key)))
    # both leave it as it is
    mode = "nil" if wanted["nominating_mode"] == "noop" else wanted["nominating_mode"]
    yield from _grouped(between(mode, found["nominating_mode"], (*where, "nominating_mode")))
    yield from _compare_outcome(where, wanted, found["outcome"])
    yield from _grouped(_compare_deeds(where, wanted, found))


def _compare_outcome(where: tuple[str, ...], wanted: Mapping[str, Any], outcome: Any) -> Iterator[Difference]:
    """Any acceptable outcome will do; none if there is none."""
    acceptable = wanted["acceptable"] or [None]
    if not any(same(one, outcome) for one in acceptable):
        one = acceptable[0] if len(acceptable) == 1 else acceptable
        yield Difference((*where, "outcome"), one, outcome, "postfilter outcome")


def _compare_deeds(where: tuple[str, ...], wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    """Who is deleted is known if there is one outcome only, whose nominations end is known for each."""
    if len(wanted["acceptable"]) <= 1:
        yield from between(wanted["deleted"], found["deleted"], (*where, "deleted"))
    cleared = wanted["nominations_cleared"]
    if found["outcome"] is None:
        yield from between(cleared, {}, (*where, "nominations_cleared"))
        return
    node = found["outcome"]["node"]
    yield from between(cleared.get(node, []), found["nominations_cleared"], (*where, "nominations_cleared", node))


def _grouped(found: Iterator[Difference]) -> Iterator[Difference]:
    """Counted by the first two keys below the pod."""
    for one in found:
        yield one._replace(group=" ".join(one.where[1:3]))
