"""Which nodes are lost: a state machine of one term.

A node of which nothing is heard for the grace period is unreachable: its conditions become Unknown, it is
tainted NoSchedule at once, and NoExecute as `zones` allows; `taint_eviction` ends its pods. A node that says
itself that it is not ready is tainted likewise. What is said stands in a fact of its own, joined to the node
by every reader; the first sign of life ends it.

Signs of life are heartbeats, what its agent says, and of a kubelet that is not Podyard's the conditions that
it writes and the lease that it renews.

Silence counts only while we hear the bus ourselves, and from the beginning of the term
(docs/rules.md, silence-is-what-we-listened-to).

Source: kubernetes v1.36.2, pkg/controller/nodelifecycle/node_lifecycle_controller.go (monitorNodeHealth,
tryUpdateNodeHealth, doNoScheduleTaintingPass, processTaintBaseEviction). A term that begins leaves NoExecute
taints where they are; the reference takes them off, and puts them on anew.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.view import ClusterView
from podyard.objects.core import Node
from podyard.objects.taints import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE
from podyard.objects.times import rfc3339, rfc3339_micro
from podyard.proto import subjects
from podyard.proto.facts import Condition, NodeLifeFact, TaintFact
from podyard.proto.operations import Reason
from podyard.workloads.core.actions import Changed, Done, Listed, Work
from podyard.workloads.core.taint_eviction import TaintEviction
from podyard.workloads.core.zones import EXCLUDED, Rates, Zones, zone_of

READY: Final = "Ready"
NOT_READY_NOW: Final = Reason("NodeNotReady")
EVICTION: Final = Reason("TaintManagerEviction")
NODE_CONTROLLER: Final = "node-controller"
TAINT_CONTROLLER: Final = "taint-eviction-controller"
"""Who reports these, as Kubernetes calls them. Source of the second: cmd/kube-controller-manager/names."""
SILENCED: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that become Unknown. NetworkUnavailable is not the kubelet's."""
TAINTS: Final[Mapping[tuple[str, str], str]] = {
    (READY, "False"): NOT_READY,
    (READY, "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
"""Taints NoSchedule by condition and status. Source: nodeConditionToTaintKeyStatusMap."""
LEASES: Final = "leases"
LEASE_NAMESPACE: Final = "kube-node-lease"
"""Where kubelets renew a lease named after their node. Source: api/core/v1/types.go, NamespaceNodeLease."""
STALLED_S: Final = 2.0
"""A look at the nodes that is so late tells that we did not run: what came meanwhile was not heard in
time."""
POLL_S: Final = 0.1
"""How soon to see whether the view has passed own facts, if no change comes."""
RETRY_S: Final = 1.0
"""Before facts that could not be stored are compared again."""
NEVER: Final = float("inf")


class Periods(NamedTuple):
    """Seconds. Source: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go, and NodeMonitorPeriod of
    cmd/kube-controller-manager."""

    monitor_s: float = 5.0
    """Between two looks at the nodes."""
    grace_s: float = 50.0
    """Silence after which a node is lost."""
    startup_s: float = 60.0
    """The same of a node of which nobody has said yet whether it is ready."""


# ---- what the core wants done ------------------------------------------------------------------------------


class Saying(NamedTuple):
    """A fact for its subject, None for a marker, over the version with the sequence `expect`."""

    node: str
    fact: NodeLifeFact | None
    expect: int


class Say(NamedTuple):
    """Store these facts, each by itself; answered by `Said`."""

    number: int
    facts: Sequence[Saying]


class Announce(NamedTuple):
    """Tell people about a node or pod, by an event of this controller."""

    key: ObjectKey
    uid: str
    reason: Reason
    message: str
    controller: str


Ask: TypeAlias = Say | Work
Effect: TypeAlias = Ask | Announce

# ---- what the core is told ---------------------------------------------------------------------------------


class Hearing(NamedTuple):
    """We hear the bus now, or do not any more; until it is said we do not."""

    hears: bool


class Beat(NamedTuple):
    """A node's sign of life was heard."""

    node: str


class Said(NamedTuple):
    """Facts were stored up to `position`; 0 if none. Of those that `failed` it is not known."""

    number: int
    position: int
    failed: bool


class Tick(NamedTuple):
    """Time passed."""


Message: TypeAlias = Changed | Listed | Hearing | Beat | Said | Done | Tick


class Health:
    """What is known of one node."""

    def __init__(self, view: NodeView, now: float) -> None:
        self.name = view.name
        self.uid = view.uid
        self.heard_at = now
        """When it gave a sign of life, or was seen first."""
        self.lost = view.lost is not None
        taints = () if view.life is None else view.life.taints
        self.given_up = next((taint.key for taint in taints if taint.effect == NO_EXECUTE), "")
        """Key of its taint NoExecute that is ours; empty: none."""
        self.see(view)

    def see(self, view: NodeView) -> None:
        """It has changed."""
        self.reported = view.reported
        self.zone = zone_of(view.labels)
        self.counts = EXCLUDED not in view.labels
        self.says = _ready(view.reported)
        """Status of the condition Ready as it, or its creator, says; empty if nobody does."""
        self.plain = not any((one.type, one.status) in TAINTS for one in view.reported.status.conditions)
        """Nothing needs to be said of it as long as it is heard."""

    @property
    def ready(self) -> str:
        """Status of the condition Ready as we see it."""
        return "Unknown" if self.lost else self.says


class NodeLife:
    """One term. Owned by one task."""

    def __init__(self, view: ClusterView, periods: Periods, rates: Rates) -> None:
        self._view = view
        self._periods = periods
        self._zones = Zones(rates)
        self._evictions = TaintEviction(view)
        self._health: dict[str, Health] = {}
        self._hears = False
        self._hears_since = NEVER
        """Since when every sign of life would have been heard."""
        self._look_at = NEVER
        """When all nodes are looked at next; never before the first listing."""
        self._number = 0
        self._saying = False
        self._said_to = 0
        """The view must reach this position before facts are compared again."""
        self._dirty: dict[str, None] = {}
        """Nodes whose fact may have to be another one."""
        self._say_at = 0.0
        self._now = 0.0

    @property
    def wake_at(self) -> float:
        """When a `Tick` is due, seconds since 1970."""
        due = self._look_at
        if self._hears:
            due = min(due, self._zones.next_at(), self._evictions.wake_at(self._now, POLL_S))
        if self._dirty and not self._saying:
            due = min(due, max(self._say_at, self._now + POLL_S))
        return due

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done.

        :param now: seconds since 1970, UTC
        """
        self._now = now
        if now > self._look_at + STALLED_S:
            self._begin_hearing(now)
        effects: list[Effect] = []
        match message:
            case Beat(node):
                self._sign(node, now)
            case Changed(changes):
                self._follow(changes, now)
            case Listed():
                self._look_at, self._said_to = now, 0
                self._evictions.listed()
            case Hearing(hears):
                self._hears = hears
                self._begin_hearing(now)
            case Said():
                self._settle(message, now)
            case Done():
                self._evictions.settle(message, now)
            case Tick():
                pass
        if now >= self._look_at:
            effects += self._look(now)
        if self._hears:
            self._give_up(now)
            works, news = self._evictions.due(now)
            effects += [_told(one.key, one.uid, one.cancelled) for one in news]
            effects += works
        return [*effects, *self._say(now)]

    # ---- what comes in -------------------------------------------------------------------------------------

    def _begin_hearing(self, now: float) -> None:
        """Every node has its time again, and so have the pods of those that are lost."""
        self._hears_since = now
        self._evictions.spare(now + self._periods.grace_s)

    def _sign(self, name: str, now: float) -> None:
        health = self._health.get(name)
        if health is not None:
            health.heard_at = now
            if health.lost:
                health.lost = False
                self._dirty[name] = None
                if not _given_up(health.ready):
                    self._let_go(health)

    def _follow(self, changes: Sequence[Change], now: float) -> None:
        for change in changes:
            if change.resource == subjects.NODES:
                self._note(change, now)
            elif change.resource == LEASES and _renewed(change):
                self._sign(change.key.name, now)
        self._evictions.follow(changes, now)

    def _note(self, change: Change, now: float) -> None:
        old, new = change.old, change.new
        name = change.key.name
        health = self._health.get(name)
        self._dirty[name] = None
        if new is None or health is None or health.uid != new.uid:
            return  # the next look at all nodes finds it
        zone = health.zone
        health.see(new)
        if health.zone != zone:
            self._zones.leave(zone, name)
        if old is not None and not change.relisted and _has_spoken(old, new):
            self._sign(name, now)

    def _settle(self, said: Said, now: float) -> None:
        if said.number != self._number or not self._saying:
            return
        self._saying = False
        self._said_to = said.position
        if said.failed:
            self._say_at = now + RETRY_S

    # ---- looking at all nodes ------------------------------------------------------------------------------

    def _look(self, now: float) -> list[Effect]:
        self._look_at = now + self._periods.monitor_s
        self._know_nodes(now)
        effects: list[Effect] = []
        for health in self._health.values():
            if self._is_silent(health, now) and not health.lost:
                health.lost = True
                if health.says == "True":
                    message = f"Node {health.name} status is now: {NOT_READY_NOW}"
                    key = ObjectKey(subjects.NODES, "", health.name)
                    effects.append(Announce(key, health.uid, NOT_READY_NOW, message, NODE_CONTROLLER))
            self._decide(health)
        self._judge_zones(now)
        said_of = [
            health.name for health in self._health.values() if health.lost or health.given_up or not health.plain
        ]
        self._dirty.update(dict.fromkeys((*said_of, *self._view.node_lives)))
        return effects

    def _know_nodes(self, now: float) -> None:
        """Nodes that came are waited for from now on, those that went are forgotten."""
        nodes = self._view.nodes
        for name, health in list(self._health.items()):
            if name not in nodes or nodes[name].uid != health.uid:
                self._zones.leave(health.zone, name)
                del self._health[name]
        for name, view in nodes.items():
            health = self._health.get(name)
            if health is None:
                self._health[name] = Health(view, now)
        self._zones.keep({health.zone for health in self._health.values()}, now)

    def _is_silent(self, health: Health, now: float) -> bool:
        grace_s = self._periods.grace_s if health.says else self._periods.startup_s
        return self._hears and now > max(health.heard_at, self._hears_since) + grace_s

    def _decide(self, health: Health) -> None:
        """What its taint NoExecute is to be. Source: processTaintBaseEviction."""
        wanted = _given_up(health.ready)
        if wanted and not health.given_up:
            self._zones.wait(health.zone, health.name)
        else:
            self._let_go(health)
            health.given_up = wanted

    def _let_go(self, health: Health) -> None:
        self._zones.leave(health.zone, health.name)
        health.given_up = ""

    def _judge_zones(self, now: float) -> None:
        counts: dict[str, tuple[int, int]] = {}
        for health in self._health.values():
            if health.counts:
                ready, others = counts.get(health.zone, (0, 0))
                is_ready = health.ready == "True"
                counts[health.zone] = ready + is_ready, others + (not is_ready)
        match self._zones.judge(counts, now):
            case "entered":
                for health in self._health.values():
                    self._let_go(health)
            case "left":
                for health in self._health.values():
                    health.heard_at = now
            case _:
                pass

    def _give_up(self, now: float) -> None:
        """Taint the nodes NoExecute whose turn it is."""
        for name in self._zones.due(now):
            health = self._health[name]
            health.given_up = _given_up(health.ready)
            self._dirty[name] = None

    # ---- what is said --------------------------------------------------------------------------------------

    def _say(self, now: float) -> Sequence[Effect]:
        """Compare facts with what they are to be, as soon as the view shows all that was said before."""
        if not self._dirty or self._saying or self._view.position < self._said_to or now < self._say_at:
            return ()
        facts: list[Saying] = []
        for name in self._dirty:
            there, node, health = self._view.node_lives.get(name), self._view.nodes.get(name), self._health.get(name)
            if node is not None and health is None:
                continue  # the next look at all nodes finds it
            wanted = None if node is None or health is None else _fact(health, there, now)
            if not _same(there, wanted):
                facts.append(Saying(name, wanted, self._view.version_of(subjects.node_life(name))))
        self._dirty.clear()
        if not facts:
            return ()
        self._number += 1
        self._saying = True
        self._dirty.update(dict.fromkeys(one.node for one in facts))  # compared once more when they are stored
        return (Say(self._number, facts),)


def _has_spoken(old: NodeView, new: NodeView) -> bool:
    """Whether whoever keeps the node has said something of it: its agent, or another kubelet in its
    status."""
    if new.status is not None:
        return new.status is not old.status
    return new.stored.status.conditions != old.stored.status.conditions


def _renewed(change: Change) -> bool:
    """Whether it is a node's lease, written just now."""
    return change.key.namespace == LEASE_NAMESPACE and change.new is not None and not change.relisted


def _given_up(ready: str) -> str:
    """Key of the taint NoExecute for a status of the condition Ready; empty: none."""
    return {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready, "")


def _ready(node: Node) -> str:
    return next((one.status for one in reversed(node.status.conditions) if one.type == READY), "")


def _fact(health: Health, there: NodeLifeFact | None, now: float) -> NodeLifeFact | None:
    """What is to be said of a node; None if nothing."""
    before = there if there is not None and there.node_uid == health.uid else None
    conditions = _conditions(health, before, now) if health.lost else ()
    taints = _taints(health, conditions, before, now)
    if not conditions and not taints:
        return None
    return NodeLifeFact(
        node=health.name, node_uid=health.uid, conditions=conditions, taints=taints, at=rfc3339_micro(now)
    )


def _conditions(health: Health, before: NodeLifeFact | None, now: float) -> tuple[Condition, ...]:
    known = {} if before is None else {one.type: one for one in before.conditions}
    reported = {one.type: one.status for one in health.reported.status.conditions}
    return tuple(
        known.get(name) or _unknown(name, name in reported, now)
        for name in SILENCED
        if reported.get(name) != "Unknown" or name == READY
    )


def _unknown(name: str, was_reported: bool, now: float) -> Condition:
    reason, message = (
        ("NodeStatusUnknown", "Kubelet stopped posting node status.")
        if was_reported
        else ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    )
    return Condition(type=name, status="Unknown", reason=reason, message=message, last_transition_time=rfc3339(now))


def _taints(
    health: Health, conditions: Sequence[Condition], before: NodeLifeFact | None, now: float
) -> tuple[TaintFact, ...]:
    """By condition, as far as nobody else has put them on the node."""
    statuses = {one.type: one.status for one in (*health.reported.status.conditions, *conditions)}
    wanted: list[tuple[str, Literal["NoSchedule", "NoExecute"]]] = [
        (TAINTS[one], NO_SCHEDULE) for one in statuses.items() if one in TAINTS
    ]
    if health.given_up:
        wanted.append((health.given_up, NO_EXECUTE))
    theirs = {(taint.key, taint.effect) for taint in health.reported.spec.taints}
    known = {} if before is None else {(taint.key, taint.effect): taint for taint in before.taints}
    return tuple(
        known.get((key, effect)) or TaintFact(key=key, effect=effect, time_added=rfc3339(now))
        for key, effect in wanted
        if (key, effect) not in theirs
    )


def _same(one: NodeLifeFact | None, other: NodeLifeFact | None) -> bool:
    """Whether both say the same of the same node; when they said it does not count."""
    if one is None or other is None:
        return one is other
    return (one.node_uid, one.conditions, one.taints) == (other.node_uid, other.conditions, other.taints)


def _told(key: ObjectKey, uid: str, cancelled: bool) -> Announce:
    """Source: emitPodDeletionEvent, emitCancelPodDeletionEvent."""
    what = "Cancelling deletion of Pod" if cancelled else "Marking for deletion Pod"
    return Announce(key, uid, EVICTION, f"{what} {key.namespace}/{key.name}", TAINT_CONTROLLER)
