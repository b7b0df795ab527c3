"""The binder's judgement of one decision: is the pod still there to be bound, and does the node still take
it?

A decision was made on a view that other schedulers' decisions may have overtaken. So all filters are asked
again, unless it is certain (`skipping`) that the cluster is still the one that the scheduler asked them about
(docs/rules.md, binder-judges-in-one-order).
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from podyard.binder.core import points
from podyard.binder.core.points import Prepared, Wait
from podyard.binder.core.world import World
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework import one_node
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import ObjectWrite
from podyard.framework.profile import Profile
from podyard.framework.status import Code
from podyard.objects import host_ports
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.proto.binder_api import NODE_GONE, BindAnswer, BindResult, Decision
from podyard.proto.placement import BoundPod, Release, Usage

CAUSE_GONE: Final = "podGone"
CAUSE_BOUND: Final = "alreadyBound"
CAUSE_GATED: Final = "SchedulingGates"
CAUSE_FIT: Final = "fit"
CAUSE_PORTS: Final = "ports"
CAUSE_PROFILE: Final = "profile"
CAUSE_NODE_NAME: Final = "NodeName"

_BY_DEFAULT: Final = NodeResourcesFit(FitArgs())

ChildTrace: TypeAlias = Callable[[str], str]
"""From the traceparent of a cycle to that of the bind span below it."""


class Accepted(msgspec.Struct, frozen=True):
    """The node takes the pod."""

    bound: BoundPod
    pod: PodView
    writes: tuple[ObjectWrite, ...] = ()
    """Objects that must become durable with the binding."""
    waits: tuple[Wait, ...] = ()
    """PreBind plugins that wait: the pod is not bound yet."""
    memory: CycleState | None = None
    """What PreBind plugins remember of the decision now; None: none was asked."""
    skipped: bool = False
    """The filters were not asked again."""


Verdict: TypeAlias = Accepted | BindAnswer


def judge(
    decision: Decision,
    world: World,
    profiles: Mapping[str, Profile],
    child_trace: ChildTrace,
    memory: CycleState | None = None,
    *,
    skip: bool = False,
) -> Verdict:
    """Judge one decision as things are now; the world must have reached the decision's position. Changes
    nothing.

    :param memory: what PreBind plugins remember of this decision
    :param skip: the filters need not be asked again
    """
    before = _settled_before(decision, world)
    if before is not None:
        return before
    pod = world.view.pods_by_uid.get(decision.uid)
    if pod is None or pod.gone or pod.key != (decision.namespace, decision.name):
        return answer(decision, "gone", CAUSE_GONE, f"no pod {decision.namespace}/{decision.name} with this uid exists")
    if pod.deleting or pod.ended:
        return answer(decision, "gone", CAUSE_GONE, "the pod is being deleted" if pod.deleting else "the pod has ended")
    if pod.stored.spec.scheduling_gates:
        return answer(decision, "conflict", CAUSE_GATED, f"pod {pod.name} has non-empty .spec.schedulingGates")
    profile = profiles.get(decision.profile)
    if profile is None:
        return answer(decision, "error", CAUSE_PROFILE, f"the binder has no profile {decision.profile!r}")
    return _node_takes(decision, pod, profile, world, child_trace, memory, skip=skip)


def refuse(decision: Decision, world: World, cause: str, reason: str) -> BindAnswer:
    """The answer to a decision that is not judged: what became of its pod already, else an error."""
    return _settled_before(decision, world) or answer(decision, "error", cause, reason)


def bound_before(decision: Decision, node: str, attempt: str) -> BindAnswer:
    """The answer if the pod is, or was, bound on `node` by `attempt`."""
    if attempt == decision.attempt:
        return BindAnswer(attempt=decision.attempt, uid=decision.uid, result="bound", node=node)
    how = f"attempt {attempt}" if attempt else "its creator"
    return answer(decision, "alreadyBound", CAUSE_BOUND, f"bound to {node} by {how}", node=node)


def _settled_before(decision: Decision, world: World) -> BindAnswer | None:
    """A uid is bound once, for ever: released ones keep their answer."""
    placed = world.table.placed(decision.uid)
    if placed is not None and placed.bound is not None:
        return bound_before(decision, placed.bound.node, placed.bound.attempt)
    ended = world.view.placements.get(decision.uid)
    if isinstance(ended, Release):
        return answer(
            decision, "alreadyBound", CAUSE_BOUND, f"bound to {ended.node}, ended: {ended.reason}", node=ended.node
        )
    return None


def _node_takes(
    decision: Decision,
    pod: PodView,
    profile: Profile,
    world: World,
    child_trace: ChildTrace,
    memory: CycleState | None = None,
    *,
    skip: bool = False,
) -> Verdict:
    table, node, usage = world.table, decision.node, pod.usage
    row = table.row_of.get(node)
    if row is None:
        return answer(decision, "conflict", NODE_GONE, f"node {node} does not exist")
    if table.kept_uids or usage.ports or not table.has_room(row, usage):  # else no rule has anything against it
        lacking = _lacking(decision, profile, table, row, usage)
        if lacking is not None:
            return lacking
    if pod.stored.spec.node_name not in ("", node):
        return answer(decision, "conflict", CAUSE_NODE_NAME, f"its creator wants {pod.stored.spec.node_name}")
    if not skip:
        status = one_node.filter_one(profile, node, pod, world.snapshot)
        if not status.ok:
            result: BindResult = "error" if status.code == Code.ERROR else "conflict"
            return answer(decision, result, status.plugin or NODE_GONE, *status.reasons)
    prepared = points.prepare(profile, pod, world.snapshot, node, decision.volumes, memory, times=world.point_times)
    if not prepared.status.ok:
        return not_prepared(decision, prepared)
    bound = as_bound(decision, pod, child_trace)
    return Accepted(bound, pod, prepared.writes, prepared.waits, prepared.memory, skipped=skip)


def as_bound(decision: Decision, pod: PodView, child_trace: ChildTrace) -> BoundPod:
    """The pod as its node is to have it."""
    return pod.bound_to(
        decision.node,
        attempt=decision.attempt,
        decided_at=decision.position,
        volumes=decision.volumes,
        trace=child_trace(decision.trace),
    )


def not_prepared(decision: Decision, prepared: Prepared) -> BindAnswer:
    """The answer if PreBind or Bind said no."""
    refused: BindResult = "conflict" if prepared.overtaken else "error"
    return answer(decision, refused, prepared.status.plugin, *prepared.status.reasons)


def _lacking(decision: Decision, profile: Profile, table: NodeTable, row: int, usage: Usage) -> BindAnswer | None:
    """What the node has too little of, that counted for which room is kept there; `None`: nothing."""
    kept = [pod for uid, pod in table.kept_on(decision.node).items() if uid != decision.uid] if table.kept_uids else ()
    if not kept:
        return _lacking_as_is(decision, profile, table, row, usage)
    with table.trial(row) as trial:
        for pod in kept:
            trial.add(pod)
        return _lacking_as_is(decision, profile, table, row, usage)


def _lacking_as_is(decision: Decision, profile: Profile, table: NodeTable, row: int, usage: Usage) -> BindAnswer | None:
    short = shortages(profile, table, row, usage)
    if short:
        return _overtaken(decision, table, answer(decision, "conflict", CAUSE_FIT, *short))
    if usage.ports and (taken := taken_ports(table, decision.node, usage)):
        return _overtaken(decision, table, answer(decision, "conflict", CAUSE_PORTS, *taken))
    return None


def _overtaken(decision: Decision, table: NodeTable, refused: BindAnswer) -> BindAnswer:
    """The node had room for the pod by what its scheduler knew: who came last has it."""
    on_node = list(table.pods_on(decision.node).values())
    if not on_node:
        return refused
    return msgspec.structs.replace(refused, won=f"{on_node[-1].namespace}/{on_node[-1].name}")


def shortages(profile: Profile, table: NodeTable, row: int, usage: Usage) -> tuple[str, ...]:
    """What the node has too little of: the rule of the profile's own NodeResourcesFit, with its arguments.

    So what the plugin is told not to look at is not refused here either. A profile without the plugin is
    judged by its defaults: no node gets more than it has.
    """
    for plugin in profile.filter:
        if isinstance(plugin, NodeResourcesFit):
            return plugin.lacking(usage, table, row)
    return _BY_DEFAULT.lacking(usage, table, row)


def taken_ports(table: NodeTable, node: str, usage: Usage) -> list[str]:
    """Which of the pod's host ports another pod of the node has. Source:
    framework.HostPortInfo.CheckConflict."""
    used = [port for placed in table.pods_on(node).values() for port in placed.usage.ports]
    return [
        f"port {port.port}/{port.protocol} is taken"
        for port in usage.ports
        if any(host_ports.conflict(port, other) for other in used)
    ]


def answer(decision: Decision, result: BindResult, cause: str, *reasons: str, node: str = "") -> BindAnswer:
    """What is said about a decision.

    :param node: where the pod is bound already
    """
    return BindAnswer(
        attempt=decision.attempt, uid=decision.uid, result=result, node=node, cause=cause, reasons=reasons
    )
