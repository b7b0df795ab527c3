"""The dictionaries behind a view, and the steps that keep them consistent. A step says what it changed.

Invariants: a pod with a living object is in `pods` and `pods_by_uid`; one that is bound and not released is
in `pods_by_uid` and `on_node`, whether its object lives or not; facts are kept by uid whether or not their
object is known, since a listing in stream order may bring a fact before its object (the object was written
again later).
"""

from typing import Any, Final, TypeAlias

from msgspec import Raw

from podyard.cluster.changes import Change, Origin, Unreadable
from podyard.cluster.keys import NamespacedName
from podyard.cluster.markers import MarkerMemory
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, from_binding
from podyard.cluster.read_log import ReadLog
from podyard.objects.core import Node, Pod
from podyard.proto import streams, subjects
from podyard.proto.facts import Condition as FactCondition
from podyard.proto.facts import NodeLifeFact, NodeStatusFact, Nomination, PodStatusFact, QuotaUsageFact
from podyard.proto.placement import BoundPod, Fence, Release

QuotaKey: TypeAlias = tuple[str, str, str]
"""Namespace, name and uid of a resource quota."""

DOCUMENTED: Final = frozenset({"persistentvolumes", "persistentvolumeclaims"})
"""Resources that PreBind writes: typed views do not have all of an object, so its document is kept too."""

_NOBODY: Final = Origin()


