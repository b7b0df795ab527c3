"""The agent's nodes: what they say of themselves, and when their eviction managers look."""

import itertools
import math
import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from podyard.cluster.nodes import NodeView
from podyard.node_agent.core import node_facts, readings
from podyard.node_agent.core.claims import Player
from podyard.node_agent.core.effects import (
    Announce,
    AskHost,
    Effect,
    Heartbeat,
    KillPod,
    MustEvict,
    PodEvicted,
    PublishUsage,
    PutNodeStatus,
    RemoveNodeStatus,
    RoundFailed,
)
from podyard.node_agent.core.eviction.dialogue import Ask, Kill, Round
from podyard.node_agent.core.eviction.manager import MONITORING_INTERVAL_S
from podyard.node_agent.core.host_node import NOTICED_S, Host, HostAnswer, HostNode
from podyard.node_agent.core.image_rounds import ImageRounds
from podyard.node_agent.core.images import PERIOD_S
from podyard.node_agent.core.node_config import NodeConfig, NodeConfigs
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.timers import Timers
from podyard.node_agent.core.virtual_node import CLEANUP_POLL_S, VirtualNode
from podyard.objects.pod_requests import is_sidecar
from podyard.proto import subjects
from podyard.proto.facts import NodeStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.proto.signals import USAGE_PERIOD_S, NodeSignals

BEAT_GROUPS: Final = 40
"""In how many groups the nodes beat in one heartbeat interval: every 250 ms with the default."""

THRESHOLD_MET: Final = Reason("EvictionThresholdMet")
"""Reason of the node's event when a manager begins to reclaim."""
UNKNOWN_SIGNAL: Final = Reason("UnknownSignal")
"""Reason of the node's event when signals name what is not there."""


class NodeRhythm(msgspec.Struct, frozen=True, kw_only=True):
    """When nodes do something by themselves, in seconds."""

    monitoring_s: float = MONITORING_INTERVAL_S
    on_signals: bool = True
    """Whether fresh signals are looked at at once, not at the next step."""
    heartbeat_s: float = 10.0
    """Source: the kubelet renews its lease every nodeLeaseDurationSeconds / 4, 10 s by default."""
    images_s: float = PERIOD_S
    """Between two collections of images by a node itself."""


