"""Nodes and what is placed on them, as columns: one array a property, one row a node.

Filter and Score plugins work on all rows at once; the binder and incremental updates read single cells. Rows
of removed nodes are used again. Every change gives its row a new generation, so that results can be kept and
only changed rows computed again.

Room is kept apart (`room`). Not thread-safe: one task owns a table.
"""

from collections.abc import Callable, Collection, Generator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.changes import Change
from podyard.cluster.node_columns import ChangeLog, LabelColumn, LabelColumns, NameOrder, NodeColumn, TaintSets, grown
from podyard.cluster.pods import PodView
from podyard.cluster.room import PODS, Room
from podyard.objects import quantity
from podyard.objects.core import Node
from podyard.proto import subjects
from podyard.proto.placement import BoundPod, Usage

PlacedPod: TypeAlias = PodView
"""A pod on a node, bound or only assumed there: a view whose `bound` is set."""

FIRST_CAPACITY: Final = 64
NO_PODS: Final[Mapping[str, PlacedPod]] = {}
NO_LABELS: Final[Mapping[str, str]] = {}


class PodIndex(Protocol):
    """Something counted over placed pods for whoever asks, kept up to date by the table.

    Told of every pod on a node of the table, once, and of its end. A pod whose object is another now, is
    removed and added.
    """

    def add(self, pod: PlacedPod, row: int) -> None: ...

    def remove(self, pod: PlacedPod, row: int) -> None: ...


class IndexFailure(NamedTuple):
    """An index or column raised, and was thrown away."""

    name: str
    """Of its class."""
    fault: Exception


C = TypeVar("C", bound=NodeColumn)
Index = TypeVar("Index", bound=PodIndex)


