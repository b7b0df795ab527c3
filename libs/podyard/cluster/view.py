"""ClusterView: the fold of deliveries into what the cluster looks like. Pure.

A shell feeds it: `begin_listing`, any number of `apply`, `end_listing`, then `apply` and `advance` as
messages come. Until a listing ends, readers see the state before it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from podyard.cluster import relisting
from podyard.cluster.changes import Change, DeadDelivery, Delivered, Origin, RelistNeeded, Unreadable
from podyard.cluster.fold import Fold
from podyard.cluster.keys import NamespacedName
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.read_log import ReadLog
from podyard.cluster.tables import DOCUMENTED, QuotaKey, Tables
from podyard.objects import decoding
from podyard.objects.errors import ObjectError
from podyard.proto import codec, placement_reading, subjects
from podyard.proto.codec import MessageError
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import NodeLifeFact, NodeStatusFact, Nomination, PodStatusFact, QuotaUsageFact
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone, entry_of, release_of
from podyard.proto.traces import is_sampled

_Key = TypeVar("_Key")
_Fact = TypeVar("_Fact")

_OBJECT: Final = "cluster"
_PLACEMENT: Final = "placement"
_OBJECT_TOKENS: Final = 4
_UNREADABLE: Final = (MessageError, ObjectError)
_NONE: Final[Mapping[str, PodView]] = {}
_NO_OBJECTS: Final[Mapping[NamespacedName, Any]] = {}
_NO_DOCUMENT: Final = msgspec.Raw()

_COMMITS: Final = subjects.ALL_COMMITS.removesuffix(">")
"""What subjects of commit records begin with."""
_BINDINGS: Final = subjects.ALL_BINDINGS.removesuffix(">")
_PLACEMENTS: Final = f"{_PLACEMENT}."
_FACT_TOKENS: Final = {
    subjects.POD_STATUS: 6,
    subjects.NODE_STATUS: 3,
    subjects.NODE_LIFE: 3,
    subjects.NOMINATIONS: 5,
    subjects.QUOTA_USAGE: 5,
}
"""How many tokens the subjects of facts have."""

MOST_REASON: Final = 500
"""Characters that are kept of why something cannot be read: it may name a key of any length."""

_decode_event = codec.decoder(ClusterEvent).decode
_decode_commit = codec.decoder(CommitRecord).decode
_decode_fence = codec.decoder(Fence).decode


class ClusterView(Fold[Tables]):
    """What one reader knows of the cluster, and what each delivery changed.

    It knows only the kinds of its reader's subjects. All views it hands out are immutable.
    """

    def __init__(self, *, remembers: bool = False) -> None:
        """:param remembers: what was read lately can be asked for (`has_read`)"""
        super().__init__()
        self._remembers = remembers
        self._show(Tables(ReadLog(remembers=remembers)))
        self.listings = 0
        """How many listings have ended."""
        self._listed_at = 0
        self._expected: tuple[str, bytes, CommitRecord] | None = None

    def _show(self, tables: Tables) -> None:
        """Readers ask for these for every pod: they are attributes, and not looked for."""
        self._tables = tables
        self.pods: Mapping[NamespacedName, PodView] = tables.pods
        """Pods whose object lives, by (namespace, name)."""
        self.pods_by_uid: Mapping[str, PodView] = tables.pods_by_uid
        """The same by uid, and pods whose object is gone but whose binding is not released."""
        self.nodes: Mapping[str, NodeView] = tables.nodes
        """By name."""
        self.placements: Mapping[str, BoundPod | Release] = tables.placements
        """Where a uid is bound, or that its binding has ended, by uid; endings as long as the pod's object
        lives."""

    # Reading

    @property
    def read(self) -> int:
        """CLUSTER sequence of the last message in what is shown; 0: none yet. A listing that is under way
        does not count: the old state is shown."""
        return self._tables.read.last

    @property
    def read_at(self) -> float:
        """When the server stored that message, seconds since 1970, UTC."""
        return self._tables.read.last_at

    @property
    def folded(self) -> int:
        """CLUSTER sequence of the last message that was read, or of the last listing: what came from there to
        `position` was not for this reader."""
        return max(self._listed_at, self._tables.read.last)

    @property
    def node_lives(self) -> Mapping[str, NodeLifeFact]:
        """What `workloads` says of nodes, by name, whether there is such a node or not."""
        return self._tables.node_lives

    @property
    def quota_usages(self) -> Mapping[QuotaKey, QuotaUsageFact]:
        """What is used of resource quotas, by namespace, name and uid, whether there is such a quota or
        not."""
        return self._tables.quota_usages

    def objects(self, resource: str) -> Mapping[NamespacedName, Any]:
        """Typed objects of another kind, by (namespace, name); none if the reader does not follow it."""
        return self._tables.others.get(resource, _NO_OBJECTS)

    @property
    def resources(self) -> Collection[str]:
        """Of which kinds there are objects, pods and nodes apart."""
        return [resource for resource, found in self._tables.others.items() if found]

    def version(self, resource: str) -> int:
        """Another number whenever an object of this resource (pods and nodes apart) is another, came or
        went."""
        return max(self._listed_at, self._tables.others_changed.get(resource, 0))

    def document(self, resource: str, key: NamespacedName) -> dict[str, Any] | None:
        """A PersistentVolume or PersistentVolumeClaim as it lies in the stream, with its sequence as
        metadata.resourceVersion: what a new version of it begins with. `None` if there is none; documents of
        other kinds are not kept.
        """
        found = self._tables.documents.get((resource, key))
        if found is None:
            return None
        sequence, raw = found
        document = decoding.document(raw)
        return {**document, "metadata": {**document.get("metadata", {}), "resourceVersion": str(sequence)}}

    @property
    def fence(self) -> Fence | None:
        """The last fence that was read."""
        return self._tables.fence

    @property
    def unreadable(self) -> Mapping[str, Unreadable]:
        """What is stored and cannot be read, by subject."""
        return self._tables.unreadable

    @property
    def unreadable_placements(self) -> Sequence[Unreadable]:
        """The bindings, tombstones, commit records and fence among it: while there are any, room that is
        taken may look free."""
        return [found for found in self._tables.unreadable.values() if found.subject.startswith(_PLACEMENTS)]

    @property
    def nodes_with_pods(self) -> Collection[str]:
        """Names of nodes on which pods take room, whether there is such a node or not."""
        return self._tables.on_node.keys()

    def pods_on(self, node: str) -> Mapping[str, PodView]:
        """Pods that take room on a node, by uid: bound and not released, whether their object lives or
        not."""
        return self._tables.on_node.get(node, _NONE)

    def version_of(self, subject: str) -> int:
        """Last known sequence of a subject, its marker included; 0 if nothing is known: what a
        compare-and-set expects."""
        return self._tables.versions.get(subject, 0)

    def has_read(self, sequence: int, stored_at: float) -> bool:
        """Whether that very message is in what is shown: another one may have had the same sequence before
        the stream was made again, or lost its end. False for one that is forgotten."""
        return self._tables.read.holds(sequence, stored_at)

    # Folding

    def expect(self, subject: str, payload: bytes, record: CommitRecord) -> None:
        """This reader writes this record: read back it is not decoded, and what is read is what its writer
        holds. Only the last one is remembered."""
        self._expected = subject, payload, record

    def begin_listing(self) -> None:
        """A listing begins, or begins again: deliveries go into a new state until it ends."""
        self._listing = Tables(ReadLog(remembers=self._remembers))

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete up to `position`; returns its differences from the state before, each
        `relisted`."""
        if self._listing is None:
            return []
        new, self._listing = self._listing, None
        if new.unknown_places:
            new.keep_places(self._tables)
        new.prune_releases()
        changes = list(relisting.differences(self._tables, new, position))
        self._show(new)
        self.position = self._listed_at = position
        self.listings += 1
        return changes

    def apply(self, delivery: Delivered) -> list[Change]:
        """Fold one delivery; returns what it changed, nothing while listing.

        A version that cannot be decoded counts as deleted and asks for a dead letter.
        """
        tables = self._tables if self._listing is None else self._listing
        tables.read.note(delivery.sequence, delivery.stored_at)
        parts = delivery.subject.split(".")
        if parts[0] == _OBJECT:
            changes = self._apply_cluster(tables, parts, delivery)
        elif parts[0] == _PLACEMENT:
            changes = self._apply_placement(tables, delivery)
        else:
            changes = []
        if self._listing is not None:
            return []
        if delivery.sequence > self.position:
            self.position = delivery.sequence
        return changes

    def _apply_cluster(self, tables: Tables, parts: list[str], delivery: Delivered) -> list[Change]:
        if parts[1] == subjects.POD_SCHEDULED:
            return []  # told to people alone: nothing is decided by it
        if delivery.sequence <= tables.versions.get(delivery.subject, 0):
            return []  # a repetition: following may begin with the last of the listing
        gap = not tables.succeeds(delivery.subject, delivery.sequence, delivery.predecessor)
        if tables.unreadable:
            tables.unreadable.pop(delivery.subject, None)
        deleted = delivery.deleted
        if deleted:
            tables.mark(delivery.subject, delivery.stored_at, delivery.ttl_s)
        if len(parts) == _OBJECT_TOKENS:
            return self._apply_object(tables, parts, delivery, gap, deleted)
        if delivery.subject == subjects.CENSUS:
            return []
        if len(parts) != _FACT_TOKENS.get(parts[1]):
            self._bury(tables, delivery, MessageError("fact", "no fact has such a subject"))
            return []
        match parts[1]:
            case subjects.POD_STATUS:
                return self._apply_pod_status(tables, parts, delivery, gap)
            case subjects.NODE_STATUS:
                return self._apply_node_status(tables, parts, delivery, gap)
            case subjects.NODE_LIFE:
                return self._apply_node_life(tables, parts, delivery, gap)
            case subjects.QUOTA_USAGE:
                self._apply_quota_usage(tables, parts, delivery)
                return []
            case _:
                return self._apply_nomination(tables, parts, delivery, gap)

    def _apply_object(
        self, tables: Tables, parts: list[str], delivery: Delivered, gap: bool, deleted: bool
    ) -> list[Change]:
        resource, key = subjects.decode(parts[1]), (subjects.decode(parts[2]), subjects.decode(parts[3]))
        stored, document, origin = None, _NO_DOCUMENT, None
        try:
            event = _decode_event(delivery.payload)
            origin = Origin(
                delivery.sequence,
                delivery.trace,
                delivery.stored_at,
                event.who,
                event.why,
                event.causes,
                len(delivery.payload),
                event.replaces,
            )
            if not deleted and event.op == "put":
                document = event.object
                if resource in DOCUMENTED:
                    decoding.document(document)  # or whoever writes it again finds out
                stored = decoding.decode_stored(resource, *key, document)
        except _UNREADABLE as error:
            self._bury(tables, delivery, error)
        if origin is None:
            origin = _origin(delivery)
        if stored is None:
            return _remove(tables, resource, key, origin, gap)
        changes = _put(tables, resource, key, stored, origin, gap)
        if resource in DOCUMENTED:  # last: an object of another UID takes its document with it when it goes
            tables.documents[resource, key] = delivery.sequence, document
        return changes

    def _apply_pod_status(self, tables: Tables, parts: list[str], delivery: Delivered, gap: bool) -> list[Change]:
        node, uid = subjects.decode(parts[2]), subjects.decode(parts[-1])
        _keep(tables.pod_statuses, (uid, node), self._fact(tables, PodStatusFact, delivery))
        return tables.rejoin_pod(uid, _origin(delivery), gap)

    def _apply_node_status(self, tables: Tables, parts: list[str], delivery: Delivered, gap: bool) -> list[Change]:
        """One that cannot be read leaves the last one that could."""
        name = subjects.decode(parts[2])
        fact = self._fact(tables, NodeStatusFact, delivery)
        if fact is None and not delivery.deleted:
            fact = self._tables.node_statuses.get(name)
        _keep(tables.node_statuses, name, fact)
        return tables.rejoin_node(name, _origin(delivery), gap)

    def _apply_node_life(self, tables: Tables, parts: list[str], delivery: Delivered, gap: bool) -> list[Change]:
        name = subjects.decode(parts[2])
        _keep(tables.node_lives, name, self._fact(tables, NodeLifeFact, delivery))
        return tables.rejoin_node(name, _origin(delivery), gap)

    def _apply_nomination(self, tables: Tables, parts: list[str], delivery: Delivered, gap: bool) -> list[Change]:
        uid = subjects.decode(parts[-1])
        _keep(tables.nominations, uid, self._fact(tables, Nomination, delivery))
        return tables.rejoin_pod(uid, _origin(delivery), gap)

    def _apply_quota_usage(self, tables: Tables, parts: list[str], delivery: Delivered) -> None:
        namespace, name, uid = map(subjects.decode, parts[2:])
        _keep(tables.quota_usages, (namespace, name, uid), self._fact(tables, QuotaUsageFact, delivery))

    def _apply_placement(self, tables: Tables, delivery: Delivered) -> list[Change]:
        if delivery.deleted or (self._listing is None and delivery.sequence <= self.position):
            return []  # the listing held what this record did, and maybe also the end of it: told again it would bind the dead
        subject = delivery.subject
        if tables.unreadable:
            tables.unreadable.pop(subject, None)
        try:
            fact = self._own(subject, delivery.payload) or _placement(subject, delivery.payload)
        except MessageError as error:
            self._bury(tables, delivery, error)
            if self._listing is None:
                self._effects.append(RelistNeeded(f"{subject} cannot be read"))
            elif subject.startswith(_BINDINGS):
                tables.unknown_places[subjects.decode(subject.rpartition(".")[2])] = subject
            return []
        match fact:
            case CommitRecord():
                return self._apply_commit(tables, fact, _origin(delivery), delivery.ttl_s)
            case Fence():
                self._apply_fence(tables, fact)
                return []
            case Tombstone():
                change = tables.release(release_of(fact, fact.reason), _origin(delivery), delivery.ttl_s)
            case _:
                change = tables.bind(entry_of(fact), _origin(delivery))
        return [] if change is None else [change]

    def _own(self, subject: str, payload: bytes) -> CommitRecord | None:
        """The record that is expected, if it is this one, byte by byte."""
        if self._expected is None or self._expected[0] != subject:
            return None
        (_, written, record), self._expected = self._expected, None
        return record if written == payload else None

    def _apply_commit(self, tables: Tables, record: CommitRecord, origin: Origin, ttl_s: int) -> list[Change]:
        fence = tables.fence
        if fence is not None and record.n > fence.n + 1 and self._listing is None:
            self._effects.append(RelistNeeded(f"commit {record.n} follows {fence.n}"))
        tables.fence = Fence(epoch=record.epoch, n=record.n, batch=record.batch)
        if tables.unknown_places:
            for settled in (*record.bindings, *record.releases):
                tables.place_known(settled.uid)
        changes = [tables.bind(bound, _traced(origin, bound.trace)) for bound in record.bindings]
        changes += [tables.release(release, _traced(origin, release.trace), ttl_s) for release in record.releases]
        return [change for change in changes if change is not None]

    def _apply_fence(self, tables: Tables, fence: Fence) -> None:
        """A fence whose n is not that of the last record: a record was missed."""
        known = tables.fence
        tables.fence = fence
        if known is not None and known.n != fence.n and self._listing is None:
            self._effects.append(RelistNeeded(f"the fence is at commit {fence.n}, read were {known.n}"))

    def _fact(self, tables: Tables, fact_type: type[Any], delivery: Delivered) -> Any:
        """The fact in a delivery; None for a marker and for what cannot be read."""
        if delivery.deleted:
            return None
        try:
            return codec.decode(fact_type, delivery.payload)
        except MessageError as error:
            self._bury(tables, delivery, error)
            return None

    def _bury(self, tables: Tables, delivery: Delivered, error: Exception) -> None:
        """Remember a version that cannot be read. It is told once, however often it is listed."""
        if not delivery.deleted:
            known = self._tables.unreadable.get(delivery.subject)
            tables.unreadable[delivery.subject] = Unreadable(
                delivery.subject, delivery.sequence, str(error)[:MOST_REASON]
            )
            if known is not None and known.sequence == delivery.sequence:
                return
        self._effects.append(DeadDelivery(delivery, str(error)))