class Nodes:
    """State: the nodes by name, and when each is due."""

    def __init__(self, configs: NodeConfigs, rhythm: NodeRhythm, player: Player, host: Host | None = None) -> None:
        """:param host: which of the nodes is the host itself; None: none is"""
        self._configs = configs
        self._player = player
        self._rhythm = rhythm
        self._host = host
        self._tickets = itertools.count(1)
        self._asked: dict[int, HostNode] = {}
        """The node whose round waits for the answer, by its ticket."""
        self._nodes: dict[str, VirtualNode] = {}
        self._steps: Timers[str] = Timers()
        self._beats: Timers[str] = Timers()
        self._images = ImageRounds(rhythm.images_s)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[VirtualNode]:
        return iter(self._nodes.values())

    def get(self, name: str) -> VirtualNode | None:
        """The node, if it is one of the agent's."""
        return self._nodes.get(name)

    def next_due(self) -> float | None:
        """When the next node does something."""
        dues = self._steps.next_due(), self._beats.next_due(), self._images.next_due()
        return min((due for due in dues if due is not None), default=None)

    def claim(self, view: NodeView, version: int, now: float) -> PutNodeStatus:
        """What makes a node the agent's, unless its status is another than this version by then."""
        stored = _own_status(view)
        pressure = frozenset[str]() if stored is None else node_facts.pressure(stored)
        unready = node_facts.NOTHING_READ if self._is_host(view.name) else ""
        fact = node_facts.fact(view.name, view.uid, pressure, stored, now, self._player, unready=unready)
        return PutNodeStatus(fact, version)

    def seen(self, view: NodeView, now: float) -> Iterator[Effect]:
        """One of the agent's nodes is there, or has changed."""
        node = self._nodes.get(view.name)
        stored = _own_status(view)
        config = self._configs.of(view.stored.metadata.labels)
        if node is None:
            node = self._new(view, config, stored, now)
            node.capacity = view.stored.status.capacity
            self._nodes[view.name] = node
            self._beats.set(view.name, self._first_beat(view.name, now))
            if isinstance(node, HostNode):
                self._steps.set(view.name, now)
            else:
                self._schedule(node, now)
            yield from self._report(node, now)
            return
        node.capacity = view.stored.status.capacity
        if config is not node.config:
            self._configure(node, config, now)
        if stored is None or not node_facts.is_ready(stored):
            # What it said is gone, or somebody took the node for lost; it lives, and says so again.
            node.fact = stored
            yield from self._report(node, now)

    def drop(self, name: str, *, gone: bool) -> Iterator[Effect]:
        """A node is not the agent's any more.

        :param gone: its object is gone, so what was said of it goes too; else somebody else reports about it
            now
        """
        node = self._nodes.pop(name, None)
        if node is None:
            return
        if isinstance(node, HostNode):
            self._close(node)
        self._steps.cancel(name)
        self._beats.cancel(name)
        self._images.drop(name)
        if gone:
            yield RemoveNodeStatus(name)

    def observe(self, signals: NodeSignals, pods: Pods, now: float) -> Iterator[Effect]:
        """Signals of one of the nodes came in. While an evicted pod is being cleaned up they wait."""
        node = self._nodes[signals.node]
        if isinstance(node, HostNode):
            told = f"node {node.name} is a host, which is read itself: its signals are not kept"
            yield Announce(_about(node), node.name, UNKNOWN_SIGNAL, told, now)
            return
        first = node.synthetic is None
        for fault in node.observe(signals, pods.active_on(node.name), now):
            yield Announce(_about(node), node.name, UNKNOWN_SIGNAL, fault, now)
        self._images.observed(node, now)
        if node.cleanup is None and self._rhythm.on_signals:
            yield from self._synchronize(node, pods, now)
        elif first and node.cleanup is None:
            self._steps.set(node.name, now + self._rhythm.monitoring_s)

    def tick(self, pods: Pods, now: float) -> Iterator[Effect]:
        """Do what is due: heartbeats, collections of images and synchronise steps."""
        for name in self._beats.pop_due(now):
            self._beats.set(name, self._beat_after(now))
            yield Heartbeat(name)
            yield from self._publish(self._nodes[name], now)
        yield from self._images.tick(self._nodes, pods, now)
        for name in self._steps.pop_due(now):
            node = self._nodes[name]
            if self._waits(node, pods, now):
                self._steps.set(name, now + CLEANUP_POLL_S)
            else:
                yield from self._synchronize(node, pods, now)

    def _configure(self, node: VirtualNode, config: NodeConfig, now: float) -> None:
        """A node's labels give it another configuration: as a restarted kubelet its manager looks at once,
        unless it waits for a pod to be gone."""
        if isinstance(node, HostNode):
            self._close(node)
        node.configure(config, now)
        self._images.drop(node.name)
        self._images.observed(node, now)
        if node.watched and node.cleanup is None:
            self._steps.set(node.name, now)

    # ---- a host --------------------------------------------------------------------------------------------

    def answered(self, ticket: int, answer: HostAnswer, pods: Pods, now: float) -> Iterator[Effect]:
        """A host's round goes on; an answer that nobody waits for changes nothing."""
        node = self._asked.pop(ticket, None)
        if node is not None:
            node.ticket = None
            yield from self._go_on(node, node.answered(answer, now), pods, now)

    def noticed(self, name: str, pods: Pods, now: float) -> Iterator[Effect]:
        """The kernel says that a host may be under pressure: it is looked at at once, and once more soon,
        since what passes a threshold is hardly beyond it. While an evicted pod is being cleaned up that
        waits."""
        node = self._nodes.get(name)
        if not isinstance(node, HostNode) or node.cleanup is not None:
            return
        if node.ticket is not None:
            node.noticed = True
        elif now < node.begun_at + NOTICED_S:
            self._steps.set(name, node.begun_at + NOTICED_S)
        else:
            yield from self._synchronize(node, pods, now)
            node.noticed = True

    def close(self) -> None:
        """Rounds that are under way go on no more."""
        for node in list(self._asked.values()):
            self._close(node)

    def _is_host(self, name: str) -> bool:
        return self._host is not None and self._host.node == name

    def _new(self, view: NodeView, config: NodeConfig, stored: NodeStatusFact | None, now: float) -> VirtualNode:
        if self._host is not None and self._host.node == view.name:
            return HostNode(view.name, view.uid, config, stored, now, runs=self._host.runs)
        lasts_s = readings.LASTS * self._rhythm.monitoring_s
        return VirtualNode(view.name, view.uid, config, stored, now, lasts_s=lasts_s)

    def _close(self, node: HostNode) -> None:
        if node.ticket is not None:
            self._asked.pop(node.ticket, None)
        node.close()

    def _go_on(self, node: HostNode, found: Ask | Round, pods: Pods, now: float) -> Iterator[Effect]:
        """What its round asks next, or what it came to."""
        if isinstance(found, Round):
            yield from self._over(node, found, pods, now)
            return
        node.ticket = next(self._tickets)
        self._asked[node.ticket] = node
        yield AskHost(node.ticket, node.name, _kill(found) if isinstance(found, Kill) else found)

    # ----

    def _first_beat(self, name: str, now: float) -> float:
        """Heartbeats of many nodes spread over the interval, always alike for a node."""
        share = (zlib.crc32(name.encode()) % 1000) / 1000
        return self._in_groups(now + share * self._rhythm.heartbeat_s)

    def _beat_after(self, now: float) -> float:
        return self._in_groups(now + self._rhythm.heartbeat_s)

    def _in_groups(self, due: float) -> float:
        """`due`, moved to where others beat too: thousands of nodes shall not wake the process each on its
        own."""
        grid = self._rhythm.heartbeat_s / BEAT_GROUPS
        return math.ceil(due / grid) * grid

    def _waits(self, node: VirtualNode, pods: Pods, now: float) -> bool:
        if node.cleanup is None or now >= node.cleanup.until:
            return False
        victims = (pods.get(uid) for uid in node.cleanup.uids)
        return any(victim is not None and victim.active for victim in victims)

    def _schedule(self, node: VirtualNode, now: float) -> None:
        if node.cleanup is not None:
            self._steps.set(node.name, now + CLEANUP_POLL_S)
        elif isinstance(node, HostNode) and node.noticed:
            self._steps.set(node.name, node.begun_at + NOTICED_S)
        elif node.watched:
            self._steps.set(node.name, now + self._rhythm.monitoring_s)

    def _synchronize(self, node: VirtualNode, pods: Pods, now: float) -> Iterator[Effect]:
        active = pods.active_on(node.name)
        if isinstance(node, HostNode):
            self._steps.cancel(node.name)
            node.noticed = False
            yield from self._go_on(node, node.begin(active, now), pods, now)
        else:
            yield from self._over(node, node.synchronize(active, now), pods, now)

    def _over(self, node: VirtualNode, found: Round, pods: Pods, now: float) -> Iterator[Effect]:
        """A round came to this."""
        self._schedule(node, now)
        yield from self._report(node, now)
        yield from self._publish(node, now)
        about = _about(node)
        for fault in node.news(found):
            yield RoundFailed(about, fault, now, unread=fault == found.unread)
        if found.starved:
            yield Announce(about, node.name, THRESHOLD_MET, f"Attempting to reclaim {found.starved}", now)
        if found.goes_by:
            yield MustEvict(tuple((signal, max(now - at, 0.0)) for signal, at in found.goes_by))
        for kill in found.kills:
            if node.failing(kill):
                continue
            yield from self._evict(node, kill, pods, now)

    def _publish(self, node: VirtualNode, now: float) -> Iterator[Effect]:
        """What the node uses, if that has changed or was said long ago."""
        usage, before = node.usage(now), node.published
        if usage is None:
            return
        if before is None or now - before.at >= USAGE_PERIOD_S or readings.differ(before, usage):
            node.published = usage
            yield PublishUsage(usage)

    def _evict(self, node: VirtualNode, kill: Kill, pods: Pods, now: float) -> Iterator[Effect]:
        metadata = kill.pod.metadata
        victim = pods.get(metadata.uid)
        yield PodEvicted(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=node.name,
            signal=kill.signal,
            message=kill.message,
            grace_s=kill.grace_s,
            annotations=kill.annotations or {},
            at=now,
            priority=kill.pod.spec.priority or 0,
            bound_trace="" if victim is None else victim.trace,
            sooner=kill.sooner,
        )
        yield from pods.evict(metadata.uid, kill.message, kill.grace_s, now, disruption=kill.disruption)

    def _report(self, node: VirtualNode, now: float) -> Iterator[Effect]:
        before = node.fact
        fact = node.status(self._player, now)
        if fact is None:
            return
        yield PutNodeStatus(fact)
        for reason in node_facts.turns(before, fact):
            told = f"Node {node.name} status is now: {reason}"
            yield Announce(_about(node), node.name, reason, told, now, warning=False)


def _own_status(view: NodeView) -> NodeStatusFact | None:
    """What was said of this very node, and not of one before it of the same name."""
    return view.status if view.status is not None and view.status.node_uid == view.uid else None


def _kill(kill: Kill) -> KillPod:
    sidecars = tuple(one.name for one in kill.pod.spec.init_containers if is_sidecar(one))
    return KillPod(kill.pod.metadata.uid, max(kill.grace_s, 1), sidecars)


def _about(node: VirtualNode) -> ObjectRef:
    return ObjectRef(resource=subjects.NODES, name=node.name, uid=node.uid)
