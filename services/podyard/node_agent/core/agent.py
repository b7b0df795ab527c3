"""The agent's core: nodes and pods together. A shell tells it what was seen, and carries out what it hands
out."""

from collections.abc import Iterable

from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.effects import Effect
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.nodes import NodeRhythm, Nodes
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.selection import Selection
from podyard.proto.placement import Binding
from podyard.proto.signals import NodeSignals


class Agent:
    """Methods take `now` in UTC seconds and hand out effects, to be carried out in order."""

    def __init__(self, *, selection: Selection, usual: Pace, eviction: EvictionConfig, rhythm: NodeRhythm) -> None:
        self.selection = selection
        self.nodes = Nodes(eviction, rhythm)
        self.pods = Pods(usual, self.nodes.refusal)

    def node_seen(self, view: NodeView, bound: Iterable[PodView], now: float) -> list[Effect]:
        """A node is there, or has changed.

        :param bound: the pods that are bound to it, which the agent takes over with a new node
        """
        if not self.selection.takes(view.stored):
            return self._drop(view.name, gone=False, now=now)
        new = view.name not in self.nodes
        found = list(self.nodes.seen(view, now))
        if new:
            for pod in bound:
                found += self.pods.take_over(pod, _bound_at(pod, now, now), now)
        return found

    def node_gone(self, name: str, now: float) -> list[Effect]:
        """A node's object is gone, and with it all that ran there."""
        return self._drop(name, gone=True, now=now)

    def pod_seen(self, view: PodView, stored_at: float, now: float) -> list[Effect]:
        """A pod is there, or has changed; pods of other nodes, and pods without a place, are none of the
        agent's business.

        :param stored_at: UTC seconds, when the fact that made the view was stored; the time of its binding if
            that says none
        """
        placement = view.bound or view.release
        if placement is None or placement.node not in self.nodes:
            return []
        return self.pods.seen(view, _bound_at(view, stored_at, now), now)

    def pod_gone(self, uid: str) -> list[Effect]:
        """A pod's object and its binding are gone."""
        return self.pods.forget(uid)

    def observe(self, signals: NodeSignals, now: float) -> list[Effect]:
        """Synthetic signals came in; those of other agents' nodes are ignored."""
        return list(self.nodes.observe(signals, self.pods, now)) if signals.node in self.nodes else []

    def next_due(self) -> float | None:
        """When `tick` has something to do; None if it has not."""
        found = [due for due in (self.pods.next_due(), self.nodes.next_due()) if due is not None]
        return min(found, default=None)

    def tick(self, now: float) -> list[Effect]:
        """Do all that is due."""
        found = self.pods.tick(now)
        found += self.nodes.tick(self.pods, now)
        return found

    def _drop(self, name: str, *, gone: bool, now: float) -> list[Effect]:
        self.pods.abandon(name, now)
        return list(self.nodes.drop(name, gone=gone))


def _bound_at(view: PodView, stored_at: float, now: float) -> float:
    """When the pod was bound, UTC seconds; `now` if neither its binding nor `stored_at` says so, or says a
    time that is yet to come."""
    return min((view.bound.bound_at if isinstance(view.bound, Binding) else stored_at) or now, now)
