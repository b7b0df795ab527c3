"""The nodes of a cycle as columns: one array a property, one place a node, in the order of names.

What a pod asks of nodes is asked of all of them at once. Selectors are judged once for each value of a label,
taints once for each combination, room by what is left of each resource; what pods of one kind were told is
kept, and only nodes that have become freer since are looked at again. The rules are those of nodeFit
(`node_fit`); room is that of the descheduler, which is not the scheduler's.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import ABSENT
from podyard.cluster.node_table import NodeTable
from podyard.descheduler.core import tolerations
from podyard.descheduler.core.anti_affinity import Repelled, Repelling
from podyard.descheduler.core.state import CycleState
from podyard.memory.kept import Kept
from podyard.objects import quantity, selectors, taints
from podyard.objects.affinity import Taint, Toleration
from podyard.objects.errors import QuantityError
from podyard.objects.node import Node, NodeStatus
from podyard.objects.pod import Pod
from podyard.objects.selectors import RequiredNodeAffinity
from podyard.plugins import node_matching

CPU: Final = "cpu"
PODS: Final = "pods"
INT64: Final = np.iinfo(np.int64)
_NO_STATUS: Final = NodeStatus()
"""Room is not that of the table."""
KEPT_BYTES: Final = 64 * 1024 * 1024
"""Of answers by kind of pod, a byte a node each; and as much of those that do not look at room."""
ANYWHERE: Final = RequiredNodeAffinity(selectors.EVERYTHING, None)
FEW: Final = 32
"""So many nodes are looked at one by one; from about there on all at once is cheaper."""

Mask: TypeAlias = NDArray[np.bool_]
"""By place."""


class Allowed:
    """What decides which nodes a pod may be on, however full they are. There is one for all pods that say the
    same."""

    __slots__ = ("affinity", "tolerations")

    def __init__(self, affinity: RequiredNodeAffinity, held: tuple[Toleration, ...]) -> None:
        self.affinity = affinity
        self.tolerations = held


class Kind:
    """Pods of the same kind fit on the same nodes, but for their own, and for their anti-affinity. There is
    one for all of them."""

    __slots__ = ("allowed", "needed")

    def __init__(self, allowed: Allowed, needed: tuple[tuple[str, int], ...]) -> None:
        """
        :param needed: of each resource: milli-CPU, or whole units, rounded up
        """
        self.allowed = allowed
        self.needed = needed


class _Room:
    """Where pods of one kind find room, as of so many nodes that have become freer."""

    __slots__ = ("mask", "seen")

    def __init__(self, mask: Mask, seen: int) -> None:
        self.mask = mask
        self.seen = seen


class Columns:
    """All nodes of the state, ready or not. Kept up with what the cycle evicts."""

    def __init__(self, state: CycleState) -> None:
        self._state = state
        self._table = NodeTable()
        for node in state.nodes:
            self._table.set_node(msgspec.structs.replace(node, status=_NO_STATUS))
        self.place_of = {node.metadata.name: place for place, node in enumerate(state.nodes)}
        rows = (self._table.row_of[node.metadata.name] for node in state.nodes)
        self._rows: NDArray[np.intp] = np.fromiter(rows, np.intp, len(state.nodes))
        self._schedulable: Mask = ~self._table.unschedulable[self._rows]
        self._taint_set = self._table.taint_set[self._rows]
        self._garbled: dict[int, QuantityError] = {}
        """Places of nodes of which nobody can say what is left, and why."""
        self._left: dict[str, NDArray[np.int64]] = {}
        """By resource, as far as it was asked for: milli-CPU, or whole units."""
        self._freed: list[int] = []
        """Places of nodes that have become freer, in order."""
        self._seen = 0
        """How much of `state.freed` is in it."""
        self._kind_of: dict[tuple[str, str], tuple[Pod, Kind]] = {}
        self._needed: dict[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = {}
        """By requests, in nano-units."""
        self._kinds: dict[tuple[Allowed, tuple[tuple[str, int], ...]], Kind] = {}
        self._alloweds: dict[tuple[RequiredNodeAffinity, tuple[Toleration, ...]], Allowed] = {}
        self._allowed = Kept[Allowed, Mask](KEPT_BYTES, fewest=1)
        self._rooms = Kept[Kind, _Room](KEPT_BYTES, fewest=1)
        self._repelled = state.index(Repelled)

    def __len__(self) -> int:
        return len(self._rows)

    def places(self, nodes: Iterable[Node]) -> Mask:
        """Which of all nodes are among these."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[[self.place_of[node.metadata.name] for node in nodes]] = True
        return mask

    def only(self, place: int) -> Mask:
        """One of all nodes."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[place] = True
        return mask

    def kind(self, pod: Pod) -> Kind:
        """What the pod asks of nodes.

        :raises QuantityError: if a request is no quantity
        """
        known = self._kind_of.get(pod.key)
        if known is not None and known[0] is pod:
            return known[1]
        requests = tuple(self._state.requests(pod).items())
        needed = self._needed.get(requests)
        if needed is None:
            needed = tuple(sorted((name, _needed(name, amount)) for name, amount in requests))
            self._needed[requests] = needed
        allowed = self._allowed_of(pod)
        kind = self._kinds.setdefault((allowed, needed), Kind(allowed, needed))
        self._kind_of[pod.key] = pod, kind
        return kind

    def _allowed_of(self, pod: Pod) -> Allowed:
        anywhere = not pod.spec.node_selector and pod.spec.affinity is None
        affinity = ANYWHERE if anywhere else selectors.required_node_affinity(pod)
        said = affinity, pod.spec.tolerations
        return self._alloweds.setdefault(said, Allowed(*said))

    def allowed(self, allowed: Allowed) -> Mask:
        """Nodes that are not cordoned, that the affinity takes, and all of whose hard taints are
        tolerated."""
        found = self._allowed.get(allowed)
        if found is None:
            found = self.matching(allowed.affinity) & self._schedulable & self.tolerated(allowed.tolerations)
            self._allowed.keep(allowed, found, found.nbytes)
        else:
            self._allowed.use(allowed)
        return found

    def matching(self, affinity: RequiredNodeAffinity) -> Mask:
        """Nodes that the affinity takes."""
        return node_matching.required(affinity, self._table, self._rows)

    def tolerated(self, held: tuple[Toleration, ...]) -> Mask:
        """Nodes all of whose hard taints are tolerated."""
        by_set = [tolerations.all_tolerated(held, found, is_hard) for found in self._table.taints.sets]
        return np.array(by_set, dtype=np.bool_)[self._taint_set]

    def room(self, kind: Kind) -> Mask:
        """Nodes that pods of this kind may be on, with room for one more."""
        self._catch_up()
        found = self._rooms.get(kind)
        if found is None or len(self._freed) - found.seen > FEW:
            mask = self.allowed(kind.allowed) & (self._column(PODS) > 0)
            for name, needed in kind.needed:
                mask &= self._column(name) >= needed
            found = _Room(mask, len(self._freed))
            self._rooms.keep(kind, found, mask.nbytes)
            return mask
        self._rooms.use(kind)
        for place in self._freed[found.seen :]:
            found.mask[place] = self.has_room(kind, place)
        found.seen = len(self._freed)
        return found.mask

    def has_room(self, kind: Kind, place: int) -> bool:
        """The same of one node."""
        self._catch_up()
        return bool(
            self._column(PODS)[place] > 0
            and all(self._column(name)[place] >= needed for name, needed in kind.needed)
            and self.allowed(kind.allowed)[place]
        )

    def repelled(self, term: Repelling, pod: Pod) -> Mask:
        """Nodes with a pod that this term of `pod` keeps away."""
        mask = np.zeros(len(self), dtype=np.bool_)
        places = [self.place_of.get(node, -1) for node in self._repelled.nodes(term, pod)]
        mask[[place for place in places if place >= 0]] = True
        return mask & (self._table.label_column(term.topology_key).cells[self._rows] != ABSENT)

    def check(self, places: Mask) -> None:
        """
        :raises QuantityError: if one of these is a node of which nobody can say what is left
        """
        for place, error in self._garbled.items():
            if places[place]:
                raise error

    # ---- inside --------------------------------------------------------------------------------------------

    def _column(self, name: str) -> NDArray[np.int64]:
        found = self._left.get(name)
        if found is None:
            left = (self._left_of(name, place) for place in range(len(self)))
            found = self._left[name] = np.fromiter(left, np.int64, len(self))
        return found

    def _left_of(self, name: str, place: int) -> int:
        """What is left of a resource on a node; of all but cpu, what is there and what is taken are whole
        units, rounded up. Nothing fits where nobody can say it."""
        node = self._state.nodes[place]
        try:
            taken = self._state.taken(node.metadata.name)
            there = node.status.allocatable.get(name, "0")
            if name == PODS:
                left = quantity.value(there) - taken.pods
            elif name == CPU:
                left = quantity.milli(there) - quantity.Quantity(taken.amounts.get(name, 0)).milli()
            else:
                left = quantity.value(there) - quantity.Quantity(taken.amounts.get(name, 0)).value()
        except QuantityError as error:
            self._garbled[place] = error
            return int(INT64.min)
        return max(int(INT64.min), min(int(INT64.max), left))

    def _catch_up(self) -> None:
        freed = self._state.freed
        if self._seen == len(freed):
            return
        for name in freed[self._seen :]:
            place = self.place_of.get(name)
            if place is None:
                continue
            self._freed.append(place)
            for resource, column in self._left.items():
                column[place] = self._left_of(resource, place)
        self._seen = len(freed)


def is_hard(taint: Taint) -> bool:
    """Whether the taint keeps pods off its node."""
    return taint.effect in taints.HARD_EFFECTS


def _needed(name: str, nano: int) -> int:
    """Thousandths are compared with whole units: whoever has so many units has the thousandths."""
    milli = quantity.Quantity(nano).milli()
    return milli if name == CPU else -(-milli // 1000)
