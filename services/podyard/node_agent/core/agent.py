"""The agent's core: nodes and pods together."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from podyard.cluster.changes import Change
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.node_agent.core import messages
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.effects import (
    Declined,
    Effect,
    NotPlayed,
    RemoveNodeStatus,
    RemovePodStatus,
    Reply,
)
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.messages import Message, StoredStatus
from podyard.node_agent.core.nodes import NodeRhythm, Nodes
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.preview import preview
from podyard.node_agent.core.selection import Selection
from podyard.proto import subjects
from podyard.proto.placement import Binding
from podyard.proto.signals import NodeSignals


class View(Protocol):
    """What the core reads of the informer's view (`podyard.cluster.view.ClusterView`)."""

    @property
    def nodes(self) -> Mapping[str, NodeView]: ...
    def pods_on(self, node: str) -> Mapping[str, PodView]: ...


class Agent:
    """One term. Owned by one task."""

    def __init__(
        self, view: View, *, selection: Selection, usual: Pace, eviction: EvictionConfig, rhythm: NodeRhythm
    ) -> None:
        self.nodes = Nodes(eviction, rhythm)
        self.pods = Pods(usual, self.nodes.refusal)
        self._view = view
        self._selection = selection
        self._handlers: dict[type[Any], Callable[[Any, float], list[Effect]]] = {
            messages.Changed: self._on_changed,
            messages.Listed: self._on_listed,
            messages.Observed: self._on_observed,
            messages.Asked: self._on_asked,
            messages.Tick: self._on_tick,
        }

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done, in this order.

        :param now: seconds since 1970, UTC
        """
        return self._handlers[type(message)](message, now)

    @property
    def wake_at(self) -> float | None:
        """When a `Tick` is due, seconds since 1970; None: only a message can change anything."""
        found = [due for due in (self.pods.next_due(), self.nodes.next_due()) if due is not None]
        return min(found, default=None)

    # ---- what comes in -------------------------------------------------------------------------------------

    def _on_changed(self, message: messages.Changed, now: float) -> list[Effect]:
        """Nodes come first: their pods need them."""
        found: list[Effect] = []
        for change in message.changes:
            if change.resource == subjects.NODES:
                found += self._node_changed(change, now)
        for change in message.changes:
            if change.resource == subjects.PODS:
                found += self._pod_changed(change, now)
        return found

    def _on_listed(self, message: messages.Listed, now: float) -> list[Effect]:
        """What was said of pods and nodes that are gone goes too.

        An agent that picks nodes by their labels cannot know whether one that is gone was its own.
        """
        del now
        nodes = () if self._selection.labels else message.nodes
        return [
            *(RemoveNodeStatus(name) for name in nodes),
            *(RemovePodStatus(*status) for status in message.pods if self._spoke_of(status)),
        ]

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

    def _on_tick(self, message: messages.Tick, now: float) -> list[Effect]:
        """Do all that is due."""
        del message
        found = self.pods.tick(now)
        found += self.nodes.tick(self.pods, now)
        return found

    # ---- what it concerns ----------------------------------------------------------------------------------

    def _node_changed(self, change: Change, now: float) -> list[Effect]:
        if change.new is None:
            return self._drop(change.key.name, gone=True, now=now)
        return self._node_seen(change.new, now)

    def _node_seen(self, view: NodeView, now: float) -> list[Effect]:
        """A node is there, or has changed. With a new one the agent takes over the pods that are bound to
        it."""
        if not self._selection.takes(view.stored):
            return self._drop(view.name, gone=False, now=now)
        new = view.name not in self.nodes
        found = list(self.nodes.seen(view, now))
        if new:
            for pod in self._view.pods_on(view.name).values():
                found += self.pods.take_over(pod, _bound_at(pod, now, now), now)
        return found

    def _drop(self, name: str, *, gone: bool, now: float) -> list[Effect]:
        """A node's object is gone, or another agent's; either way nothing of its pods runs here."""
        self.pods.abandon(name, now)
        return list(self.nodes.drop(name, gone=gone))

    def _pod_changed(self, change: Change, now: float) -> list[Effect]:
        if change.new is None:
            return self.pods.forget(change.uid)
        return self._pod_seen(change.new, change.origin.at, now)

    def _pod_seen(self, view: PodView, stored_at: float, now: float) -> list[Effect]:
        """A pod is there, or has changed; pods of other nodes, and pods without a place, are none of the
        agent's business.

        :param stored_at: UTC seconds, when the fact that made the view was stored; the time of its binding if
            that says none
        """
        placement = view.bound or view.release
        if placement is None or placement.node not in self.nodes:
            return []
        return self.pods.seen(view, _bound_at(view, stored_at, now), now)

    def _spoke_of(self, status: StoredStatus) -> bool:
        """Whether a fact about a pod is the agent's to remove: of a node that is gone, if it plays all."""
        if status.node in self.nodes:
            return True
        return self._selection.everything and status.node not in self._view.nodes

    def _observe(self, signals: NodeSignals, now: float) -> list[Effect]:
        """Signals of other agents' nodes are ignored."""
        return list(self.nodes.observe(signals, self.pods, now)) if signals.node in self.nodes else []


def _bound_at(view: PodView, stored_at: float, now: float) -> float:
    """When the pod was bound, UTC seconds; `now` if neither its binding nor `stored_at` says so, or says a
    time that is yet to come."""
    return min((view.bound.bound_at if isinstance(view.bound, Binding) else stored_at) or now, now)
