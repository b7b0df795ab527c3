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

from collections.abc import Iterable, Sequence

import msgspec

from podyard.bus import _heads
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Placement, Tombstone
from tests.memory_nats.stream import Stored
from tests.simulation import rules, storage_rules
from tests.simulation.hesitating import LABEL
from tests.simulation.history import CLAIMS, CLASSES, CSI_NODES, LATEST, NODES, PODS, VOLUMES, Document, History, State
from tests.simulation.rules import Placed

NOTED = (PODS, NODES, VOLUMES, CLAIMS, CLASSES, CSI_NODES)
"""Resources that the rules read."""

_read_placement = codec.decoder(Placement).decode
_read_event = codec.decoder(ClusterEvent).decode


class Read:
    """One stored message, read."""

    def __init__(self, message: Stored) -> None:
        self.message = message
        self.document: Document | None = None
        self.placement: Binding | Tombstone | None = None
        self.record: CommitRecord | None = None
        self.fence: Fence | None = None
        lines = _heads.parse(message.head) if message.head else {}
        if lines.get(headers.OPERATION) == headers.DELETED:
            return
        subject = message.subject
        if subject.startswith("placement.bindings."):
            self.placement = _read_placement(message.payload)
        elif subject.startswith("placement.commits."):
            self.record = codec.decode(CommitRecord, message.payload)
        elif subject == subjects.FENCE:
            self.fence = codec.decode(Fence, message.payload)
        elif subject.count(".") == 3:
            self.document = msgspec.json.decode(bytes(_read_event(message.payload).object))


class Checker:
    """`violations` holds sentences; empty is good."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.live: dict[str, BoundPod] = {}
        self.commits = 0
        self.bound = 0
        self.released = 0
        self.fence = Fence(epoch=0, n=0)
        self._history = History()
        self._ever: dict[str, str] = {}
        """Uid -> what its subject holds: `binding` or `tombstone`."""

    def begin_anew(self) -> None:
        """The stream was made again: what was bound before is a matter of what is published now."""
        self.live.clear()
        self.commits = 0
        self.fence = Fence(epoch=0, n=0)
        self._history = History()
        self._ever.clear()

    def stored(self, batch: Sequence[Read]) -> None:
        """What was stored at once."""
        records = [read.record for read in batch if read.record is not None]
        placements = [read.placement for read in batch if read.placement is not None]
        self._note(batch)
        touched = any(one.message.subject.startswith("placement.") for one in batch)
        if touched and batch[-1].fence is None:
            self._wrong(f"@{batch[-1].message.sequence}: placements are written without the fence")
        told = {pod.uid for record in records for pod in record.bindings} | {
            one.uid for record in records for one in record.releases
        }
        for placement in placements:
            again = self._ever.get(placement.uid) == "tombstone" and isinstance(placement, Tombstone)
            if placement.uid not in told and not again:  # a tombstone is written again to get its TTL
                self._wrong(f"the batch that writes {placement.name} has no record of it")
        for record in records:
            self._commit(record, batch[0].message.sequence)
        for placement in placements:
            self._ever[placement.uid] = "tombstone" if isinstance(placement, Tombstone) else "binding"

    def _wrong(self, text: str) -> None:
        self.violations.append(text)

    def _note(self, batch: Sequence[Read]) -> None:
        changed: list[tuple[str, Document | None, Document]] = []
        for read in batch:
            if read.fence is not None:
                self._moved(read.fence)
                continue
            if read.message.subject == subjects.CENSUS:
                continue
            area, resource, *_, name = read.message.subject.split(".")
            if area == "cluster" and resource in NOTED:
                before = self._history.note(resource, subjects.decode(name), read.message.sequence, read.document)
                if resource in (VOLUMES, CLAIMS) and read.document is not None:
                    changed.append((resource, before, read.document))
        if changed:
            state = self._history.at(LATEST)
            for resource, before, now in changed:
                why = storage_rules.broken(resource, before, now, state)
                if why:
                    self._wrong(f"@{batch[-1].message.sequence}: {why}")

    def _moved(self, fence: Fence) -> None:
        before = self.fence
        if fence.epoch < before.epoch or (fence.epoch == before.epoch and fence.holder != before.holder):
            self._wrong(
                f"{fence.holder} with epoch {fence.epoch} writes after {before.holder} moved the fence to {before.epoch}"
            )
        self.fence = fence

    def _commit(self, record: CommitRecord, batch_from: int) -> None:
        self.commits += 1
        if record.n != self.commits:
            self._wrong(f"commit {record.n} is the {self.commits}th")
        if record.n != self.fence.n or record.epoch != self.fence.epoch:
            self._wrong(f"commit {record.n} of epoch {record.epoch} beside a fence {self.fence}")
        state = self._history.at(record.position, batch_from)
        placed = self._placed(record.position)
        for pod in record.bindings:
            self._bind(record, pod, state, placed)
        for release in record.releases:
            self.released += 1
            bound = self.live.pop(release.uid, None)
            if bound is None or bound.node != release.node:
                self._wrong(f"commit {record.n} releases {release.name} from {release.node}, where it is not")

    def _bind(self, record: CommitRecord, bound: BoundPod, state: State, placed: list[Placed]) -> None:
        where = f"commit {record.n} binds {bound.name} to {bound.node}"
        if bound.uid in self._ever or bound.uid in self.live:
            self._wrong(f"{where}, which was bound before")
        self.bound += 1
        pod, node = self._history.pod(bound.uid, record.position), state.nodes.get(bound.node)
        if pod is None:
            self._wrong(f"{where}, which is not there at {record.position}")
        elif node is None and not bound.forced:
            self._wrong(f"{where}, a node that is not there at {record.position}")
        elif node is not None and not bound.forced:
            why = rules.why_not(pod, node, state, placed, bound=True)
            if why:
                self._wrong(f"{where} at {record.position}, against: {why}")
        if pod is not None:
            taken, wanted = {**bound.usage.requests, "pods": 1}, rules.requests(pod)
            if any(taken.get(name, 0) != amount for name, amount in wanted.items()):
                self._wrong(f"{where}, which takes {taken} and requests {dict(wanted)}")
            placed.append(Placed(bound.uid, pod, bound.node, bound=bound.usage.requests))
        self.live[bound.uid] = bound

    def _placed(self, position: int) -> list[Placed]:
        """Live bindings, with their pods as they are at a position, or were when they were last there."""
        found: list[Placed] = []
        for one in self.live.values():
            pod = self._history.pod(one.uid, position)
            last = pod or self._history.last_of_pod(one.uid)
            if last is not None:
                found.append(Placed(one.uid, last, one.node, pod is None, one.usage.requests))
        return found

    # ---- the end

    def unbound_that_fit(self, waiting: Iterable[Document]) -> list[str]:
        """Of pods that wait, those that some node would take now; with the node. What a user's plugin thinks
        of them nobody knows.
        """
        state, placed = self._history.at(LATEST), self._placed(LATEST)
        found: list[str] = []
        for pod in waiting:
            if LABEL in rules.labels(pod):
                continue
            for name, node in state.nodes.items():
                if not rules.why_not(pod, node, state, placed):
                    found.append(f"{pod['metadata']['name']} fits {name}")
                    break
        return found