class Tables:
    """One state of the cluster."""

    def __init__(self, read: ReadLog) -> None:
        """:param read: the messages that make it"""
        self.read = read
        self.pods: dict[NamespacedName, PodView] = {}
        """Pods whose object lives, by namespace and name."""
        self.pods_by_uid: dict[str, PodView] = {}
        """The same, and those that are bound though their object is gone."""
        self.on_node: dict[str, dict[str, PodView]] = {}
        """Pods that take room, by node and uid."""
        self.placements: dict[str, BoundPod | Release] = {}
        """Where a uid is bound, or that it was."""
        self.nodes: dict[str, NodeView] = {}
        self.others: dict[str, dict[NamespacedName, Any]] = {}
        self.others_changed: dict[str, int] = {}
        """Sequence of the last change of any object, by resource."""
        self.documents: dict[tuple[str, NamespacedName], tuple[int, Raw]] = {}
        """Sequence and document of the objects that this reader may have to write again whole
        (`DOCUMENTED`)."""
        self.nominations: dict[str, Nomination] = {}
        self.pod_statuses: dict[tuple[str, str], PodStatusFact] = {}
        """By uid and node: only what the agent of its own node says about a pod is joined to it."""
        self.node_statuses: dict[str, NodeStatusFact] = {}
        self.node_lives: dict[str, NodeLifeFact] = {}
        self.quota_usages: dict[QuotaKey, QuotaUsageFact] = {}
        self.fence: Fence | None = None
        self.versions: dict[str, int] = {}
        """Last sequence by subject, markers included: each version must name it as its predecessor."""
        self.unreadable: dict[str, Unreadable] = {}
        """Last versions that cannot be read, by subject."""
        self.unknown_places: dict[str, str] = {}
        """Subjects of placements that cannot be read, by the pod's uid."""
        self._markers = MarkerMemory()
        """Subjects whose last version is a marker."""
        self._strays = MarkerMemory()
        """Uids that were released without a known object."""

    # Versions

    def succeeds(self, subject: str, sequence: int, predecessor: int | None) -> bool:
        """Note a new version, and say whether it follows the one that was known. After a marker, 0 follows
        too: it may have expired."""
        known = self.versions.get(subject, 0)
        self.versions[subject] = sequence
        marked = self._markers.unmark(subject)
        return predecessor == known or (marked and predecessor == 0)

    def mark(self, subject: str, at: float, ttl_s: int) -> None:
        """The subject's last version is a deletion marker, stored at `at` for `ttl_s` seconds; forget those
        that have long expired."""
        for expired in self._markers.mark(subject, at, ttl_s):
            del self.versions[expired]

    # Pods

    def put_pod(self, key: NamespacedName, stored: Pod, origin: Origin, gap: bool) -> list[Change]:
        """A version of a pod's object."""
        uid = stored.metadata.uid
        changes: list[Change] = []
        old = self.pods.get(key)
        if old is not None and old.uid != uid:
            changes += self.remove_pod(key, origin)
            old = None
        if old is None:
            old = self.pods_by_uid.get(uid)  # its binding was read before its object
        view = PodView(stored, key, uid, origin.sequence)
        if old is not None:
            view.bound, view.release, view.status, view.nomination = old.bound, old.release, old.status, old.nomination
            view.lost, view.unknown_place = old.lost, old.unknown_place
        elif uid in self.placements or uid in self.nominations:
            self._join_facts(view)
        self._store(view)
        changes.append(Change(subjects.PODS, uid, old, view, origin, gap=gap))
        return changes

    def remove_pod(self, key: NamespacedName, origin: Origin, gap: bool = False) -> list[Change]:
        """The pod's object is gone. One that is bound keeps its room until its release."""
        old = self.pods.pop(key, None)
        if old is None:
            return []
        if old.bound is not None:
            self._store(old.without_object())
        else:
            del self.pods_by_uid[old.uid]
            self._forget_release(old.uid)
        return [Change(subjects.PODS, old.uid, old, None, origin, gap=gap)]

    def bind(self, bound: BoundPod, origin: Origin) -> Change | None:
        """A binding; None if it is known already, or ended already."""
        uid = bound.uid
        if uid in self.placements:
            return None
        self.placements[uid] = bound
        old = self.pods_by_uid.get(uid)
        view = from_binding(bound) if old is None else old.with_placement(bound, None)
        if uid in self.nominations or (self.pod_statuses and (uid, bound.node) in self.pod_statuses):
            self._join_facts(view)
        elif self.node_lives:
            view.lost = self._lost(bound.node)
        self._store(view)
        return Change(subjects.PODS, uid, old, view, origin, bound=True)

    def release(self, release: Release, origin: Origin, ttl_s: int) -> Change | None:
        """The end of a binding, by uid, whatever is known of the pod; None if it is known already.

        :param ttl_s: how long the stream keeps what told of it
        """
        uid = release.uid
        before = self.placements.get(uid)
        if isinstance(before, Release):
            return None
        self.placements[uid] = release
        old = self.pods_by_uid.get(uid)
        if before is not None:
            self._leave_node(before)
        if old is None or old.gone:
            self.pods_by_uid.pop(uid, None)
            for expired in self._strays.mark(uid, origin.at, ttl_s):
                self._forget_release(expired)
            return Change(subjects.PODS, uid, old, None, origin, release=release)
        view = old.with_placement(None, release)
        self._join_facts(view)
        self._store(view)
        return Change(subjects.PODS, uid, old, view, origin, release=release)

    def rejoin_pod(self, uid: str, origin: Origin, gap: bool) -> list[Change]:
        """A fact about the pod came, changed or went."""
        old = self.pods_by_uid.get(uid)
        if old is None:
            return []
        view = old.with_placement(old.bound, old.release)
        view.unknown_place = old.unknown_place
        self._join_facts(view)
        if view.status is old.status and view.nomination is old.nomination:
            return []
        self._store(view)
        return [Change(subjects.PODS, uid, old, view, origin, gap=gap)]

    def keep_places(self, before: "Tables") -> None:
        """After a listing: where a placement cannot be read, what was known of it stays. Of a pod of which
        nothing is known, nobody may say that it is not bound."""
        for uid in self.unknown_places:
            known = before.placements.get(uid)
            if isinstance(known, BoundPod):
                self.bind(known, _NOBODY)
            elif known is not None:
                self.release(known, _NOBODY, streams.MARKER_TTL_S)
            elif (view := self.pods_by_uid.get(uid)) is not None:
                view.unknown_place = True

    def place_known(self, uid: str) -> None:
        """A commit says where the pod is, or that it has ended: what could not be read was mended."""
        subject = self.unknown_places.pop(uid, None)
        if subject is not None:
            self.unreadable.pop(subject, None)

    def prune_releases(self) -> None:
        """After a listing: forget releases of pods that are no more."""
        for uid, placement in list(self.placements.items()):
            if isinstance(placement, Release) and uid not in self.pods_by_uid:
                del self.placements[uid]

    def _join_facts(self, view: PodView) -> None:
        """Set what others know about a view that nobody has seen yet."""
        placement = self.placements.get(view.uid)
        if isinstance(placement, BoundPod):
            view.bound = placement
        elif placement is not None:
            view.release = placement
        if self.node_lives and view.bound is not None:
            view.lost = self._lost(view.bound.node)
        view.nomination = self.nominations.get(view.uid)
        view.status = None if placement is None else self.pod_statuses.get((view.uid, placement.node))

    def _store(self, view: PodView) -> None:
        uid = view.uid
        if not view.gone:
            self.pods[view.key] = view
        self.pods_by_uid[uid] = view
        if view.bound is not None:
            on_node = self.on_node.get(view.bound.node)
            if on_node is None:
                on_node = self.on_node[view.bound.node] = {}
            on_node[uid] = view

    def _leave_node(self, bound: BoundPod) -> None:
        on_node = self.on_node[bound.node]
        del on_node[bound.uid]
        if not on_node:
            del self.on_node[bound.node]

    def _forget_release(self, uid: str) -> None:
        if uid not in self.pods_by_uid and isinstance(self.placements.get(uid), Release):
            del self.placements[uid]

    # Nodes and others

    def put_node(self, name: str, stored: Node, origin: Origin, gap: bool) -> list[Change]:
        """A version of a node's object."""
        uid = stored.metadata.uid
        changes: list[Change] = []
        old = self.nodes.get(name)
        if old is not None and old.uid != uid:
            changes += self.remove_node(name, origin)
            old = None
        status, blind, life = self._node_status(name, uid), self._blind(name), self._node_life(name, uid)
        view = NodeView(stored, name, uid, origin.sequence, status, blind, life)
        self.nodes[name] = view
        changes.append(Change(subjects.NODES, uid, old, view, origin, gap=gap))
        return changes if life is None else [*changes, *self._rejoin_pods(name, origin, gap)]

    def remove_node(self, name: str, origin: Origin, gap: bool = False) -> list[Change]:
        """The node's object is gone."""
        old = self.nodes.pop(name, None)
        if old is None:
            return []
        pods = [] if old.life is None else self._rejoin_pods(name, origin, gap)
        return [Change(subjects.NODES, old.uid, old, None, origin, gap=gap), *pods]

    def rejoin_node(self, name: str, origin: Origin, gap: bool) -> list[Change]:
        """What others say of the node came, changed or went."""
        old = self.nodes.get(name)
        if old is None:
            return []
        status, blind, life = self._node_status(name, old.uid), self._blind(name), self._node_life(name, old.uid)
        if status is old.status and blind == old.blind and life is old.life:
            return []
        view = NodeView(old.stored, name, old.uid, old.sequence, status, blind, life)
        self.nodes[name] = view
        pods = [] if life is old.life else self._rejoin_pods(name, origin, gap)
        return [Change(subjects.NODES, old.uid, old, view, origin, gap=gap), *pods]

    def _rejoin_pods(self, node: str, origin: Origin, gap: bool) -> list[Change]:
        """A node was lost, or is heard again: so much for whether its pods are ready."""
        lost = self._lost(node)
        changes: list[Change] = []
        for uid, old in list(self.on_node.get(node, {}).items()):
            if old.lost == lost:
                continue
            view = old.with_placement(old.bound, None)
            view.unknown_place = old.unknown_place
            view.lost = lost
            self._store(view)
            if not view.gone:
                changes.append(Change(subjects.PODS, uid, old, view, origin, gap=gap))
        return changes

    def _lost(self, node: str) -> FactCondition | None:
        found = self.nodes.get(node)
        return None if found is None else found.lost

    def _node_status(self, name: str, uid: str) -> NodeStatusFact | None:
        fact = self.node_statuses.get(name)
        return fact if fact is not None and fact.node_uid in ("", uid) else None

    def _node_life(self, name: str, uid: str) -> NodeLifeFact | None:
        fact = self.node_lives.get(name)
        return fact if fact is not None and fact.node_uid == uid else None

    def _blind(self, name: str) -> str:
        found = self.unreadable.get(subjects.node_status(name)) if self.unreadable else None
        return "" if found is None else found.reason

    def put_other(self, resource: str, key: NamespacedName, new: Any, origin: Origin, gap: bool) -> list[Change]:
        """A version of an object of any other kind."""
        changes: list[Change] = []
        objects = self.others.setdefault(resource, {})
        old = objects.get(key)
        if old is not None and old.metadata.uid != new.metadata.uid:
            changes += self.remove_other(resource, key, origin)
            old = None
        objects[key] = new
        self.others_changed[resource] = origin.sequence
        changes.append(Change(resource, new.metadata.uid, old, new, origin, gap=gap))
        return changes

    def remove_other(self, resource: str, key: NamespacedName, origin: Origin, gap: bool = False) -> list[Change]:
        """An object of any other kind is gone."""
        self.documents.pop((resource, key), None)
        old = self.others.get(resource, {}).pop(key, None)
        self.others_changed[resource] = origin.sequence
        return [] if old is None else [Change(resource, old.metadata.uid, old, None, origin, gap=gap)]
