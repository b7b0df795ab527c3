"""Suite `requeue`: scripts of cluster changes and queue operations; after each step the whole state of the
queue, and what the hints said.

A pod's binding is part of its object in the reference; here it is a commit record, and its end the release in
one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from podyard.framework.events import ClusterEvent
from podyard.proto.actions import ActionType
from podyard.queue.core.hints import Strategy
from podyard.queue.core.queued_pod import QueuedPod
from tests.conformance import queue_script
from tests.conformance.differences import ABSENT, Difference, between, same
from tests.conformance.out_of_tree import OutOfTree
from tests.conformance.queue_stage import Call, Heard, QueueStage, hints_of


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script, and the cluster before it."""

    config: dict[str, Any] | None
    objects: list[dict[str, Any]]
    steps: list[queue_script.Step]
    plugins: list[OutOfTree] = []


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told of one step. `note` is for people."""

    now: float | None = None
    popped: str | None = None
    note: str = ""
    state: dict[str, Any] | None = None
    calls: list[dict[str, Any]] = []


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: list[Told]


def check(given: dict[str, Any], expected: Any) -> None:
    """
    :raises msgspec.ValidationError: if a case has another shape than this suite compares
    """
    script, told = msgspec.convert(given, Given), msgspec.convert(expected, Expected)
    if len(script.steps) != len(told.steps):
        raise msgspec.ValidationError(f"{len(script.steps)} steps, {len(told.steps)} expected")


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What each step made of the queue."""
    script = msgspec.convert(given, Given)
    player = queue_script.Player(script.config, script.plugins, script.objects)
    steps: list[dict[str, Any]] = []
    for step in script.steps:
        try:
            popped = player.play(step)
        except queue_script.NeverPoppedError as error:
            return {"steps": steps, "ended": str(error)}
        stage = player.stage
        calls = [_call(stage, call) for call in stage.take_calls()]
        steps.append({"now": _time(stage.now), "popped": popped, "calls": calls, "state": state_of(stage)})
    return {"steps": steps}


def state_of(stage: QueueStage) -> dict[str, Any]:
    """The queue as the data spells it; what is empty in a pod is left out.

    Nobody is popped from errorBackoffQ, so pods that expire together have no order there: the data has them
    by name.
    """
    queue = stage.queue
    parked = list(queue.parked)
    state: dict[str, Any] = {
        "now": _time(stage.now),
        "activeQ": [_name(pod) for pod in queue.active],
        "backoffQ": _expiring(queue.backing_off),
        "errorBackoffQ": sorted(_expiring(queue.errors), key=lambda one: (one["expires"], one["pod"])),
        "unschedulable": sorted(_name(pod) for pod in parked if not pod.gating_plugin),
        "gated": sorted(_name(pod) for pod in parked if pod.gating_plugin),
        "inFlight": list(queue.in_flight.uids()),
        "inFlightList": queue.in_flight.listing(),
        "schedulingCycle": queue.cycle,
        "pods": [_pod(pod) for pod in sorted(_pods(stage), key=lambda pod: (_name(pod), pod.uid))],
    }
    nominated = _nominated(stage)
    return state | ({"nominated": nominated} if nominated else {})


def _expiring(pods: Iterable[QueuedPod]) -> list[dict[str, Any]]:
    return [{"pod": _name(pod), "expires": pod.backoff_expiry} for pod in pods]


def _pods(stage: QueueStage) -> Sequence[QueuedPod]:
    """All that are queued or in flight."""
    queue = stage.queue
    found = {pod.uid: pod for pool in (queue.active, queue.backing_off, queue.errors, queue.parked) for pod in pool}
    for attempt in stage.leader.attempts.values():
        if attempt.state == "open" and attempt.pod.uid in queue.in_flight:
            found.setdefault(attempt.pod.uid, attempt.pod)
    return list(found.values())


def _nominated(stage: QueueStage) -> dict[str, list[str]]:
    """Without pods that a scheduler has assumed: here the queue hears of it when their attempt is done."""
    pods, told = stage.queue.pods, dict[str, list[str]]()
    for node, uids in stage.queue.nominator.by_node().items():
        names = [_name(pods[uid]) if uid in pods else uid for uid in uids if uid not in stage.assumed]
        if names:
            told[node] = names
    return told


def _pod(pod: QueuedPod) -> dict[str, Any]:
    initial = pod.initial_attempt_at
    told: dict[str, Any] = {
        "pod": _name(pod),
        "uid": pod.uid,
        "attempts": pod.attempts,
        "unschedulableCount": pod.unschedulable_count,
        "consecutiveErrorsCount": pod.consecutive_errors,
        "timestamp": _time(pod.timestamp),
        "initialAttemptTimestamp": None if initial is None else _time(initial),
        "backoffExpiry": pod.backoff_expiry,
    }
    more = {
        "unschedulablePlugins": sorted(pod.unschedulable_plugins),
        "pendingPlugins": sorted(pod.pending_plugins),
        "gatingPlugin": pod.gating_plugin,
        "wasFlushed": pod.was_flushed,
    }
    return told | {key: value for key, value in more.items() if value}