def _keep(table: dict[_Key, _Fact], key: _Key, fact: _Fact | None) -> None:
    """What is said now stands in the place of what was said before; None: nothing is said any more."""
    if fact is None:
        table.pop(key, None)
    else:
        table[key] = fact


def _origin(delivery: Delivered) -> Origin:
    return Origin(delivery.sequence, delivery.trace, delivery.stored_at)


def _traced(origin: Origin, trace: str) -> Origin:
    """A record is about many pods: each has its own trace, of which those that are kept are worth a link."""
    return msgspec.structs.replace(origin, trace=trace) if is_sampled(trace) else origin


def _put(tables: Tables, resource: str, key: NamespacedName, stored: Any, origin: Origin, gap: bool) -> list[Change]:
    if resource == subjects.PODS:
        return tables.put_pod(key, stored, origin, gap)
    if resource == subjects.NODES:
        return tables.put_node(key[1], stored, origin, gap)
    return tables.put_other(resource, key, stored, origin, gap)


def _remove(tables: Tables, resource: str, key: NamespacedName, origin: Origin, gap: bool) -> list[Change]:
    if resource == subjects.PODS:
        return tables.remove_pod(key, origin, gap)
    if resource == subjects.NODES:
        return tables.remove_node(key[1], origin, gap)
    return tables.remove_other(resource, key, origin, gap)


def _placement(subject: str, payload: bytes) -> CommitRecord | Fence | Binding | Tombstone:
    if subject.startswith(_COMMITS):
        return _decode_commit(payload)
    return _decode_fence(payload) if subject == subjects.FENCE else placement_reading.decode(subject, payload)
