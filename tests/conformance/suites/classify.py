"""Suite `classify`: from an object's change to cluster events, and to what reaches the queue."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from podyard.cluster.changes import Change
from podyard.framework.events import ClusterEvent
from podyard.framework.profile import Profile
from podyard.objects.core import Pod
from podyard.proto import actions
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import AttemptResult, DoneRequest
from tests.conformance import profiles, shapes
from tests.conformance.deliveries import Manifest, namespace_of, uid_of
from tests.conformance.differences import Difference, between
from tests.conformance.joined import change_of
from tests.conformance.queue_stage import SESSION, Call, QueueStage


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One change, and what came before it."""

    op: Literal["add", "update", "delete"]
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    schedulers: tuple[str, ...] = ("default-scheduler",)
    assumed_on: str = ""


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    queue_calls: list[dict[str, Any]]
    events: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """The events of the change, and the calls that the queue's handler makes."""
    case = msgspec.convert(given, Given)
    stage = QueueStage([_without_gates(profiles.named(name)) for name in case.schedulers])
    if case.old is not None:
        stage.apply(change_of(None, case.old))
        if case.assumed_on:
            _assume(stage, case.old, case.assumed_on)
    assumed = bool(case.assumed_on)
    stage.take_calls()
    stage.apply(change_of(case.old, case.new))
    calls = [_spelled(call) for call in stage.take_calls() if not _is_between_us(call, case, assumed)]
    told: dict[str, Any] = {"queueCalls": calls}
    return {"events": _events(case)} | told if case.op == "update" else told


def _without_gates(profile: Profile) -> Profile:
    """PreEnqueue has no part in this: some pods are assumed here that it would not let in."""
    return msgspec.structs.replace(profile, pre_enqueue=())


def _assume(stage: QueueStage, manifest: Manifest, node: str) -> None:
    """A scheduler pops the pod and finds a node for it: it waits for its binding."""
    popped = stage.pop()
    if popped is None or popped.uid != uid_of(manifest):
        raise LookupError(f"the queue gave {popped} instead of {uid_of(manifest)}")
    result = AttemptResult(
        namespace=namespace_of(manifest),
        name=manifest["metadata"]["name"],
        uid=popped.uid,
        attempt=stage.attempts[popped.uid],
        outcome="scheduled",
        node=node,
    )
    stage.leader.done(DoneRequest(session=SESSION, results=(result,)), stage.now)


def _is_between_us(call: Call, case: Given, assumed: bool) -> bool:
    """Pods that wait for their binding are still kept here, while they have left the reference's queue: it
    hears only of their end."""
    ends = case.new is None or bool(case.new["spec"].get("nodeName"))
    return assumed and not ends and call.name in ("update", "delete")


def _events(case: Given) -> list[dict[str, Any]]:
    """The pure classification: what the change would be if it were no binding and no repetition."""
    new: Any = case.new
    (pure,) = change_of(case.old, {**new, "metadata": {**new["metadata"], "resourceVersion": "0"}})
    change = Change(pure.resource, pure.uid, pure.old, pure.new, pure.origin)
    return [event_of(event.resource, event.action) for event in change.events]


def event_of(resource: str, action: ActionType) -> dict[str, Any]:
    """An event as the data spells it."""
    label = ClusterEvent(resource, action).label
    return {"resource": resource, "actions": list(actions.names(action)), "value": int(action), "label": label}


def _spelled(call: Call) -> dict[str, Any]:
    incoming = call.incoming
    if incoming is None:
        return {"call": call.name}
    told = {
        "call": call.name,
        "event": event_of(incoming.event.resource, incoming.event.action),
        "oldObj": incoming.old is not None,
        "newObj": incoming.new is not None,
        "preCheck": "none" if call.max_priority is None else f"priority<={call.max_priority}",
    }
    old, _ = incoming.objects
    if isinstance(old, Pod):
        told["oldNodeName"] = old.spec.node_name
    return told


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Everything exactly, lists in order."""
    return between(expected, got)
