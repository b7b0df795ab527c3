"""When nodes collect images by themselves, and what is told of it.

Source: kubernetes v1.36.2, pkg/kubelet/kubelet.go (StartGarbageCollection),
pkg/kubelet/images/image_gc_manager.go.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from podyard.node_agent.core.effects import Announce, Effect, ImagesCollected
from podyard.node_agent.core.images import PERIOD_S
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.timers import Timers
from podyard.node_agent.core.virtual_node import VirtualNode
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason

FAILED: Final = Reason("ImageGCFailed")
"""Reason of the node's event when collections fail again and again."""


class ImageRounds:
    """State: when each node is due. One that has no images is not; who says that it has some is due at the
    next whole period since its agent began."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._due: Timers[str] = Timers()

    def next_due(self) -> float | None:
        """When the next node collects."""
        return self._due.next_due()

    def observed(self, node: VirtualNode, now: float) -> None:
        """Signals of a node came in, or it goes by another configuration."""
        if not node.has_images:
            self._due.cancel(node.name)
        elif node.name not in self._due:
            periods = math.ceil((now - node.began) / self._period_s)
            self._due.set(node.name, node.began + periods * self._period_s)

    def drop(self, name: str) -> None:
        """A node is not the agent's any more."""
        self._due.cancel(name)

    def tick(self, nodes: Mapping[str, VirtualNode], pods: Pods, now: float) -> Iterator[Effect]:
        """Have all collect that are due."""
        for name in self._due.pop_due(now):
            node = nodes[name]
            about = ObjectRef(resource=subjects.NODES, name=name, uid=node.uid)
            found, again = node.collect_images(pods.active_on(name), now)
            if found.for_age or found.for_space:
                yield ImagesCollected(about, found.for_age, found.for_space)
            if found.reason:
                yield Announce(about, name, found.reason, found.fault, now)
            if again:
                yield Announce(about, name, FAILED, found.fault, now)
            self._due.set(name, now + self._period_s)
