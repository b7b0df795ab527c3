"""Suite `deschedule`: one cycle of the descheduler, with what its evictor says of every pod."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from podyard.cluster.view import ClusterView
from podyard.configuration.model import default
from podyard.descheduler.core import building, cycle, loading, metrics_providers, registry
from podyard.descheduler.core.advice import Advisor
from podyard.descheduler.core.building import ProfileEvictor
from podyard.descheduler.core.cycle import Attempt, CycleRecord, Step
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.measured import (
    ContainerUsage,
    KubernetesMetrics,
    Measured,
    QueryFailed,
    QueryResult,
    Sample,
)
from podyard.descheduler.core.moves import Moves
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.state import CycleState
from podyard.objects import decoding, quantity, times
from podyard.objects.core import Namespace, PersistentVolumeClaim
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.scheduling import PriorityClass
from tests.conformance import shapes
from tests.conformance.deliveries import Manifest, Stream, namespace_of
from tests.conformance.differences import ABSENT, Difference, between

Manifests = list[dict[str, Any]]

REFUSALS: Final[Mapping[int, str]] = {
    403: 'pods "{name}" is forbidden: denied',
    404: 'pod not found when evicting "{name}": pods "{name}" not found',
    429: (
        'error when evicting pod (ignoring) "{name}": '
        "Cannot evict pod as it would violate the pod's disruption budget."
    ),
    500: "Internal error occurred: boom",
}
"""What the reference makes of the API server's answers, by their code."""


class Denied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The eviction of this pod fails."""

    namespace: str
    name: str
    code: int


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A policy and a cluster."""

    now: str
    policy: str
    eviction_effect: Literal["delete", "terminate"]
    nodes: Manifests
    pods: Manifests
    eviction_denied: list[Denied] = []
    namespaces: Manifests = []
    pod_disruption_budgets: Manifests = []
    persistent_volume_claims: Manifests = []
    priority_classes: Manifests = []
    node_metrics: Manifests = []
    pod_metrics: Manifests = []
    prometheus: dict[str, Any] | None = None


class ExpectedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The keys of a step, so that none is overlooked. `hints` and `bounds` are for people."""

    profile: str
    extension_point: str
    plugin: str
    evicted: list[dict[str, str]] | None
    failed: list[dict[str, str]] | None
    error: str | None
    hints: Any = None
    ordered: bool = False
    bounds: Any = None
    failed_varies: bool = False
    error_one_of: list[str] | None = None


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    policy_error: None
    bootstrap_error: None
    cycle_skipped: bool
    deterministic: bool
    steps: list[ExpectedStep]
    total_evicted: tuple[int, int]
    grace_period_seconds: int | None
    filter: list[dict[str, Any]]
    runs: int
    acceptable: list[dict[str, Any]] = []
    exhaustive: bool = True
    sorted_order_outcome: int | None = None


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What Podyard makes of a case, in the form of `expected`."""
    case = msgspec.convert(given, Given)
    plugins, now = registry.by_name(), times.seconds_of(case.now)
    decoded = loading.checked(case.policy, plugins).policy
    state = _state(case, decoded)
    policy = loading.with_defaults(decoded, state.priority_classes)
    pods = list(state.pods.values())
    judged = [_judged(one.name, one.evictor, pods) for one in building.build(policy, plugins, state, now)]
    server = _Server(case)
    advisor = Advisor(_view(case), default().profiles, Moves(), now, obey=False)
    record = server.carry_out(cycle.run(policy, plugins, state, now, advisor=advisor))
    return {
        "cycleSkipped": bool(record.skipped),
        "steps": [_step(one) for one in record.steps],
        "totalEvicted": record.evicted,
        "gracePeriodSeconds": sorted({one for one in server.grace_periods if one is not None}),
        "filter": [] if record.skipped else judged,
    }


