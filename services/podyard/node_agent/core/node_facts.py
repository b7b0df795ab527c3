"""How a node's status is worded.

Sources: pkg/kubelet/nodestatus/setters.go (conditions), pkg/controller/nodelifecycle (taints by condition),
v1.36.2.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from podyard.node_agent.core.eviction import signals
from podyard.objects.times import rfc3339, rfc3339_micro
from podyard.proto.facts import Condition, NodeStatusFact, TaintFact


class Wording(NamedTuple):
    """Reason and message of a condition that holds, and of one that does not."""

    raised: tuple[str, str]
    calm: tuple[str, str]
    taint: str


READY: Final = "Ready"
PRESSURE: Final[dict[str, Wording]] = {
    signals.MEMORY_PRESSURE: Wording(
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "node.kubernetes.io/memory-pressure",
    ),
    signals.DISK_PRESSURE: Wording(
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "node.kubernetes.io/disk-pressure",
    ),
    signals.PID_PRESSURE: Wording(
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "node.kubernetes.io/pid-pressure",
    ),
}
"""Pressure conditions in the order in which a node shows them."""


def fact(node: str, uid: str, pressure: Collection[str], before: NodeStatusFact | None, now: float) -> NodeStatusFact:
    """What the agent says of a node that lives: ready, and under these pressure conditions.

    :param before: the fact it replaces; times of what did not change are kept
    """
    at = rfc3339(now)
    old = {condition.type: condition for condition in before.conditions} if before is not None else {}
    conditions = [_kept(old, Condition(type=name, status="True" if name in pressure else "False", reason=reason,
                                       message=message, last_transition_time=at))
                  for name, (reason, message) in _worded(pressure)]  # fmt: skip
    ready = Condition(
        type=READY,
        status="True",
        reason="KubeletReady",
        message="kubelet is posting ready status",
        last_transition_time=at,
    )
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
    )


def pressure(stored: NodeStatusFact) -> frozenset[str]:
    """The pressure conditions that a stored fact reports."""
    return frozenset(one.type for one in stored.conditions if one.type in PRESSURE and one.status == "True")


def is_ready(stored: NodeStatusFact) -> bool:
    """Whether it calls the node ready; if not, somebody else has declared the node lost."""
    return any(one.type == READY and one.status == "True" for one in stored.conditions)


def same(one: NodeStatusFact, other: NodeStatusFact) -> bool:
    """Whether both say the same of the same node; when they said it does not count."""
    return (one.node_uid, one.conditions, one.taints) == (other.node_uid, other.conditions, other.taints)


def _worded(pressure: Collection[str]) -> list[tuple[str, tuple[str, str]]]:
    return [(name, wording.raised if name in pressure else wording.calm) for name, wording in PRESSURE.items()]


def _kept(old: dict[str, Condition], new: Condition) -> Condition:
    """`new`, but the old one if its status is the same: it says since when."""
    found = old.get(new.type)
    return found if found is not None and (found.status, found.reason) == (new.status, new.reason) else new
