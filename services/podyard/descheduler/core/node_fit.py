"""Whether another node would take a pod, as the descheduler estimates it: coarser than the scheduler
(docs/rules.md, node-fit-is-coarse).

It looks at the running pod's spec, at node selector and affinity, taints, requests, cordons, and the pod's
own anti-affinity against pods on that very node; not at topology spread, pod affinity, volumes, ports.
Source: pkg/descheduler/node/node.go, NodeFit, PodFitsAnyNode and PodFitsAnyOtherNode (v0.36.0).
"""

from collections.abc import Iterable

from podyard.descheduler.core import anti_affinity
from podyard.descheduler.core.anti_affinity import Repelling
from podyard.descheduler.core.columns import Columns, Mask
from podyard.descheduler.core.state import CycleState
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import NodeTerms, RequiredNodeAffinity


class NodeFit:
    """Whether one of these nodes would take a pod. All are asked at once."""

    def __init__(self, nodes: Iterable[Node], state: CycleState) -> None:
        self._columns = state.index(Columns)
        self._among = self._columns.places(nodes)
        self._last: int | None = None
        """Which took a pod last: it is likely to take the next one."""

    def elsewhere(self, pod: Pod) -> bool:
        """Whether one other than its own would.

        :raises QuantityError: if a request is no quantity; or none would, and of one nobody can say
        """
        return self._others(pod, self._own(pod))

    def somewhere(self, pod: Pod) -> bool:
        """Whether any would; its own, too, where it need not find room.

        :raises QuantityError: as of `elsewhere`
        """
        own = self._own(pod)
        if own is not None and self._columns.allowed(self._columns.kind(pod).allowed)[own]:
            at_home = self._columns.only(own)
            if self._welcome(at_home, pod):
                return True
        return self._others(pod, own)

    def _own(self, pod: Pod) -> int | None:
        place = self._columns.place_of.get(pod.spec.node_name)
        return place if place is not None and self._among[place] else None

    def _others(self, pod: Pod, own: int | None) -> bool:
        kind = self._columns.kind(pod)
        room, last = self._columns.room(kind), self._last
        if last is not None and last != own and room[last] and _repels_nobody(pod):
            return True
        places = self._without(room, own)
        if self._welcome(places, pod):
            self._last = int(places.argmax())
            return True
        self._columns.check(self._without(self._columns.allowed(kind.allowed), own))
        return False

    def _without(self, places: Mask, own: int | None) -> Mask:
        found = places & self._among
        if own is not None:
            found[own] = False
        return found

    def _welcome(self, places: Mask, pod: Pod) -> bool:
        """Whether its anti-affinity keeps the pod off not all of these; off every node if it makes no
        sense."""
        if not places.any():
            return False
        terms = _all_repelling(pod)
        if not terms:
            return terms is not None
        for term in terms:
            places = places & ~self._columns.repelled(term, pod)
        return bool(places.any())


def holds(terms: NodeTerms | RequiredNodeAffinity, node: Node) -> bool:
    """Whether the node fulfils them; what makes no sense is fulfilled by no node."""
    try:
        return terms.matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


def _repels_nobody(pod: Pod) -> bool:
    return pod.spec.affinity is None or pod.spec.affinity.pod_anti_affinity is None


def _all_repelling(pod: Pod) -> tuple[Repelling, ...] | None:
    """None if one of the terms makes no sense."""
    try:
        return tuple(anti_affinity.repelling(pod))
    except SelectorError:
        return None