class _Server:
    """Plays the API server: what it answers to each eviction."""

    def __init__(self, case: Given) -> None:
        self._denied = {(one.namespace, one.name): one.code for one in case.eviction_denied}
        self._deletes = case.eviction_effect == "delete"
        self._gone: set[tuple[str, str]] = set()
        self.grace_periods: list[int | None] = []

    def carry_out(self, running: cycle.Cycle) -> CycleRecord:
        result: EvictionResult | None = None
        while True:
            try:
                wanted = next(running) if result is None else running.send(result)
            except StopIteration as ended:
                return ended.value
            result = self._evict(wanted)

    def _evict(self, wanted: Eviction) -> EvictionResult:
        self.grace_periods.append(wanted.grace_period_s)
        key = wanted.pod.key
        code = self._denied.get(key) or (404 if key in self._gone else 0)
        if code:
            return EvictionFailed(REFUSALS[code].format(name=wanted.pod.metadata.name))
        if self._deletes:
            self._gone.add(key)
        return EvictionDone(gone=self._deletes)


def _view(case: Given) -> ClusterView:
    """The same cluster as a listing finds it, for the plan."""
    stream, view = Stream(), ClusterView()
    view.begin_listing()
    placed = [one for one in case.pods if one["spec"].get("nodeName")]
    for one in (*case.nodes, *case.namespaces, *case.persistent_volume_claims, *case.priority_classes, *case.pods):
        view.apply(stream.put(one))
    last = stream.commit(bound=placed)
    view.apply(last)
    view.end_listing(last.sequence)
    return view


def _state(case: Given, policy: Policy) -> CycleState:
    return CycleState(
        nodes=[decoding.decode_as(Node, msgspec.json.encode(one)) for one in case.nodes],
        pods=[_namespaced(Pod, one) for one in case.pods],
        namespaces={one["metadata"]["name"]: decoding.decode_as(Namespace, msgspec.json.encode(one)) for one in case.namespaces},
        budgets=[_namespaced(PodDisruptionBudget, one) for one in case.pod_disruption_budgets],
        claims={
            (namespace_of(one), one["metadata"]["name"]): _namespaced(PersistentVolumeClaim, one)
            for one in case.persistent_volume_claims
        },
        priority_classes={
            one["metadata"]["name"]: decoding.decode_as(PriorityClass, msgspec.json.encode(one))
            for one in case.priority_classes
        },
        measured=_measured(case, policy),
    )  # fmt: skip


def _namespaced(type_: type[Any], manifest: Manifest) -> Any:
    metadata = {**manifest["metadata"], "namespace": namespace_of(manifest)}
    return decoding.decode_as(type_, msgspec.json.encode({**manifest, "metadata": metadata}))


def _measured(case: Given, policy: Policy) -> Measured:
    kubernetes = None
    if metrics_providers.wants_kubernetes(policy):
        nodes = {one["metadata"]["name"]: _amounts(one["usage"]) for one in case.node_metrics}
        pods = {
            (namespace_of(one), one["metadata"]["name"]): tuple(
                ContainerUsage(container["name"], _amounts(container["usage"])) for container in one["containers"]
            )
            for one in case.pod_metrics
        }
        kubernetes = KubernetesMetrics(nodes, pods)
    return Measured(kubernetes, None if case.prometheus is None else _EveryQuery(_vector(case.prometheus)))


class _EveryQuery(dict[str, QueryResult]):
    """The same answer to every query."""

    def __init__(self, result: QueryResult) -> None:
        super().__init__()
        self._result = result

    def get(self, _query: str, _default: Any = None) -> QueryResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._result


def _amounts(usage: Mapping[str, str]) -> dict[str, int]:
    return {name: quantity.nano(text) for name, text in usage.items()}


def _vector(told: Mapping[str, Any]) -> QueryResult:
    if "error" in told:
        return QueryFailed(told["error"])
    return tuple(Sample(one["metric"], float(one["value"])) for one in told["samples"])


def _judged(profile: str, evictor: ProfileEvictor, pods: Sequence[Pod]) -> dict[str, Any]:
    refused: dict[str, Any] = {}
    held_back: dict[str, Any] = {}
    for pod in pods:
        verdict, now = evictor.filter(pod), evictor.pre_eviction_filter(pod)
        if not verdict.allowed:
            refused["/".join(pod.key)] = list(verdict.reasons)
        if not now.allowed:
            held_back["/".join(pod.key)] = now.reasons[0]
    return {"profile": profile, "refused": refused, "preEvictionRefused": held_back}


