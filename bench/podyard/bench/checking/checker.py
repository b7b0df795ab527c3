"""Judges the history of CLUSTER, message by message as it is stored. It shares no code with the binder or the
framework.

When a binding is stored:

- there is one binding per pod uid, ever
- what live bindings take is what their pods request

When a batch is stored:

- bindings and releases are told by the record of their batch, and only there
- nobody writes placements whose epoch is not the fence's highest, or under another's epoch

When a record is stored:

- no node is over its allocatable, no host port taken twice, no required anti-affinity or hard spread broken;
  judged binding by binding, at the record's position; forced ones count and are not judged
- numbers of commits have no gap

When a release is stored:

- a binding becomes a tombstone once, of the node it was on
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from podyard.bench.checking import rules, storage_rules
from podyard.bench.checking.history import (
    CLAIMS,
    CLASSES,
    CSI_NODES,
    LATEST,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    Document,
    History,
    State,
    UnknownError,
    Version,
)
from podyard.bench.checking.selecting import UnreadError
from podyard.bench.checking.standing import Placed, Standing, requests
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Placement, Tombstone

NOTED: Final = (PODS, NODES, VOLUMES, CLAIMS, CLASSES, CSI_NODES, NAMESPACES)
"""Resources that the rules read."""
OVERWRITTEN: Final = "the pod, its node or what they go by was written again since"
NO_RECORD: Final = "the record of the commit is gone: they are kept 10 minutes"

_read_placement = codec.decoder(Placement).decode
_read_event = codec.decoder(ClusterEvent).decode


class Read:
    """One stored message, read.

    :param lines: its headers
    :param deleted: it is a marker that the server made
    """

    def __init__(
        self, subject: str, payload: bytes, sequence: int, lines: Mapping[str, str], *, deleted: bool = False
    ) -> None:
        self.subject = subject
        self.payload = payload
        self.sequence = sequence
        self.document: Document | None = None
        self.placement: Binding | Tombstone | None = None
        self.record: CommitRecord | None = None
        self.fence: Fence | None = None
        self.batch = lines.get(headers.BATCH_ID, "")
        self.ends_batch = not self.batch or headers.BATCH_COMMIT in lines
        self.before = int(lines.get(headers.EXPECTED_LAST_SUBJECT_SEQUENCE, "0"))
        if deleted or lines.get(headers.OPERATION) == headers.DELETED:
            return
        if subject.startswith("placement.bindings."):
            self.placement = _read_placement(payload)
        elif subject.startswith("placement.commits."):
            self.record = codec.decode(CommitRecord, payload)
        elif subject == subjects.FENCE:
            self.fence = codec.decode(Fence, payload)
        elif subject.count(".") == 3:
            self.document = msgspec.json.decode(bytes(_read_event(payload).object))


class Checker:
    """`violations` holds sentences; empty is good.

    :param complete: every message is handed over as it is stored. Else it is what a stream still holds: what
        was overwritten is missing, and what depends on it is counted in `unjudged`
    """

    def __init__(self, *, complete: bool = True) -> None:
        self.violations: list[str] = []
        self.live: dict[str, BoundPod] = {}
        self.commits = 0
        self.bound = 0
        self.released = 0
        self.judged = 0
        """Bindings that were judged by every rule."""
        self.unjudged: Counter[str] = Counter()
        """Others, by the reason."""
        self.fence = Fence(epoch=0, n=0)
        self._complete = complete
        self._begin()

    def _begin(self) -> None:
        self._history = History()
        self._ever: dict[str, str] = {}
        """Uid -> what its subject holds: `binding` or `tombstone`."""
        self._standing = Standing()
        self._expired = 0
        """Records that had expired before the first that is there."""
        self._position = 0
        """Of `_standing`: pods are there as they are at this one."""
        self._of: dict[tuple[str, str], set[str]] = {}
        """Uids of live bindings, by namespace and name of the pod."""

    def begin_anew(self) -> None:
        """The stream was made again: what was bound before is a matter of what is published now."""
        self.live.clear()
        self.commits = 0
        self.fence = Fence(epoch=0, n=0)
        self._begin()

    def stored(self, batch: Sequence[Read]) -> None:
        """What was stored at once."""
        self.note(batch)
        self.judge(batch)

    def held(self, batches: Sequence[Sequence[Read]]) -> None:
        """All that a stream still holds, in its order. Versions of objects are of any time."""
        for batch in batches:
            self.note(batch)
        for batch in batches:
            self.judge(batch)

    # ---- objects

    def note(self, batch: Sequence[Read]) -> None:
        """Objects that were stored at once."""
        changed: list[tuple[str, Version | None, Document]] = []
        for read in batch:
            if read.fence is not None or read.subject == subjects.CENSUS:
                continue
            area, resource, *_ = read.subject.split(".")
            if area == "cluster" and resource in NOTED:
                _, namespace, name = subjects.parse_object(read.subject)
                before = self._history.note(resource, namespace, name, read.sequence, read.document, read.before)
                if resource in (VOLUMES, CLAIMS) and read.document is not None:
                    changed.append((resource, before, read.document))
        if changed:
            state = self._history.at(LATEST)
            for resource, version, now in changed:
                with suppress(UnknownError):
                    why = storage_rules.broken(resource, version.document if version else None, now, state)
                    if why:
                        self._wrong(f"@{batch[-1].sequence}: {why}")

    # ---- placements

    def judge(self, batch: Sequence[Read]) -> None:
        """Bindings, releases and the record of what was stored at once, once its objects are noted."""
        records = [read.record for read in batch if read.record is not None]
        placements = [read.placement for read in batch if read.placement is not None]
        cut = not self._complete and not batch[-1].ends_batch
        """Its end was overwritten, which is where its fence was."""
        for read in batch:
            if read.fence is not None:
                self._moved(read.fence)
        touched = any(one.subject.startswith("placement.") for one in batch)
        if touched and batch[-1].fence is None and not cut:
            self._wrong(f"@{batch[-1].sequence}: placements are written without the fence")
        elif cut and records:
            self._moved(Fence(epoch=records[-1].epoch, n=records[-1].n))
        told = {pod.uid for record in records for pod in record.bindings} | {
            one.uid for record in records for one in record.releases
        }
        for placement in placements:
            again = self._ever.get(placement.uid) == "tombstone" and isinstance(placement, Tombstone)
            if placement.uid not in told and not again:  # a tombstone is written again to get its TTL
                self._untold(placement, records, cut=cut)
        for record in records:
            self._commit(record, range(batch[0].sequence, batch[-1].sequence + 1))
        for placement in placements:
            self._ever[placement.uid] = "tombstone" if isinstance(placement, Tombstone) else "binding"

    def _untold(self, placement: Binding | Tombstone, records: Sequence[CommitRecord], *, cut: bool) -> None:
        if isinstance(placement, Tombstone) and self._expired:
            return  # the record of its release may be among those
        if records or not cut:
            self._wrong(f"the batch that writes {placement.name} has no record of it")
        elif isinstance(placement, Binding):
            self.unjudged[NO_RECORD] += 1
            self.bound += 1
            self._add(placement)

    def _wrong(self, text: str) -> None:
        self.violations.append(text)

    def _moved(self, fence: Fence) -> None:
        before = self.fence
        others = fence.epoch == before.epoch and "" not in (fence.holder, before.holder)
        if fence.epoch < before.epoch or (others and fence.holder != before.holder):
            self._wrong(
                f"{fence.holder} with epoch {fence.epoch} writes after {before.holder} moved the fence to {before.epoch}"
            )
        self.fence = fence

    def _commit(self, record: CommitRecord, batch: range) -> None:
        if not self._complete and not self.commits:
            self.commits = self._expired = record.n - 1
        self.commits += 1
        if record.n != self.commits:
            self._wrong(f"commit {record.n} is the {self.commits}th")
        if record.n != self.fence.n or record.epoch != self.fence.epoch:
            self._wrong(f"commit {record.n} of epoch {record.epoch} beside a fence {self.fence}")
        state = self._history.at(record.position, batch)
        self._stand_at(record.position)
        for pod in record.bindings:
            self._bind(record, pod, state)
        for release in record.releases:
            self.released += 1
            bound = self.live.pop(release.uid, None)
            self._standing.drop(release.uid)
            self._ever[release.uid] = "tombstone"
            self._of.get((release.namespace, release.name), set()).discard(release.uid)
            unheard = bound is None and self._expired
            if not unheard and (bound is None or bound.node != release.node):
                self._wrong(f"commit {record.n} releases {release.name} from {release.node}, where it is not")

    def _bind(self, record: CommitRecord, bound: BoundPod, state: State) -> None:
        where = f"commit {record.n} binds {bound.name} to {bound.node}"
        if bound.uid in self._ever or bound.uid in self.live:
            self._wrong(f"{where}, which was bound before")
        self.bound += 1
        try:
            self._rules(record, bound, state, where)
        except UnknownError:
            self.unjudged[OVERWRITTEN] += 1
            self._room(bound, state, where)
        except UnreadError as error:
            self.unjudged[f"the rules do not read {error}"] += 1
            self._room(bound, state, where)
            if self._complete:
                self._wrong(f"{where}, and the rules do not read {error}")
        else:
            self.judged += not bound.forced
        self._ever[bound.uid] = "binding"
        self._add(bound)

    def _rules(self, record: CommitRecord, bound: BoundPod, state: State, where: str) -> None:
        pod = self._history.pod(bound.namespace, bound.name, bound.uid, record.position)
        node = state.get(NODES, "", bound.node)
        if pod is None:
            self._wrong(f"{where}, which is not there at {record.position}")
        elif node is None and not bound.forced:
            self._wrong(f"{where}, a node that is not there at {record.position}")
        elif node is not None and not bound.forced:
            why = rules.why_not(pod, node, state, self._standing, bound=True)
            if why:
                self._wrong(f"{where} at {record.position}, against: {why}")
        if pod is not None:
            taken, wanted = {**bound.usage.requests, "pods": 1}, requests(pod)
            if any(taken.get(name, 0) != amount for name, amount in wanted.items()):
                self._wrong(f"{where}, which takes {taken} and requests {dict(wanted)}")

    def _room(self, bound: BoundPod, state: State, where: str) -> None:
        """That much can be judged of a pod that nobody can read any more: its binding says what it takes."""
        try:
            node = state.get(NODES, "", bound.node)
        except UnknownError:
            return
        if node is None or bound.forced:
            return
        over = rules.overload(node, Counter({"pods": 1, **bound.usage.requests}) + self._standing.taken(bound.node))
        if over:
            self._wrong(f"{where}, against: overload {over}")

    # ---- who is where

    def _add(self, bound: BoundPod) -> None:
        self.live[bound.uid] = bound
        self._of.setdefault((bound.namespace, bound.name), set()).add(bound.uid)
        self._put(bound)

    def _put(self, bound: BoundPod) -> None:
        """A live binding, with its pod as it is at the position, or was when it was last there."""
        try:
            pod = self._history.pod(bound.namespace, bound.name, bound.uid, self._position)
        except UnknownError:
            last = self._history.last_of_pod(bound.namespace, bound.name, bound.uid)
            self._standing.put(Placed(bound.uid, _told(bound, last), bound.node, True, bound.usage.requests, True))
            return
        last = pod or self._history.last_of_pod(bound.namespace, bound.name, bound.uid)
        if last is None:
            self._standing.drop(bound.uid)
        else:
            self._standing.put(Placed(bound.uid, last, bound.node, pod is None, bound.usage.requests))

    def _stand_at(self, position: int) -> None:
        """Have live pods stand as they are at a position."""
        changed = self._history.pods_changed(self._position, position)
        self._position = position
        for uid in {uid for key in changed for uid in self._of.get(key, ())}:
            self._put(self.live[uid])

    # ---- the end

    def unbound_that_fit(self, waiting: Iterable[Document]) -> list[str]:
        """Of pods that wait, those that some node would take now; with the node."""
        state = self._history.at(LATEST)
        self._stand_at(self._history.end)
        found: list[str] = []
        for pod in waiting:
            for name, node in state.nodes.documents.items():
                if not rules.why_not(pod, node, state, self._standing):
                    found.append(f"{pod['metadata']['name']} fits {name}")
                    break
        return found


def _told(bound: BoundPod, last: Document | None) -> Document:
    """As much of a pod as its binding says, and what never changes of a later version, if there is one.
    Labels may change."""
    metadata = {"name": bound.name, "namespace": bound.namespace, "uid": bound.uid}
    return {"metadata": metadata, "spec": last["spec"] if last else {"containers": []}}
