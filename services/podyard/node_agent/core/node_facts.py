"""How a node's status is worded.

Sources: pkg/kubelet/nodestatus/setters.go (conditions), pkg/controller/nodelifecycle (taints by condition),
v1.36.2.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from podyard.node_agent.core.claims import Player
from podyard.node_agent.core.eviction import signals
from podyard.objects.meta import is_true
from podyard.objects.times import rfc3339, rfc3339_micro
from podyard.proto.facts import Condition, NodeStatusFact, TaintFact
from podyard.proto.operations import Reason


class Wording(NamedTuple):
    """Reason and message of a condition that holds, and of one that does not; and the node's event when it
    begins, or is over."""

    raised: tuple[str, str]
    calm: tuple[str, str]
    taint: str
    begins: Reason
    ends: Reason


READY: Final = "Ready"
NODE_READY: Final = Reason("NodeReady")
NODE_NOT_READY: Final = Reason("NodeNotReady")
READINGS_STALE: Final = Reason("ReadingsStale")
"""There only while it holds: nothing is evicted, and pressure conditions stay as they are. The kubelet has
none."""
NO_READING: Final = "NoUsableReading"
NOTHING_READ: Final = "nothing was read of the host yet"
PRESSURE: Final[dict[str, Wording]] = {
    signals.MEMORY_PRESSURE: Wording(
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "node.kubernetes.io/memory-pressure",
        Reason("NodeHasInsufficientMemory"),
        Reason("NodeHasSufficientMemory"),
    ),
    signals.DISK_PRESSURE: Wording(
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "node.kubernetes.io/disk-pressure",
        Reason("NodeHasDiskPressure"),
        Reason("NodeHasNoDiskPressure"),
    ),
    signals.PID_PRESSURE: Wording(
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "node.kubernetes.io/pid-pressure",
        Reason("NodeHasInsufficientPID"),
        Reason("NodeHasSufficientPID"),
    ),
}
"""Pressure conditions in the order in which a node shows them."""


def fact(
    node: str,
    uid: str,
    pressure: Collection[str],
    before: NodeStatusFact | None,
    now: float,
    player: Player,
    *,
    unread: str = "",
    unready: str = "",
) -> NodeStatusFact:
    """What the agent says of a node that lives: ready, and under these pressure conditions.

    :param before: the fact it replaces; times of what did not change are kept
    :param unread: why nothing can be read of the node; empty: all is well
    :param unready: why it is not ready; empty: it is
    """
    at = rfc3339(now)
    old = {condition.type: condition for condition in before.conditions} if before is not None else {}
    conditions = [_kept(old, Condition(type=name, status="True" if name in pressure else "False", reason=reason,
                                       message=message, last_transition_time=at))
                  for name, (reason, message) in _worded(pressure)]  # fmt: skip
    ready = Condition(
        type=READY,
        status="False" if unready else "True",
        reason="KubeletNotReady" if unready else "KubeletReady",
        message=unready or "kubelet is posting ready status",
        last_transition_time=at,
    )
    if unread:
        conditions.append(_kept(old, Condition(type=READINGS_STALE, status="True", reason=NO_READING, message=unread,
                                               last_transition_time=at)))  # fmt: skip
    known_taints = {taint.key: taint for taint in before.taints} if before is not None else {}
    taints = [
        known_taints.get(wording.taint) or TaintFact(key=wording.taint, effect="NoSchedule", time_added=at)
        for name, wording in PRESSURE.items()
        if name in pressure
    ]
    return NodeStatusFact(
        node=node,
        node_uid=uid,
        conditions=(*conditions, _kept(old, ready)),
        taints=tuple(taints),
        at=rfc3339_micro(now),
        session=player.session,
        lease=player.lease,
    )


def pressure(stored: NodeStatusFact) -> frozenset[str]:
    """The pressure conditions that a stored fact reports."""
    return frozenset(one.type for one in stored.conditions if one.type in PRESSURE and one.status == "True")


def is_ready(stored: NodeStatusFact) -> bool:
    """Whether it calls the node ready; if not, somebody else has declared the node lost."""
    return is_true(stored.conditions, READY)


def turns(before: NodeStatusFact | None, now: NodeStatusFact) -> tuple[Reason, ...]:
    """Reasons of the node's events when one fact takes another's place: conditions that have turned. What a
    node says first is told from the fact itself (`podyard.telling.events`).

    Source: setters.go, MemoryPressureCondition and its like, ReadyCondition.
    """
    if before is None or before.node_uid != now.node_uid:
        return ()
    old = {one.type: one.status for one in before.conditions}
    turned = [one for one in now.conditions if old.get(one.type, one.status) != one.status]
    return tuple(reason for one in turned if (reason := _reason(one)))


def _reason(condition: Condition) -> Reason | None:
    holds = condition.status == "True"
    if condition.type == READY:
        return NODE_READY if holds else NODE_NOT_READY
    wording = PRESSURE.get(condition.type)
    return None if wording is None else wording.begins if holds else wording.ends


def same(one: NodeStatusFact, other: NodeStatusFact) -> bool:
    """Whether both say the same of the same node; when they said it does not count."""
    return _said(one) == _said(other)


def _said(one: NodeStatusFact) -> tuple[Any, ...]:
    return one.node_uid, one.conditions, one.taints, one.session, one.lease


def _worded(pressure: Collection[str]) -> list[tuple[str, tuple[str, str]]]:
    return [(name, wording.raised if name in pressure else wording.calm) for name, wording in PRESSURE.items()]


def _kept(old: dict[str, Condition], new: Condition) -> Condition:
    """`new`, but the old one if its status is the same: it says since when."""
    found = old.get(new.type)
    if found is None or (found.status, found.reason) != (new.status, new.reason):
        return new
    return found if found.message == new.message else replace(new, last_transition_time=found.last_transition_time)
