"""One commit: what it holds, and the messages it is written as
(docs/rules.md, fence-comes-last-in-the-batch)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from podyard.binder.core.effects import Write
from podyard.binder.core.fence import FenceKeeper
from podyard.binder.core.node_takes_pod import Accepted
from podyard.binder.core.pending import Pending
from podyard.binder.core.releases import ReadyRelease
from podyard.framework.interfaces import ObjectWrite
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindAnswer
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import BoundPod, CommitRecord, binding_of

MAX_BATCH: Final = streams.MAX_BATCH
"""Decisions of one batch, and releases."""

MAX_BINDING_BYTES: Final = 256 * 1024
"""How large one binding may be. A larger one would be refused by the server, and its mates with it, again and
again."""

MAX_RECORD_BYTES: Final = streams.MAX_PAYLOAD_BYTES - MAX_BINDING_BYTES - 256 * 1024
"""From which size of its bindings on a commit record takes no more: the last one, releases and headers still
fit."""

MAX_OBJECTS: Final = 100
"""Objects that PreBind may want written for one decision."""

MAX_PAYLOADS: Final = 640
"""Bindings and objects of PreBind in one batch, before the last decision: with that, 256 releases, the record
and the fence below the server's 1,000."""

CAUSE_SIZE: Final = "size"

SERVICE: Final = "binder"


class Batch:
    """What one commit is to do. A batch with refusals only is written as a move of the fence: that, too,
    proves that we still lead."""

    def __init__(self) -> None:
        self.id = ""
        self.accepted: list[tuple[Pending, Accepted]] = []
        self.forced: list[BoundPod] = []
        self.refused: list[tuple[Pending, BindAnswer]] = []
        self.waiting: list[tuple[Pending, Accepted]] = []
        """Decisions of which only what PreBind wants first is written, not the binding."""
        self.releases: list[ReadyRelease] = []
        self.expiries: list[Write] = []
        self.touched: set[str] = set()
        """Subjects of objects that PreBind writes: one subject twice would fail the batch."""
        self.sent_at = 0.0
        self.record: CommitRecord | None = None
        """What its last message but one says, once it was written; None: it commits nothing."""
        self.wire_bytes = 0
        self._payloads: list[Write] = []
        self._entry_bytes = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write and nobody to answer."""
        return not (self.accepted or self.forced or self.refused or self.waiting or self.releases or self.expiries)

    @property
    def commits(self) -> bool:
        """Whether it needs a commit record: it binds or releases."""
        return bool(self.accepted or self.forced or self.releases)

    @property
    def bound(self) -> list[BoundPod]:
        """Bindings, in the order in which they were judged."""
        return [accepted.bound for _, accepted in self.accepted] + self.forced

    @property
    def full(self) -> bool:
        """Whether there is no room for another binding, in the record or in the batch."""
        return self._entry_bytes >= MAX_RECORD_BYTES or len(self._payloads) >= MAX_PAYLOADS

    def accept(self, pending: Pending, accepted: Accepted, now: float) -> str:
        """The decision is to be bound.

        :return: empty, or why it cannot be written
        """
        fault = self._add(accepted.bound, pending, now)
        if fault:
            return fault
        self.accepted.append((pending, accepted))
        for write in accepted.writes:
            self._payloads.append(_object_write(write, pending.decision.trace))
            self.touched.add(self._payloads[-1].subject)
        return ""

    def wait(self, pending: Pending, accepted: Accepted) -> None:
        """The decision is to wait, once what its plugins want first is durable."""
        self.waiting.append((pending, accepted))
        for write in first_writes(accepted):
            self._payloads.append(_object_write(write, pending.decision.trace))
            self.touched.add(self._payloads[-1].subject)

    def force(self, bound: BoundPod, now: float) -> bool:
        """The pod is to be bound without judgement; False if its binding is too large to be written."""
        if self._add(bound, None, now):
            return False
        self.forced.append(bound)
        return True

    def _add(self, bound: BoundPod, pending: Pending | None, now: float) -> str:
        decision = None if pending is None else pending.decision.record
        payload = codec.encode(binding_of(bound, bound_at=now, decision=decision))
        if len(payload) > MAX_BINDING_BYTES:
            return f"the binding takes {len(payload)} bytes, at most {MAX_BINDING_BYTES} can be written: give the pod fewer labels"
        self._entry_bytes += len(payload)
        self._payloads.append(Write(subjects.binding(bound.namespace, bound.name, bound.uid), payload, 0))
        return ""

    def writes(self, keeper: FenceKeeper, position: int, now: float) -> list[Write]:
        """Its messages: bindings and releases (and objects of PreBind), the record, last the fence. Gives it
        a new id."""
        self.id = keeper.next_id()
        self.sent_at = now
        messages = [*self._payloads, *(ready.write for ready in self.releases), *self.expiries]
        if self.commits:
            record = CommitRecord(
                n=keeper.n + 1,
                epoch=keeper.epoch,
                batch=self.id,
                bindings=tuple(self.bound),
                releases=tuple(ready.release for ready in self.releases),
                position=position,
                at=now,
            )
            messages.append(Write(subjects.commit(record.n), codec.encode(record), 0, expires=True))
            self.record = record
            messages.append(keeper.commit(self.id))
        else:
            messages.append(keeper.move(self.id))
        self.wire_bytes = sum(len(message.payload) for message in messages)
        return messages

    def guarded_subjects(self) -> Sequence[str]:
        """Subjects whose compare-and-set may fail, the fence apart."""
        return [
            *(write.subject for write in self._payloads),
            *(r.write.subject for r in self.releases),
            *(w.subject for w in self.expiries),
        ]

    def object_writes(self, accepted: Accepted) -> dict[str, int]:
        """Subjects that PreBind writes for one decision, with the sequence it expects."""
        writes = first_writes(accepted) if accepted.waits else accepted.writes
        return {write.subject: write.expect for write in (_object_write(found, "") for found in writes)}


def first_writes(accepted: Accepted) -> tuple[ObjectWrite, ...]:
    """What is to be durable before the pod is bound."""
    return tuple(write for wait in accepted.waits for write in wait.writes)


def too_many(writes: Sequence[ObjectWrite]) -> str:
    """Why so many objects cannot be written for one decision; empty if they can."""
    return (
        f"PreBind wants {len(writes)} objects written, at most {MAX_OBJECTS} can be"
        if len(writes) > MAX_OBJECTS
        else ""
    )


def subjects_of(writes: Sequence[ObjectWrite]) -> set[str]:
    """Subjects of the objects that PreBind wants to write."""
    return {subjects.object_(write.resource, write.namespace, write.name) for write in writes}


def _object_write(write: ObjectWrite, trace: str) -> Write:
    """An object's new version. Its metadata.resourceVersion names the version that the plugin read; without
    one it must not exist."""
    metadata = dict(write.document.get("metadata", {}))
    version = str(metadata.pop("resourceVersion", "") or "0")
    event = ClusterEvent(
        resource=write.resource,
        namespace=write.namespace,
        name=write.name,
        uid=str(metadata.get("uid", "")),
        who=SERVICE,
        why="for a pod that is bound",
        causes=(trace,) if trace else (),
        object=msgspec.Raw(msgspec.json.encode({**write.document, "metadata": metadata})),
    )
    subject = subjects.object_(write.resource, write.namespace, write.name)
    return Write(subject, codec.encode(event), int(version))
