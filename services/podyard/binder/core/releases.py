"""Which bindings have to end, and which tombstones may go.

A binding ends when its pod has ended, when its node is gone, or when its object is gone. The tombstone stays
while the object lives, so that a uid is never bound twice; then it gets a TTL. Both rewrite the stored
message, which is read first: it names its sequence, and holds the decision that `explain` shows.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.binder.core.effects import Stored, Write
from podyard.binder.core.world import World
from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.objects.pod import ENDED
from podyard.proto import codec, subjects
from podyard.proto.message import PodRef
from podyard.proto.placement import Binding, Release, ReleaseReason, release_of, tombstone_of
from podyard.proto.traces import is_sampled

UNKNOWN_OBJECT: Final = 0
"""Sequence of a view that was made from a binding alone."""


class ReadyRelease(NamedTuple):
    """A binding to end, and the message that ends it."""

    release: Release
    write: Write


def why_release(pod: PodView, nodes: Mapping[str, object]) -> ReleaseReason | None:
    """Why the binding of a bound pod has to end; `None`: it goes on.

    A pod that has ended holds no room; one whose agent still stops it does. A deleted object ends the binding
    at once: whoever removes the object of a bound pod has waited for its agent, or asked for no grace.
    """
    if pod.gone:
        return "orphan" if pod.sequence == UNKNOWN_OBJECT else "terminated"
    if pod.bound is not None and pod.bound.node not in nodes:
        return "nodeGone"
    if _nothing_runs(pod):
        return "terminated" if pod.deleting else "completed"
    return None


def _nothing_runs(pod: PodView) -> bool:
    if pod.status is not None:
        return pod.status.ended
    return pod.stored.status.phase in ENDED


def _only_waits(change: Change) -> bool:
    """Whether the pod was and is bound nowhere: there is nothing to end."""
    old, new = change.old, change.new
    return new is not None and new.bound is None and new.release is None and (old is None or old.bound is None)


class Releases:
    """Bindings that wait for their end and tombstones that wait for their TTL, by uid."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wanted: dict[str, ReleaseReason] = {}
        self._traces: dict[str, str] = {}
        """Of what ended the pod, for those of `_wanted` where that trace is kept."""
        self._expiring: dict[str, PodRef] = {}
        self._unread: dict[str, PodRef] = {}
        self._reading: set[str] = set()
        self.read: dict[str, Stored] = {}
        """Those that could be written now, with what is stored; for others to look at."""
        self._written_with_ttl: set[str] = set()

    @property
    def urgent(self) -> bool:
        """Whether some of them free room."""
        return bool(self.read) and bool(self._wanted)

    def consider(self, changes: Iterable[Change]) -> None:
        """After the world followed `changes`: note what they end."""
        for change in changes:
            if change.resource == subjects.NODES:
                if change.new is None and change.old is not None:
                    self._node_gone(change.old.name)
            elif change.resource == subjects.PODS and not _only_waits(change):
                self._pod_changed(change)

    def forget_tombstones(self, found: Iterable[PodRef]) -> None:
        """Tombstones without a TTL, as a listing found them: those of pods that are no more get one."""
        for pod in found:
            if pod.uid not in self._world.view.pods_by_uid:
                self._expire(pod)

    def reads(self) -> list[PodRef]:
        """Bindings to be read now; each is named once until its answer."""
        if not self._unread:
            return []
        found, self._unread = list(self._unread.values()), {}
        self._reading.update(pod.uid for pod in found)
        return found

    def take_answer(self, found: Mapping[str, Stored | None]) -> bool:
        """What the bindings hold; returns whether some were not there (a stale read) and will be read
        again."""
        missing = False
        for uid, stored in found.items():
            self._reading.discard(uid)
            if uid not in self._wanted and uid not in self._expiring:
                continue
            if stored is None or stored.placement is None:
                missing = self._not_found(uid) or missing
            elif not self._done_already(uid, stored):
                self.read[uid] = stored
        return missing

    def ready(self, limit: int, epoch_now: float) -> tuple[list[ReadyRelease], list[Write]]:
        """Take out up to `limit` releases, and tombstones to be written with a TTL."""
        releases: list[ReadyRelease] = []
        expiries: list[Write] = []
        for uid in list(self.read)[:limit]:
            stored = self.read.pop(uid)
            placement = stored.placement
            if isinstance(placement, Binding):
                if self._still_to_end(uid):
                    releases.append(self._release(placement, stored.sequence, epoch_now))
            elif placement is not None:
                subject = subjects.binding(placement.namespace, placement.name, placement.uid)
                expiries.append(Write(subject, codec.encode(placement), stored.sequence, expires=True))
                self._expiring.pop(uid, None)
        return releases, expiries

    def done(self, releases: Iterable[ReadyRelease]) -> None:
        """They are durable."""
        for ready in releases:
            uid = ready.release.uid
            self._forget(uid)
            self._world.free(uid)
            if ready.write.expires and uid in self._world.unseen_releases:
                self._written_with_ttl.add(uid)

    def retry(self, releases: Iterable[ReadyRelease], expiries: Iterable[Write]) -> None:
        """They were not written: read again, since what is stored may be another version."""
        for ready in releases:
            release = ready.release
            self._want(PodRef(namespace=release.namespace, name=release.name, uid=release.uid), release.reason)
        for write in expiries:
            pod = subjects.parse_pod(write.subject)
            self._expire(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid))

    # ---- inside --------------------------------------------------------------------------------------------

    def _node_gone(self, node: str) -> None:
        for bound in list(self._world.table.pods_on(node).values()):
            self._look_at(bound.uid)

    def _pod_changed(self, change: Change) -> None:
        if change.release is not None:
            self._forget(change.uid)
            if change.new is None and change.uid not in self._written_with_ttl:
                release = change.release
                self._expire(PodRef(namespace=release.namespace, name=release.name, uid=release.uid))
            self._written_with_ttl.discard(change.uid)
        elif change.new is None and change.old is not None and change.old.released:
            self._expire(PodRef(namespace=change.old.namespace, name=change.old.name, uid=change.uid))
        else:
            self._look_at(change.uid, change.origin.trace)

    def _forget(self, uid: str) -> None:
        self._wanted.pop(uid, None)
        self._traces.pop(uid, None)

    def _look_at(self, uid: str, trace: str = "") -> None:
        """:param trace: of what changed"""
        pod = self._world.view.pods_by_uid.get(uid)
        if pod is None or pod.bound is None or uid in self._world.unseen_releases:
            return
        reason = why_release(pod, self._world.view.nodes)
        if reason is not None and uid not in self._wanted:
            self._want(PodRef(namespace=pod.namespace, name=pod.name, uid=uid), reason)
            if is_sampled(trace):
                self._traces[uid] = trace

    def _want(self, pod: PodRef, reason: ReleaseReason) -> None:
        self._wanted[pod.uid] = reason
        self._ask(pod)

    def _expire(self, pod: PodRef) -> None:
        self._expiring[pod.uid] = pod
        self._ask(pod)

    def _ask(self, pod: PodRef) -> None:
        if pod.uid not in self._reading and pod.uid not in self.read:
            self._unread[pod.uid] = pod

    def _not_found(self, uid: str) -> bool:
        """Nothing to be read: a stale read of a live binding, or a tombstone that is gone, as it should
        be."""
        if self._expiring.pop(uid, None) is not None and uid not in self._wanted:
            return False
        pod = self._world.view.pods_by_uid.get(uid)
        if pod is None or pod.bound is None:
            self._forget(uid)
            return False
        self._unread[uid] = PodRef(namespace=pod.namespace, name=pod.name, uid=uid)
        return True

    def _done_already(self, uid: str, stored: Stored) -> bool:
        """Whether what is stored needs no write: a tombstone that has a TTL, or whose object still lives."""
        if isinstance(stored.placement, Binding):
            return False
        self._forget(uid)
        if stored.expiring or uid not in self._expiring:
            self._expiring.pop(uid, None)
            return True
        return False

    def _still_to_end(self, uid: str) -> bool:
        """Judge once more what was noted before the read: its node may be back. Of a pod that the view has
        lost nothing else is known."""
        pod = self._world.view.pods_by_uid.get(uid)
        if pod is None:
            return True
        reason = why_release(pod, self._world.view.nodes)
        if reason is None:
            self._forget(uid)
            return False
        self._wanted[uid] = reason
        return True

    def _release(self, binding: Binding, sequence: int, now: float) -> ReadyRelease:
        uid = binding.uid
        release = release_of(binding, self._wanted.get(uid, "orphan"), self._traces.get(uid, ""))
        tombstone = tombstone_of(release, released_at=now, binding=binding)
        pod = self._world.view.pods_by_uid.get(uid)
        subject = subjects.binding(binding.namespace, binding.name, uid)
        return ReadyRelease(release, Write(subject, codec.encode(tombstone), sequence, expires=pod is None or pod.gone))
