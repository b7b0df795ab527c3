"""Suite `synchronize`: scripts of readings, failures and rounds against the eviction manager of one node."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podyard.node_agent.core import node_facts, pod_facts
from podyard.node_agent.core.claims import Player
from podyard.node_agent.core.eviction import admission, configuration, messages, signals
from podyard.node_agent.core.eviction.dialogue import Kill, Round
from podyard.node_agent.core.eviction.manager import EvictionConfig, EvictionManager
from podyard.node_agent.core.nodes import THRESHOLD_MET
from podyard.objects import decoding, times
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from tests.conformance import kubelet, shapes
from tests.conformance.differences import ABSENT, Difference, between
from tests.conformance.eviction_host import EvictionHost

PLAYER = Player("")
"""Of no concern here."""
UNORDERED = ("thresholdsMet", "thresholdsFirstObserved", "nodeConditions", "kills", "evictedPods", "activePodsAfter")


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A script."""

    config: dict[str, Any]
    dedicated_image_fs: bool
    split_container_fs: bool
    start_time: str
    pods: list[dict[str, Any]]
    steps: list[dict[str, Any]]


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All traces that are right: an entry for each step."""

    deterministic: bool
    traces: list[list[dict[str, Any] | None]]


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> list[dict[str, Any] | None]:
    """The trace that Podyard leaves."""
    script = msgspec.convert(given, Given)
    layout = kubelet.layout(script.dedicated_image_fs, script.split_container_fs)
    host = EvictionHost(script.start_time, layout, script.pods)
    kind = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    manager = EvictionManager(EvictionConfig.of(configuration.read(kind | script.config)))
    fact: NodeStatusFact | None = None
    trace: list[dict[str, Any] | None] = []
    for step in script.steps:
        match step["op"]:
            case "synchronize":
                found = host.synchronize(manager)
                fact = node_facts.fact("node", "", manager.conditions, fact, host.now, PLAYER)
                trace.append(_told(host, manager, found, fact))
            case "admit":
                trace.append(_admitted(manager, decoding.convert(Pod, step["pod"])))
            case _:
                host.step(step)
                trace.append(None)
    return trace


def _admitted(manager: EvictionManager, pod: Pod) -> dict[str, Any]:
    refusal = admission.refusal(pod, manager.conditions)
    return {"admit": not refusal, "reason": messages.REASON if refusal else "", "message": refusal}


def _told(host: EvictionHost, manager: EvictionManager, found: Round, fact: NodeStatusFact) -> dict[str, Any]:
    event = {
        "type": "Warning",
        "object": "Node node",
        "reason": THRESHOLD_MET,
        "message": f"Attempting to reclaim {found.starved}",
    }
    held = manager.conditions
    return {
        "error": found.error,
        "evictedPods": ["/".join(kill.pod.key) for kill in found.kills],
        "gcCalls": host.collected,
        "kills": [_kill(kill) for kill in found.kills],
        "nodeEvents": [event] if found.starved else [],
        "nodeConditions": [
            {
                "type": one.type,
                "status": one.status,
                "reason": one.reason,
                "message": one.message,
                "lastTransitionSeconds": host.after(times.seconds_of(one.last_transition_time)),
            }
            for one in fact.conditions
            if one.type in node_facts.PRESSURE
        ],
        "underPressure": {
            "memory": signals.MEMORY_PRESSURE in held,
            "disk": signals.DISK_PRESSURE in held,
            "pid": signals.PID_PRESSURE in held,
        },
        "thresholdsMet": [kubelet.threshold(one) for one in manager.thresholds_met],
        "thresholdsFirstObserved": [
            kubelet.threshold(one) | {"firstObservedAtSeconds": host.after(since)}
            for one, since in manager.first_observed.items()
        ],
        "activePodsAfter": list(host.pods),
    }


def _kill(kill: Kill) -> dict[str, Any]:
    generation = kill.pod.metadata.generation
    condition = {"status": "True", "reason": pod_facts.TERMINATION_BY_KUBELET, "observedGeneration": generation}
    return {
        "pod": "/".join(kill.pod.key),
        "gracePeriodOverride": kill.grace_s,
        "message": kill.message,
        "annotations": kill.annotations,
        "disruptionTarget": condition if kill.disruption else None,
    }


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Up to the first step that differs, from the trace that agrees longest."""
    traces: Sequence[Any] = expected["traces"]
    yield from min((list(_first_difference(trace, got)) for trace in traces), key=_how_far)


def _how_far(differences: list[Difference]) -> float:
    """Sort key: the later the first difference, the smaller."""
    return -int(differences[0].where[0].removeprefix("step ")) if differences else float("-inf")


def _first_difference(wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[Difference]:
    for number, (theirs, ours) in enumerate(zip(wanted, found, strict=True)):
        differences = list(_between(f"step {number}", theirs, ours))
        if differences:
            yield from differences
            return


def _between(where: str, wanted: Any, found: Any) -> Iterator[Difference]:
    if wanted is None or found is None:
        if wanted is not found:
            yield Difference((where,), wanted or ABSENT, found or ABSENT, "step")
        return
    for one in between(_sorted(wanted), _sorted(found), (where,)):
        yield one._replace(group=" ".join(one.where[1:]))


def _sorted(entry: dict[str, Any]) -> dict[str, Any]:
    unordered = {name: sorted(entry[name], key=kubelet.as_text) for name in UNORDERED if name in entry}
    return entry | unordered