def _step(step: Step) -> dict[str, Any]:
    return {
        "profile": step.profile,
        "extensionPoint": step.extension_point,
        "plugin": step.plugin,
        "evicted": [{"pod": _name(one), "node": one.node} for one in step.evicted],
        "failed": sorted(
            ({"pod": _name(one), "node": one.node, "error": _problem(one)} for one in step.attempts if one.problem),
            key=lambda one: one["pod"],
        ),
        "error": step.error or None,
    }


def _name(attempt: Attempt) -> str:
    return f"{attempt.namespace}/{attempt.name}"


def _problem(attempt: Attempt) -> str:
    return f"error: {attempt.problem}" if attempt.answer is Answer.FAILED else attempt.answer.value


class _StepName(NamedTuple):
    profile: str
    extension_point: str
    plugin: str


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Steps in order, each with what the reference fixes of it; then the whole."""
    yield from between(expected["cycleSkipped"], got["cycleSkipped"], ("cycleSkipped",))
    theirs, ours = [_named(one) for one in expected["steps"]], [_named(one) for one in got["steps"]]
    if theirs != ours:
        yield Difference(("steps",), theirs, ours, "steps")
        return
    for at, (wanted, found) in enumerate(zip(expected["steps"], got["steps"], strict=True)):
        for one in _compare_step(wanted, found):
            yield one._replace(
                where=(f"step {at}", wanted["plugin"], *one.where), group=f"{wanted['plugin']} {one.group}"
            )
    yield from _compare_outcome(expected, got)
    least, most = expected["totalEvicted"]
    if not least <= got["totalEvicted"] <= most:
        yield Difference(("totalEvicted",), expected["totalEvicted"], got["totalEvicted"], "totalEvicted")
    seconds = expected["gracePeriodSeconds"]
    if got["totalEvicted"]:
        yield from between([] if seconds is None else [seconds], got["gracePeriodSeconds"], ("gracePeriodSeconds",))
    for at, wanted in enumerate(expected["filter"]):
        found = got["filter"][at] if at < len(got["filter"]) else ABSENT
        for one in between(wanted, found, ("filter", wanted["profile"])):
            yield one._replace(group="filter")
    if len(got["filter"]) > len(expected["filter"]):
        yield Difference(("filter",), expected["filter"], got["filter"], "filter")  # fmt: skip


def _named(step: Mapping[str, Any]) -> _StepName:
    return _StepName(step["profile"], step["extensionPoint"], step["plugin"])


def _compare_step(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    if wanted["evicted"] is not None:
        theirs, ours = ([(one["pod"], one["node"]) for one in step["evicted"]] for step in (wanted, found))
        if (theirs if wanted.get("ordered") else sorted(theirs)) != (ours if wanted.get("ordered") else sorted(ours)):
            yield Difference(("evicted",), theirs, ours, "evicted")
    if not wanted.get("failedVaries"):
        theirs, ours = (
            Counter((one["pod"], one["node"], one["error"]) for one in step["failed"] or ()) for step in (wanted, found)
        )
        if theirs != ours:
            yield Difference(("failed",), sorted(theirs.elements()), sorted(ours.elements()), "failed")
    one_of = wanted.get("errorOneOf") or [wanted["error"]]
    if found["error"] not in one_of:
        yield Difference(("error",), one_of, found["error"], "error")  # fmt: skip


def _compare_outcome(expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Difference]:
    """Where the reference's own outcome varies, it has to be one of those that were seen."""
    if expected["deterministic"]:
        return
    outcome = [sorted(one["pod"] for one in step["evicted"]) for step in got["steps"]]
    if outcome not in [one["evicted"] for one in expected["acceptable"]]:
        plugins = " ".join(dict.fromkeys(step["plugin"] for step in expected["steps"] if step["evicted"] is None))
        yield Difference(
            ("acceptable",), [one["evicted"] for one in expected["acceptable"]], outcome, f"acceptable {plugins}"
        )