def _call(stage: QueueStage, call: Call) -> dict[str, Any]:
    told: dict[str, Any] = {"call": call.name}
    if call.pod is not None:
        told["pod"] = _name(call.pod)
    if call.incoming is not None:
        told["event"] = _event(call.incoming.event)
        told["interested"] = stage.queue.hints.is_interested(call.incoming.event)
        told["considered"] = {_name(heard.pod): _answers(heard) for heard in call.heard}
    elif call.heard:
        told["events"] = [{"event": _event(heard.incoming.event), **_answers(heard)} for heard in call.heard]
    told["moved"] = {_name(one.pod): {"from": one.before, "to": one.after} for one in call.moved}
    return told


def _answers(heard: Heard) -> dict[str, Any]:
    verdict = heard.verdict
    if verdict is None:
        return {"strategy": "n/a"}
    hints = hints_of(verdict)
    return ({"hints": dict(hints)} if hints else {}) | {"strategy": _strategy(verdict.strategy)}


def _strategy(strategy: Strategy) -> Literal["skip", "afterBackoff", "immediately"]:
    return strategy.value


def _event(event: ClusterEvent) -> dict[str, Any]:
    return {"resource": event.resource, "value": int(event.action), "label": event.label}


def _name(pod: QueuedPod) -> str:
    return "/".join(pod.key)


def _time(seconds: float) -> float:
    return round(seconds, 6)


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Step by step, up to the first step that differs: later ones differ because of it."""
    for number, (wanted, found) in enumerate(zip(expected["steps"], got["steps"], strict=False)):
        differences = list(_compare_step((f"step {number}",), wanted, found))
        if differences:
            yield from differences
            return
    if "ended" in got:
        yield Difference((f"step {len(got['steps'])}",), "goes on", got["ended"], "ended")


def excerpt(expected: Any, got: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """For people: of each step what was called and where the pods are, up to the first that differs, which is
    told in full."""
    theirs, ours = dict[str, Any](), dict[str, Any]()
    for number, (wanted, found) in enumerate(zip(expected["steps"], got["steps"], strict=False)):
        differs = bool(list(_compare_step((), wanted, found)))
        asked = {key: found[key] for key in wanted if key in found}
        step, brief = f"step {number}", (_gist(wanted), _gist(asked))
        if differs:
            theirs[step], ours[step] = dict(wanted), asked
            break
        if any(brief):
            theirs[step], ours[step] = brief
    return theirs, ours


def _gist(step: Mapping[str, Any]) -> dict[str, Any]:
    pools = ("activeQ", "backoffQ", "errorBackoffQ", "unschedulable", "gated", "inFlightList", "nominated")
    state = step.get("state", {})
    told = {"popped": step.get("popped"), "calls": [_brief(call) for call in step.get("calls", [])]}
    return {key: value for key, value in (told | {pool: state.get(pool) for pool in pools}).items() if value}


def _compare_step(where: tuple[str, ...], wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    for key in ("now", "popped", "state"):
        if key in wanted:
            for one in between(wanted[key], found[key], (*where, key)):
                yield one._replace(group=" ".join(one.where[1:3]))
    if "calls" in wanted or (found["calls"] and "state" in wanted):
        yield from _compare_calls(where, wanted.get("calls", []), found["calls"])


def _compare_calls(where: tuple[str, ...], wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[Difference]:
    """Which calls, of what, in which order; then of each the hints' answers, what they amount to, and what
    moved."""
    theirs, ours = [_brief(call) for call in wanted], [_brief(call) for call in found]
    if theirs != ours:
        yield Difference((*where, "calls"), theirs, ours, "calls")
        return
    for call, (one, other) in enumerate(zip(wanted, found, strict=True)):
        yield from _compare_call((*where, f"call {call}", one["call"]), one, other)


def _brief(call: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (call["call"], call.get("pod", ""), _label(call))))


def _label(heard: Mapping[str, Any]) -> str:
    """An event by its label; by all that it is if the label does not say it."""
    event = heard.get("event")
    if event is None:
        return ""
    alike = event["label"] == ClusterEvent(event["resource"], ActionType(event["value"])).label
    return event["label"] if alike else f"{event['label']} ({event['resource']} {event['value']})"


def _compare_call(where: tuple[str, ...], wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    moved = {one["pod"]: {"from": one["from"], "to": one["to"]} for one in wanted.get("moved", [])}
    for one in between(moved, found["moved"], (*where, "moved")):
        yield one._replace(group="moved")
    if "interested" in wanted and not same(wanted["interested"], found["interested"]):
        yield Difference((*where, "interested"), wanted["interested"], found["interested"], "interested")
    for one in wanted.get("considered", []):
        yield from _compare_answers((*where, one["pod"]), one, found["considered"].get(one["pod"]))
    theirs, ours = wanted.get("events", []), found.get("events", [])
    labels = [_label(one) for one in theirs], [_label(one) for one in ours]
    if not same(*labels):
        yield Difference((*where, "events"), *labels, "events")
        return
    for one, other in zip(theirs, ours, strict=True):
        yield from _compare_answers((*where, _label(one)), one, other)


def _compare_answers(where: tuple[str, ...], wanted: Mapping[str, Any], found: Any) -> Iterator[Difference]:
    if found is None:
        yield Difference(where, dict(wanted), ABSENT, "considered")
        return
    hints = wanted.get("hints", {})
    for one in between(hints, found.get("hints", {}), (*where, "hints")):
        yield one._replace(group=f"hint {one.where[-1]}")
    if wanted["strategy"] != found["strategy"]:
        yield Difference((*where, "strategy"), wanted["strategy"], found["strategy"], "strategy")