class NodeTable:
    """All nodes of the cluster with the usage of placed pods.

    Invariant: what is taken of `room`, and `pod_count`, are the sums over `pods_on(name)`; of a free row they
    are 0, as is all else.
    """

    def __init__(self) -> None:
        capacity = FIRST_CAPACITY
        self.capacity = capacity
        """Rows, live and free: the length of every column."""
        self.row_of: dict[str, int] = {}
        """Live rows by node name."""
        self.names: list[str] = [""] * capacity
        self.nodes: list[Node | None] = [None] * capacity
        self.live: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.generation: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        """Version at which the row changed last."""
        self._node_generation: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        """Version at which the row's node changed last: what is placed there may be newer."""
        self.room = Room(capacity)
        """What nodes have of each resource, and what is taken of it."""
        self.pod_count: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.pod_limit: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.unschedulable: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.taint_set: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        """Which of `taints.sets` the node has."""
        self.taints = TaintSets()
        self._labels = LabelColumns()
        self._free = list(range(capacity - 1, -1, -1))
        self._placed: dict[str, PlacedPod] = {}
        self._on_node: dict[str, dict[str, PlacedPod]] = {}
        self._kept: dict[str, PlacedPod] = {}
        self.kept_uids: AbstractSet[str] = self._kept.keys()
        """Of all pods for which room is kept, as they are now."""
        self._kept_on: dict[str, dict[str, PlacedPod]] = {}
        self.kept_version = 0
        """Grows when room is kept for a pod, or not any more."""
        self._tried: list[int] = []
        """Rows of the trials that are under way; one may be within another."""
        self._order: NameOrder | None = None
        self._log = ChangeLog()
        self.version = 0
        """Grows with every change of any row."""
        self.nodes_version = 0
        """The version at which any node changed last, came or went: what is placed may be newer."""
        self._indexes: dict[Callable[..., Any], PodIndex] = {}
        self._columns: dict[Callable[..., Any], NodeColumn] = {}
        self.topology_version = 0
        """Grows when a node comes or goes, or gets other labels, taints or `unschedulable`."""
        self.broken = 0
        """Grows when an index or column raised and was thrown away: what was computed with its help is
        void."""
        self.failures: list[IndexFailure] = []
        """Indexes and columns that were thrown away, until they are taken."""

    # ---- reading -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.row_of)

    @property
    def order(self) -> NameOrder:
        """Live rows sorted by name, made again after a node came or went."""
        if self._order is None:
            self._order = NameOrder(self.row_of, self.capacity)
        return self._order

    def rows(self) -> NDArray[np.intp]:
        """All live rows, ascending."""
        return np.flatnonzero(self.live)

    def changed_since(self, version: int) -> list[int]:
        """Rows (also freed ones) that changed after `version`, ascending."""
        if version == self.version:
            return []
        logged = self._log.since(version)
        if logged is None:
            return np.flatnonzero(self.generation > version).tolist()
        return logged

    def same_node_since(self, row: int, version: int) -> bool:
        """Whether the node of a row is the one of `version`: at most other pods are placed there."""
        return self._node_generation.item(row) <= version

    def has_room(self, row: int, usage: Usage) -> bool:
        """Whether the node takes one pod more, and has all that this one takes."""
        return self.pod_count.item(row) < self.pod_limit.item(row) and self.room.holds(row, usage)

    def label_column(self, key: str) -> LabelColumn:
        """Values of label `key` by row; made at the first use, then kept up to date."""
        column = self._labels.get(key)
        if column is None:
            column = LabelColumn(key, self.nodes, self.capacity)
            self._labels.add(column)
        else:
            self._labels.use(key)
        return column

    def placed(self, uid: str) -> PlacedPod | None:
        """Where a pod is, whether or not the node is known; `None` if it takes no room."""
        return self._placed.get(uid)

    def pods_on(self, node_name: str) -> Mapping[str, PlacedPod]:
        """Pods on a node by uid, in order of arrival; also for a node that is not, or not yet, in the
        table."""
        return self._on_node.get(node_name, NO_PODS)

    @property
    def nodes_with_pods(self) -> Collection[str]:
        """Names of nodes that pods are on, in the table or not."""
        return self._on_node.keys()

    @property
    def all_placed(self) -> Mapping[str, PlacedPod]:
        """All pods that take room, by uid."""
        return self._placed

    @property
    def nodes_that_keep_room(self) -> Collection[str]:
        """Names of nodes on which room is kept for somebody."""
        return self._kept_on.keys()

    def kept(self, uid: str) -> PlacedPod | None:
        """The pod, if room is kept for it; see `keep`."""
        return self._kept.get(uid)

    def kept_on(self, node_name: str) -> Mapping[str, PlacedPod]:
        """Pods for which room is kept on a node, by uid, in order of arrival."""
        return self._kept_on.get(node_name, NO_PODS)

    def index(self, kind: Callable[["NodeTable"], Index]) -> Index:
        """The table's index of this kind; made at the first use, then kept up to date.

        One that raises later on is thrown away, since nobody knows what it counts then, and made again when
        it is next asked for.

        :param kind: the index's class; it is given the table, then every placed pod
        """
        found: Any = self._indexes.get(kind)
        if found is None:
            made = kind(self)
            for pod in self._placed.values():  # not `pods_on`: a trial changes that, and tells no index when it ends
                row = self.row_of.get(_bound(pod).node)
                if row is not None:
                    made.add(pod, row)
            found = self._indexes[kind] = made  # last: one that raises half way is not kept
        return found

    def column(self, kind: Callable[[], C]) -> C:
        """The table's column of this kind; made at the first use, then kept up to date.

        :param kind: the column's class; it is given the number of rows, then every node, in ascending order
            of rows
        """
        found: Any = self._columns.get(kind)
        if found is None:
            made = kind()
            made.grow(self.capacity)
            for row, node in enumerate(self.nodes):
                if node is not None:
                    made.set(row, node)
            found = self._columns[kind] = made
        return found

    def take_failures(self) -> "list[IndexFailure]":
        """Indexes and columns that were thrown away since last asked."""
        taken, self.failures = self.failures, []
        return taken

    # ---- nodes ---------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> int:
        """A node is there, or is different now; returns its row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._take_row(name)
        old = self.nodes[row]
        if old is None or _place_of(old) != _place_of(node):
            self.topology_version += 1
        self.nodes[row] = node
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self.taints.intern(node.spec.taints)
        if self.taints.stale(self.capacity):
            self._intern_taints_anew()
        if old is None or old.status.allocatable != node.status.allocatable:
            self._set_allocatable(row, node.status.allocatable)
        before = NO_LABELS if old is None else old.metadata.labels
        if before != node.metadata.labels:
            self._labels.set(row, before, node.metadata.labels, len(self.row_of))
        for kind, column in tuple(self._columns.items()):
            try:
                column.set(row, node)
            except Exception as fault:  # the boundary to plugins, who make columns
                self._throw_away(self._columns, kind, fault)
        self._note_node(row)
        return row

    def remove_node(self, name: str) -> None:
        """The node is gone. Its pods keep their place in the books until they are released."""
        row = self.row_of.pop(name, None)
        if row is None:
            return
        for pod in self.pods_on(name).values():
            self._tell_removed(pod, row)
        self.topology_version += 1
        old = self.nodes[row]
        if old is not None:
            self._labels.set(row, old.metadata.labels, NO_LABELS, len(self.row_of))
        self.names[row], self.nodes[row], self.live[row] = "", None, False
        self.room.clear(row)
        self.pod_count[row] = self.pod_limit[row] = self.taint_set[row] = 0
        self.unschedulable[row] = False
        for kind, column in tuple(self._columns.items()):
            try:
                column.clear(row)
            except Exception as fault:  # the boundary to plugins
                self._throw_away(self._columns, kind, fault)
        self._free.append(row)
        self._order = None
        self._note_node(row)

    # ---- pods ----------------------------------------------------------------------------------------------

    def place(self, pod: PlacedPod) -> None:
        """The pod takes room on its node: bound or assumed. The same again changes nothing; another place
        replaces the first."""
        if self._labels.excess:
            self._drop_columns()
        uid, node = pod.uid, _bound(pod).node
        old = self._placed.get(uid)
        if old is not None:
            if _bound(old).node == node and old.usage == pod.usage:
                self._replace(old, pod, node)
                return
            self.remove(uid)
        self._placed[uid] = pod
        on_node = self._on_node.get(node)
        if on_node is None:
            on_node = self._on_node[node] = {}
        on_node[uid] = pod
        row = self.row_of.get(node)
        if row is not None:
            self._add_usage(row, pod.usage, 1)
            if self._indexes:
                self._tell_added(pod, row)
            self._note(row)

    def remove(self, uid: str) -> PlacedPod | None:
        """The pod takes no room any more; returns what it was, `None` if it took none."""
        pod = self._placed.pop(uid, None)
        if pod is None:
            return None
        bound = _bound(pod)
        mates = self._on_node[bound.node]
        del mates[uid]
        if not mates:
            del self._on_node[bound.node]
        row = self.row_of.get(bound.node)
        if row is not None:
            self._add_usage(row, pod.usage, -1)
            self._tell_removed(pod, row)
            self._note(row)
        return pod

    def keep(self, pod: PlacedPod) -> None:
        """Keep room for a pod on its node, whatever else comes. Nothing counts it: it is not there yet, and
        may never be.

        Who judges a row (`row_judge`) asks that the node takes the pod with those for which room is kept
        there, and without them.
        """
        self.unkeep(pod.uid)
        self.kept_version += 1
        self._kept[pod.uid] = self._kept_on.setdefault(_bound(pod).node, {})[pod.uid] = pod

    def unkeep(self, uid: str) -> None:
        """No room is kept for the pod any more, if any was."""
        pod = self._kept.pop(uid, None)
        if pod is None:
            return
        self.kept_version += 1
        node = _bound(pod).node
        mates = self._kept_on[node]
        del mates[uid]
        if not mates:
            del self._kept_on[node]

    def _replace(self, old: PlacedPod, pod: PlacedPod, node: str) -> None:
        """The pod is where it was; its object may be another version."""
        row = self.row_of.get(node)
        same = old.stored is pod.stored and old.gone == pod.gone
        if row is not None and not same:
            self._tell_removed(old, row)
        self._placed[pod.uid] = self._on_node[node][pod.uid] = pod
        if row is not None and not same:
            self._tell_added(pod, row)
            self._note(row)
        elif row is not None and _started(old) != _started(pod):
            self._note(row)  # no index counts it, but it tells whom preemption spares

    def tried(self, row: int) -> bool:
        """Whether a trial of this row is under way: what is found of the row meanwhile must not be kept."""
        return row in self._tried

    @contextmanager
    def trial(self, row: int) -> Generator["Trial"]:
        """What if: pods more or less on one node, for `filter_one`; undone at the end.

        Changes the row's columns and `pods_on`; no index, no version, and nothing that `placed` says.
        """
        name, count = self.names[row], int(self.pod_count[row])
        taken = self.room.copy_taken(row)
        before = self._on_node.get(name)
        pods = self._on_node[name] = {} if before is None else dict(before)
        self._tried.append(row)
        try:
            yield Trial(pods, partial(self._add_usage, row))
        finally:
            self._tried.remove(row)
            self.room.restore(row, taken)
            self.pod_count[row] = count
            if before is None:
                del self._on_node[name]
            else:
                self._on_node[name] = before

    def apply(self, change: Change) -> None:
        """Follow one change of the cluster view: nodes, bindings, releases. Other changes are none of the
        table's business."""
        if change.resource == subjects.NODES:
            if change.new is not None:
                self.set_node(change.new.node)
            elif change.old is not None:
                self.remove_node(change.old.name)
        elif change.resource == subjects.PODS:
            if change.release is not None or (change.new is not None and change.new.released):
                self.remove(change.uid)
            elif change.new is not None and change.new.bound is not None:
                self.place(change.new)
            elif change.new is None and (there := self._placed.get(change.uid)) is not None:
                self.place(there.without_object())

    # ---- inside --------------------------------------------------------------------------------------------

    def _tell_added(self, pod: PlacedPod, row: int) -> None:
        """Tell every index of a pod."""
        for kind, index in tuple(self._indexes.items()):
            try:
                index.add(pod, row)
            except Exception as fault:  # the boundary to plugins, who make indexes
                self._throw_away(self._indexes, kind, fault)

    def _tell_removed(self, pod: PlacedPod, row: int) -> None:
        """Tell every index of a pod's end."""
        for kind, index in tuple(self._indexes.items()):
            try:
                index.remove(pod, row)
            except Exception as fault:  # the boundary to plugins
                self._throw_away(self._indexes, kind, fault)

    def _throw_away(self, kept: dict[Callable[..., Any], Any], kind: Callable[..., Any], fault: Exception) -> None:
        del kept[kind]
        self.broken += 1
        self.failures.append(IndexFailure(getattr(kind, "__name__", type(kind).__name__), fault))

    def _note(self, row: int) -> None:
        self.version = self.generation[row] = self._log.note(row, self.capacity)

    def _note_node(self, row: int) -> None:
        self._note(row)
        self.nodes_version = self._node_generation[row] = self.version

    def _drop_columns(self) -> None:
        """Too many labels were asked for. Their values may have other numbers when they are asked for again,
        as after a node's change."""
        self._labels.drop()
        self.topology_version += 1

    def _intern_taints_anew(self) -> None:
        """Most combinations of taints are of no node any more."""
        fresh = TaintSets()
        for row, node in enumerate(self.nodes):
            if node is not None:
                self.taint_set[row] = fresh.intern(node.spec.taints)
        fresh.settle()
        self.taints = fresh

    def _take_row(self, name: str) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.row_of[name] = row
        self.names[row] = name
        self.live[row] = True
        self._order = None
        for pod in self.pods_on(name).values():
            self._add_usage(row, pod.usage, 1)
            for index in self._indexes.values():
                index.add(pod, row)
        return row

    def _add_usage(self, row: int, usage: Usage, sign: int) -> None:
        self.pod_count[row] = self.pod_count.item(row) + sign
        self.room.add(row, usage, sign)

    def _set_allocatable(self, row: int, amounts: Mapping[str, str]) -> None:
        self.pod_limit[row] = quantity.value(amounts[PODS]) if PODS in amounts else 0
        self.room.set_allocatable(row, amounts)

    def _grow(self) -> None:
        old, capacity = self.capacity, self.capacity * 2
        self.capacity = capacity
        self.names += [""] * old
        self.nodes += [None] * old
        for column in (
            "live",
            "generation",
            "_node_generation",
            "pod_count",
            "pod_limit",
            "unschedulable",
            "taint_set",
        ):
            setattr(self, column, grown(getattr(self, column), capacity))
        self.room.grow(capacity)
        self._labels.grow(capacity)
        for kind, column in tuple(self._columns.items()):
            try:
                column.grow(capacity)
            except Exception as fault:  # the boundary to plugins
                self._throw_away(self._columns, kind, fault)
        self._free.extend(range(capacity - 1, old - 1, -1))
        self._order = None


