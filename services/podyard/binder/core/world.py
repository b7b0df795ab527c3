"""What the binder judges by: the view of its informer, the node table, and what it wrote itself and the view
has not shown yet.

Own writes count at once: a decision counts from the moment it is accepted (its mates must see it), a release
from its acknowledgement. The view shows both later, by the commit record.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from podyard.binder.core import skipping
from podyard.binder.core.pending import Pending
from podyard.binder.core.points import PointTimes
from podyard.binder.core.skipping import Key, Skipping
from podyard.cluster.changes import Change, Unreadable
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.nodes import NodeView
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView, from_binding
from podyard.framework.snapshot import ObjectsByName, Snapshot
from podyard.proto import subjects
from podyard.proto.placement import BoundPod, CommitRecord, Fence, Release


class View(Protocol):
    """What the core reads of the informer's view (`podyard.cluster.view.ClusterView`), and tells it."""

    @property
    def position(self) -> int: ...
    @property
    def fence(self) -> Fence | None: ...
    @property
    def pods_by_uid(self) -> Mapping[str, PodView]: ...
    @property
    def nodes(self) -> Mapping[str, NodeView]: ...
    @property
    def placements(self) -> Mapping[str, BoundPod | Release]: ...
    @property
    def unreadable_placements(self) -> Sequence[Unreadable]: ...
    def has_read(self, sequence: int, stored_at: float) -> bool: ...
    def expect(self, subject: str, payload: bytes, record: CommitRecord) -> None: ...
    def objects(self, resource: str) -> ObjectsByName: ...
    def pods_on(self, node: str) -> Mapping[str, PodView]: ...
    def version(self, resource: str) -> int: ...


class World:
    """View, table and own writes. Invariant: `table` holds exactly the view's live bindings but
    `unseen_releases`, and `unseen`."""

    def __init__(
        self,
        view: View,
        schedulers: Collection[str] | None = None,
        stopwatch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """
        :param view: what the informer keeps up to date
        :param schedulers: names of the profiles, for nominations; `None`: all there are
        :param stopwatch: seconds of a monotonic clock, for metrics only
        """
        self.view = view
        self.point_times = PointTimes(stopwatch)
        self._schedulers = schedulers
        self.table = NodeTable()
        self.nominated = Nominations(schedulers=schedulers)
        self.snapshot = Snapshot(self.table, view, nominated=self.nominated)
        self.unseen: dict[str, BoundPod] = {}
        """Accepted or committed by us, not yet bound in the view, by uid."""
        self.kept: dict[str, BoundPod] = {}
        """Pods whose room is kept although they are not accepted yet, by uid: the table counts them
        nowhere."""
        self.unseen_releases: set[str] = set()
        """Uids released by us, still bound in the view."""
        self.skipping = Skipping()

    def follow(self, changes: Iterable[Change]) -> None:
        """The view changed: let the table follow."""
        position = self.view.position
        for change in changes:
            self.nominated.apply(change)
            self.skipping.changed(change, position)
            if change.resource == subjects.PODS:
                self._follow_pod(change)
            else:
                self.table.apply(change)

    def _follow_pod(self, change: Change) -> None:
        uid = change.uid
        if change.release is not None:
            self.unseen_releases.discard(uid)
            self.unseen.pop(uid, None)
        elif uid in self.unseen_releases:
            return  # its end is durable, only the view does not show it yet
        elif change.bound:
            self.unseen.pop(uid, None)
        self.table.apply(change)
        if change.new is not None and change.release is None and (uid in self.unseen or uid in self.kept):
            self._count_again(uid)

    def _count_again(self, uid: str) -> None:
        """The object of a pod is another: it may be resized while the view does not show its binding yet."""
        if (bound := self.unseen.get(uid)) is not None:
            self.table.place(self._placed(bound))
        if (bound := self.kept.get(uid)) is not None:
            self.table.keep(self._placed(bound))

    def hold(self, bound: BoundPod, key: Key | None = None) -> None:
        """The pod takes room from now on.

        :param key: of the decision that it was judged by; later ones of its session may have counted on it
        """
        uid = bound.uid
        pod = self.view.pods_by_uid.get(uid)
        same = pod is not None and pod.sequence <= bound.decided_at
        self.skipping.held(uid, key if same else None)
        self.unseen[uid] = bound
        self.table.place(from_binding(bound) if pod is None else pod.with_placement(bound, None))

    def drop(self, uid: str) -> None:
        """It does not after all. What the view shows as bound stays."""
        self.skipping.dropped(uid)
        if self.unseen.pop(uid, None) is not None:
            self.table.remove(uid)

    def committed(self, bound: Iterable[BoundPod], position: int, *, only_bound: bool) -> None:
        """Pods that were held are durable.

        :param position: CLUSTER sequence of the commit record
        :param only_bound: the batch did nothing else: it neither released pods nor wrote objects
        """
        self.skipping.durable((one.uid for one in bound), position)
        if not only_bound:
            self.skipping.foreign(position)

    def may_skip(self, pending: Pending) -> bool:
        """Whether the filters need not be asked again about a decision: see `skipping`."""
        decision = pending.decision
        if self.nominated.on(decision.node) or self.table.kept_on(decision.node):
            return False
        pod = self.view.pods_by_uid.get(decision.uid)
        if pod is None or pod.sequence > decision.read or skipping.has_claims(pod):
            return False
        if not self.skipping.covers(pending.key[0], decision.read, pending.claims):
            return False
        return self.view.has_read(decision.read, decision.read_at)

    def keep(self, bound: BoundPod) -> None:
        """Nobody else gets what the pod needs of its node, from now on."""
        self.kept[bound.uid] = bound
        self.table.keep(self._placed(bound))

    def unkeep(self, uid: str) -> None:
        """Its room is not kept any more."""
        if self.kept.pop(uid, None) is not None:
            self.table.unkeep(uid)

    def free(self, uid: str) -> None:
        """Its release is durable."""
        self.unseen.pop(uid, None)
        view = self.view.pods_by_uid.get(uid)
        if view is not None and view.bound is not None:
            self.unseen_releases.add(uid)
        self.table.remove(uid)

    def live_on(self, nodes: Collection[str]) -> dict[str, dict[str, PodView]]:
        """What must be on these nodes by the view and own writes, by node and uid: so says the table, too."""
        live = {
            node: {
                uid: pod
                for uid, pod in self.view.pods_on(node).items()
                if pod.bound is not None and uid not in self.unseen_releases
            }
            for node in nodes
        }
        for uid, bound in self.unseen.items():
            if bound.node in live:
                live[bound.node][uid] = self._placed(bound)
        return live

    def rebuild(self) -> None:
        """Make the table anew from the view and own writes."""
        self.table = NodeTable()
        self.nominated = Nominations(self.view.pods_by_uid.values(), self._schedulers)
        self.snapshot = Snapshot(self.table, self.view, nominated=self.nominated)
        for node in self.view.nodes.values():
            self.table.set_node(node.node)
        for uid, pod in self.view.pods_by_uid.items():
            if pod.bound is not None and uid not in self.unseen_releases:
                self.table.place(pod)
        for bound in self.unseen.values():
            self.table.place(self._placed(bound))
        for bound in self.kept.values():
            self.table.keep(self._placed(bound))

    def _placed(self, bound: BoundPod) -> PlacedPod:
        pod = self.view.pods_by_uid.get(bound.uid)
        return from_binding(bound) if pod is None else pod.with_placement(bound, None)
