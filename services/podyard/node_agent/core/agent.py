"""The agent's core: nodes and pods together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from podyard.cluster.changes import Change
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.node_agent.core import admission, messages
from podyard.node_agent.core.admission import Verdict
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import Claims, Patience, Player, Standing
from podyard.node_agent.core.effects import (
    Announce,
    Awaits,
    Declined,
    Effect,
    ListAgain,
    NotPlayed,
    RemoveNodeStatus,
    RemovePodStatus,
    Reply,
)
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.host_node import Host
from podyard.node_agent.core.messages import Message, StoredStatus
from podyard.node_agent.core.node_config import NodeConfigs
from podyard.node_agent.core.nodes import UNKNOWN_SIGNAL, NodeRhythm, Nodes
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.preview import preview
from podyard.node_agent.core.selection import Selection
from podyard.node_agent.core.virtual_pod import VirtualPod
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.placement import Binding
from podyard.proto.signals import NodeSignals


class View(Protocol):
    """What the core reads of the informer's view (`podyard.cluster.view.ClusterView`)."""

    @property
    def nodes(self) -> Mapping[str, NodeView]: ...
    def pods_on(self, node: str) -> Mapping[str, PodView]: ...
    def version_of(self, subject: str) -> int: ...


class Agent:
    """One term. Owned by one task."""

    def __init__(
        self,
        view: View,
        *,
        selection: Selection,
        usual: Pace,
        configs: NodeConfigs,
        rhythm: NodeRhythm,
        player: Player,
        patience: Patience,
        host: Host | None = None,
    ) -> None:
        """
        :param player: as who it plays; `patience`: when it takes nodes from others
        :param host: which of the nodes is the host itself; None: none is
        """
        self.nodes = Nodes(configs, rhythm, player, host)
        self.claims = Claims(player, patience)
        self.pods = Pods(usual, self._verdict, host.node if host is not None and host.runs else "")
        self._view = view
        self._selection = selection
        self._orphans: dict[str, list[StoredStatus]] = {}
        """Listed facts about pods that are gone, of nodes that are not played yet; by node."""
        self._handlers: dict[type[Any], Callable[[Any, float], list[Effect]]] = {
            messages.Changed: self._on_changed,
            messages.Listed: self._on_listed,
            messages.Observed: self._on_observed,
            messages.Asked: self._on_asked,
            messages.Hearing: self._on_hearing,
            messages.Listening: self._on_listening,
            messages.Beat: self._on_beat,
            messages.Answered: self._on_answered,
            messages.Noticed: self._on_noticed,
            messages.Found: self._on_found,
            messages.Planned: self.pods.planned,
            messages.ContainerStarted: self.pods.container_started,
            messages.ContainerEnded: self.pods.container_ended,
            messages.PodGone: lambda message, now: self.pods.gone(message.uid, now),
            messages.Tick: self._on_tick,
        }

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done, in this order.

        :param now: seconds since 1970, UTC
        """
        self.claims.run_on(now)
        found = self._handlers[type(message)](message, now)
        return [*found, *orders] if (orders := self.pods.take_orders()) else found

    def close(self) -> None:
        """The term has ended: dialogues go on no more."""
        self.nodes.close()

    @property
    def wake_at(self) -> float | None:
        """When a `Tick` is due, seconds since 1970; None: only a message can change anything."""
        dues = self.pods.next_due(), self.nodes.next_due(), self.claims.next_due
        found = [due for due in dues if due is not None]
        return min(found, default=None)

    # ---- what comes in -------------------------------------------------------------------------------------

    def _on_changed(self, message: messages.Changed, now: float) -> list[Effect]:
        """Nodes come first: their pods need them."""
        found: list[Effect] = []
        nodes = [change for change in message.changes if change.resource == subjects.NODES]
        for change in nodes:
            found += self._node_changed(change, now)
        found = _told_together(found)
        for change in message.changes:
            if change.resource == subjects.PODS:
                found += self._pod_changed(change, now)
        return found

    def _on_listed(self, message: messages.Listed, now: float) -> list[Effect]:
        """What was said of pods and nodes that are gone goes too.

        An agent that picks nodes by their labels cannot know whether one that is gone was its own.
        """
        nodes = () if self._selection.labels else message.nodes
        found: list[Effect] = [RemoveNodeStatus(name) for name in nodes]
        self._orphans = {}
        for status in message.pods:
            if self._spoke_of(status):
                found.append(RemovePodStatus(*status))
            elif status.node in self._view.nodes:
                self._orphans.setdefault(status.node, []).append(status)
        begun: list[Effect] = []
        for name in self.claims.listed():
            view = self._view.nodes.get(name)
            begun += [] if view is None else self._node_seen(view, now)
        return [*found, *_told_together(begun)]

    def _on_observed(self, message: messages.Observed, now: float) -> list[Effect]:
        return self._observe(message.signals, now)

    def _on_asked(self, message: messages.Asked, now: float) -> list[Effect]:
        ticket, request = message
        node, view = self.nodes.get(request.node), self._view.nodes.get(request.node)
        if node is None or view is None:
            return [NotPlayed(ticket)]
        active = self.pods.active_on(request.node)
        try:
            return [Reply(ticket, preview(node, active, view.stored.status.capacity, request, now))]
        except ThresholdError as error:
            return [Declined(ticket, str(error))]

    def _on_hearing(self, message: messages.Hearing, now: float) -> list[Effect]:
        self.claims.hears(message.hears, now)
        return []

    def _on_listening(self, message: messages.Listening, now: float) -> list[Effect]:
        self.claims.listens(message.node, now)
        return []

    def _on_beat(self, message: messages.Beat, now: float) -> list[Effect]:
        self.claims.beat(message.node, now)
        return []

    def _on_answered(self, message: messages.Answered, now: float) -> list[Effect]:
        return list(self.nodes.answered(message.ticket, message.answer, self.pods, now))

    def _on_noticed(self, message: messages.Noticed, now: float) -> list[Effect]:
        return list(self.nodes.noticed(message.node, self.pods, now))

    def _on_found(self, message: messages.Found, now: float) -> list[Effect]:
        del now
        self.pods.runs_found(message.runs)
        return []

    def _on_tick(self, message: messages.Tick, now: float) -> list[Effect]:
        """Do all that is due."""
        del message
        found = self.pods.tick(now)
        found += self.nodes.tick(self.pods, now)
        for name in self.claims.due(now):
            found.append(self._claim(self._view.nodes[name], now))
        return found

    def _verdict(self, pod: VirtualPod, others: Sequence[VirtualPod]) -> Verdict:
        """Whether its node takes a pod."""
        played, view = self.nodes.get(pod.node), self._view.nodes.get(pod.node)
        conditions = frozenset[str]() if played is None else played.manager.conditions
        most = None if played is None else played.config.max_pods
        return admission.judge(None if view is None else view.node, conditions, pod, others, most)

    # ---- what it concerns ----------------------------------------------------------------------------------

    def _node_changed(self, change: Change, now: float) -> list[Effect]:
        if change.new is None:
            return self._drop(change.key.name, gone=True, now=now)
        return self._node_seen(change.new, now)

    def _node_seen(self, view: NodeView, now: float) -> list[Effect]:
        """A node is there, or has changed: it is played if its status says that we do."""
        name = view.name
        if not self._selection.takes(view.stored):
            return self._drop(name, gone=False, now=now)
        playing, known = name in self.nodes, name in self.claims.awaited
        match self.claims.judge(name, view.status, self._status_version(name), playing=playing, now=now):
            case Standing.PLAY:
                return self._play(view, now)
            case Standing.CLAIM:
                return [self._claim(view, now)]
            case Standing.LIST:
                return [ListAgain((name,))]
            case Standing.WAIT:
                pass
        awaited = self.claims.awaited.get(name)
        if awaited is None or known:
            return []
        if playing:
            self._leave(name, gone=False, now=now)
        return [Awaits((name,), awaited.by, playing)]

    def _play(self, view: NodeView, now: float) -> list[Effect]:
        """With a new node the agent takes over the pods that are bound to it."""
        new = view.name not in self.nodes
        found = list(self.nodes.seen(view, now))
        if not new:
            self.pods.room_on(view.name, now, found)
        if new:
            found += [RemovePodStatus(*status) for status in self._orphans.pop(view.name, ())]
            bound = sorted(self._view.pods_on(view.name).values(), key=_turn)
            found += self.pods.take_over(view.name, [(pod, _bound_at(pod, now, now)) for pod in bound], now)
        return found

    def _claim(self, view: NodeView, now: float) -> Effect:
        version = self._status_version(view.name)
        self.claims.claim(view.name, view.status, version)
        return self.nodes.claim(view, version, now)

    def _status_version(self, node: str) -> int:
        return self._view.version_of(subjects.node_status(node))

    def _drop(self, name: str, *, gone: bool, now: float) -> list[Effect]:
        """A node's object is gone, or it is not to be played here."""
        if not gone:
            self.claims.let_go(name, playing=name in self.nodes)
            return self._leave(name, gone=False, now=now)
        said = self.claims.forget(name)
        return self._leave(name, gone=True, now=now) or ([RemoveNodeStatus(name)] if said else [])

    def _leave(self, name: str, *, gone: bool, now: float) -> list[Effect]:
        """Nothing of the node's pods runs here any more."""
        self.pods.abandon(name, now)
        return list(self.nodes.drop(name, gone=gone))

    def _pod_changed(self, change: Change, now: float) -> list[Effect]:
        if change.new is None:
            return self.pods.forget(change.uid, now, change.origin.trace)
        return self._pod_seen(change.new, change.origin.at, now, change.origin.trace)

    def _pod_seen(self, view: PodView, stored_at: float, now: float, trace: str = "") -> list[Effect]:
        """A pod is there, or has changed; pods of other nodes, and pods without a place, are none of the
        agent's business.

        :param stored_at: UTC seconds, when the fact that made the view was stored; the time of its binding if
            that says none
        :param trace: traceparent of that fact
        """
        placement = view.bound or view.release
        if placement is None or placement.node not in self.nodes:
            return []
        return self.pods.seen(view, _bound_at(view, stored_at, now), now, trace)

    def _spoke_of(self, status: StoredStatus) -> bool:
        """Whether a fact about a pod is the agent's to remove: of a node that is gone, if it plays all."""
        if status.node in self.nodes:
            return True
        return self._selection.everything and status.node not in self._view.nodes

    def _observe(self, signals: NodeSignals, now: float) -> list[Effect]:
        """Signals of other agents' nodes are theirs; those of no node at all are told by whoever might play
        it."""
        name = signals.node
        if name in self.nodes:
            return list(self.nodes.observe(signals, self.pods, now))
        if name in self._view.nodes or not self._selection.may_take(name):
            return []
        about = ObjectRef(resource=subjects.NODES, name=name)
        return [Announce(about, name, UNKNOWN_SIGNAL, f"there is no node {name}: its signals are not kept", now)]


def _turn(view: PodView) -> tuple[bool, str]:
    """Whose turn it is to be taken over: first those of which something is known, which are not judged again,
    then by their creation, as the kubelet. Source: pkg/kubelet/kubelet.go, HandlePodAdditions."""
    return view.status is None, view.stored.metadata.creation_timestamp or ""


def _told_together(found: list[Effect]) -> list[Effect]:
    """The same said of several nodes is said once."""
    awaited: dict[tuple[Player, bool], list[str]] = {}
    listed: list[str] = []
    others: list[Effect] = []
    for effect in found:
        match effect:
            case Awaits(nodes, by, lost):
                awaited.setdefault((by, lost), []).extend(nodes)
            case ListAgain(nodes):
                listed.extend(nodes)
            case _:
                others.append(effect)
    told: list[Effect] = [Awaits(nodes, *said) for said, nodes in awaited.items()]
    return [*others, *told, *([ListAgain(listed)] if listed else [])]


def _bound_at(view: PodView, stored_at: float, now: float) -> float:
    """When the pod was bound, UTC seconds; `now` if neither its binding nor `stored_at` says so, or says a
    time that is yet to come."""
    return min((view.bound.bound_at if isinstance(view.bound, Binding) else stored_at) or now, now)