class Trial:
    """Changes of one row that do not last; see `NodeTable.trial`."""

    __slots__ = ("_count", "_pods")

    def __init__(self, pods: dict[str, PodView], count: Callable[[Usage, int], None]) -> None:
        """
        :param pods: what `pods_on` says meanwhile
        :param count: adds a usage to the row's columns, or with -1 takes it away
        """
        self._pods = pods
        self._count = count

    def add(self, pod: PodView) -> None:
        """Count a pod on the node, whether or not it is bound."""
        self._pods[pod.uid] = pod
        self._count(pod.usage, 1)

    def remove(self, uid: str) -> PodView:
        """Do not count a pod of the node; returns it.

        :raises KeyError: if it is not there
        """
        pod = self._pods.pop(uid)
        self._count(pod.usage, -1)
        return pod


def _bound(pod: PlacedPod) -> BoundPod:
    """Its place.

    :raises ValueError: for a pod that has none
    """
    if pod.bound is None:
        raise ValueError(f"pod {pod.namespace}/{pod.name} cannot be placed: it is bound nowhere")
    return pod.bound


def _started(pod: PlacedPod) -> tuple[str, int]:
    """When it was started, as far as anybody said, and up to where its decision had read."""
    return "" if pod.status is None else pod.status.start_time, _bound(pod).decided_at


def _place_of(node: Node) -> tuple[Any, ...]:
    """What makes a node another place for pods, apart from its size."""
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable
