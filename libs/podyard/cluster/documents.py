"""DocumentView: raw documents with their sequences, and which pods take room: what a writer of objects needs.
Pure.

Nothing is decoded before somebody asks for it, so following 2,000 creates a second costs next to nothing.
What this process itself has written is noted at once (`note`), so that it reads its own writes before they
come back from the stream.

Of kinds that no writer goes by (`whole_kind` says which those are not) the sequence alone is kept; of a
CustomResourceDefinition its typed view too, which is without the schemas. Whoever writes such an object reads
it first.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from podyard.cluster import intents
from podyard.cluster.changes import Change, DeadDelivery, Delivered, RelistNeeded
from podyard.cluster.fold import Fold
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.markers import MarkerMemory
from podyard.objects.errors import UnknownKindError
from podyard.objects.extensions import CustomResourceDefinition
from podyard.objects.kinds import KEPT_KINDS, CustomObject, StoredObject, kind_of_resource
from podyard.proto import codec, placement_reading, subjects
from podyard.proto.codec import MessageError
from podyard.proto.placement import CommitRecord, Fence, Tombstone

_COMMITS: Final = subjects.ALL_COMMITS.removesuffix(">")
_BINDINGS: Final = subjects.ALL_BINDINGS.removesuffix(">")

_decode_commit = codec.decoder(CommitRecord).decode
_decode_fence = codec.decoder(Fence).decode


def everything(resource: str) -> bool:
    """For those who show objects: the content of each is kept."""
    return True


@lru_cache(maxsize=KEPT_KINDS)
def whole_kind(resource: str) -> bool:
    """For writers: whether the content of this kind's objects is kept. It is of those that something here
    goes by."""
    try:
        type_ = kind_of_resource(resource).type
    except UnknownKindError:
        return True  # nobody's: it is shown, and deleted, as it is
    return type_ not in (StoredObject, CustomObject, CustomResourceDefinition)


class _Documents:
    """One state: what the last version of each object's subject is."""

    def __init__(self, whole: Callable[[str], bool]) -> None:
        self._whole = whole
        self.by_resource: dict[str, dict[str, Stored]] = {}
        """By subject. Objects, and markers that this process has written and not read yet."""
        self.nodes_of: dict[str, str] = {}
        """Node of each uid that is bound and not released."""
        self.unknown_places: set[str] = set()
        """Uids whose placement is stored and cannot be read."""
        self.markers = MarkerMemory()
        """Of deleted objects only the sequences: what a compare-and-set begins with."""
        self.n: int | None = None

    def put(self, subject: str, stored: Stored) -> None:
        token = subject.split(".", 2)[1]
        if not self._whole(subjects.decode(token)):
            stored = _put_aside(stored)
        found = self.by_resource.get(token)
        if found is None:
            found = self.by_resource[token] = {}
        found[subject] = stored

    def get(self, subject: str) -> Stored | None:
        found = self.by_resource.get(subject.split(".", 2)[1])
        stored = None if found is None else found.get(subject)
        if stored is not None:
            return stored
        marked = self.markers.sequence(subject)
        return None if marked is None else Stored(marked, b"", True)

    def forget(self, subject: str) -> None:
        found = self.by_resource.get(subject.split(".", 2)[1])
        if found is not None:
            found.pop(subject, None)
            if not found:
                del self.by_resource[subject.split(".", 2)[1]]


class DocumentView(Fold[_Documents]):
    """Feed it objects (`subjects.OBJECTS_WITHOUT_FACTS`) with placements; it makes no changes, only
    answers."""

    def __init__(self, whole: Callable[[str], bool] = everything) -> None:
        """
        :param whole: whether the content of a resource's objects is kept
        """
        super().__init__()
        self._whole = whole
        self._state = _Documents(whole)

    # Reading

    def stored(self, key: ObjectKey) -> Stored | None:
        """The last version of an object or its marker, None if nothing is known: what a compare-and-set
        begins with. Nothing is known of one that is put aside.
        """
        stored = self._state.get(subjects.object_(*key))
        return None if stored is None or stored.put_aside else stored

    def put_aside(self, key: ObjectKey) -> bool:
        """Whether the object is there and has to be read from the stream."""
        stored = self._state.get(subjects.object_(*key))
        return stored is not None and stored.put_aside

    def keys(self, resource: str) -> Iterator[ObjectKey]:
        """The living objects of a resource, whether they can be read or not, in no order."""
        return (key for key, _ in self.living(resource, {}))

    def living(self, resource: str, keys: Mapping[str, ObjectKey]) -> Iterator[tuple[ObjectKey, Stored]]:
        """The same with their versions.

        :param keys: of subjects that are taken apart already
        """
        for subject, stored in self._state.by_resource.get(subjects.encode(resource), {}).items():
            if not stored.deleted:
                yield keys.get(subject) or subjects.parse_object(subject), stored

    @property
    def resources(self) -> list[str]:
        """Of which resources something is stored, by name."""
        return sorted(map(subjects.decode, self._state.by_resource))

    def typed(self, key: ObjectKey) -> Any | None:
        """The living object as its typed view, None if there is none or it cannot be read, or is put
        aside."""
        stored = self._state.get(subjects.object_(*key))
        return None if stored is None else _typed(stored)

    def all(self, resource: str) -> Iterator[Any]:
        """The living objects of a resource as typed views."""
        for stored in self._state.by_resource.get(subjects.encode(resource), {}).values():
            found = _typed(stored)
            if found is not None:
                yield found

    def unreadable(self, resource: str, namespace: str) -> Iterator[ObjectKey]:
        """What is stored of a resource in a namespace and cannot be read. Reads all of them."""
        for subject, stored in self._state.by_resource.get(subjects.encode(resource), {}).items():
            key = subjects.parse_object(subject)
            if key.namespace == namespace and not stored.put_aside and intents.remains(stored):
                yield key

    def node_of(self, uid: str) -> str:
        """The node on which a pod takes room; empty if it is not bound, or released, or if that cannot be
        read.
        """
        return self._state.nodes_of.get(uid, "")

    def occupies(self, uid: str) -> bool:
        """Whether a pod takes room, for all that is known: so does one whose placement cannot be read."""
        return uid in self._state.nodes_of or uid in self._state.unknown_places

    def note(self, key: ObjectKey, stored: Stored) -> None:
        """This process has written a version: know it before it comes back."""
        subject = subjects.object_(*key)
        known = self._state.get(subject)
        if known is None or known.sequence < stored.sequence:
            self._state.put(subject, stored)

    # Folding

    def begin_listing(self) -> None:
        """A listing begins, or begins again."""
        self._listing = _Documents(self._whole)

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete up to `position`. Later versions that this process noted stay known, unless
        the stream went back: it was made again, or lost its end, and what was later is not there.
        """
        if self._listing is None:
            return []
        old, self._state, self._listing = self._state, self._listing, None
        for uid in self._state.unknown_places & old.nodes_of.keys():
            self._state.nodes_of[uid] = old.nodes_of[uid]
        for found in old.by_resource.values() if position >= self.position else ():
            for subject, stored in found.items():
                if stored.sequence > position:
                    self._state.put(subject, stored)
        self.position = position
        return []

    def apply(self, delivery: Delivered) -> list[Change]:
        """Fold one delivery."""
        state = self._state if self._listing is None else self._listing
        subject = delivery.subject
        if subject.startswith("cluster."):
            self._apply_object(state, delivery)
        elif self._listing is not None or delivery.sequence > self.position:  # else the listing held what it tells
            try:
                self._apply_placement(state, delivery)
            except MessageError as error:
                self._effects.append(DeadDelivery(delivery, str(error)))
                if subject.startswith(_BINDINGS):
                    state.unknown_places.add(subjects.decode(subject.rpartition(".")[2]))
                self._ask_for_listing(f"{subject} cannot be read")
        if self._listing is None and delivery.sequence > self.position:
            self.position = delivery.sequence
        return []

    def _apply_object(self, state: _Documents, delivery: Delivered) -> None:
        subject = delivery.subject
        known = state.get(subject)
        if known is not None and known.sequence > delivery.sequence:
            return  # this process has written a later version already
        if delivery.deleted:
            state.forget(subject)
            state.markers.mark(subject, delivery.stored_at, delivery.ttl_s, delivery.sequence)
            return
        state.markers.unmark(subject)
        if known is None or known.sequence < delivery.sequence:
            state.put(subject, Stored(delivery.sequence, delivery.payload, False))

    def _apply_placement(self, state: _Documents, delivery: Delivered) -> None:
        subject, nodes_of = delivery.subject, state.nodes_of
        if delivery.deleted:
            return
        if subject.startswith(_COMMITS):
            record = _decode_commit(delivery.payload)
            self._follows(state, record.n, within=1)
            for bound in record.bindings:
                nodes_of[bound.uid] = bound.node
            for release in record.releases:
                nodes_of.pop(release.uid, None)
            if state.unknown_places:
                state.unknown_places.difference_update(one.uid for one in (*record.bindings, *record.releases))
        elif subject == subjects.FENCE:
            self._follows(state, _decode_fence(delivery.payload).n, within=0)
        elif subject.startswith(_BINDINGS):
            placed = placement_reading.decode(subject, delivery.payload)
            if isinstance(placed, Tombstone):
                nodes_of.pop(placed.uid, None)
            else:
                nodes_of[placed.uid] = placed.node

    def _follows(self, state: _Documents, n: int, *, within: int) -> None:
        """Commit or fence `n` was read: at most `within` above the last, or a record was missed."""
        if state.n is not None and not state.n <= n <= state.n + within:
            self._ask_for_listing(f"commit {n} was read after {state.n}")
        state.n = n

    def _ask_for_listing(self, reason: str) -> None:
        if self._listing is None:
            self._effects.append(RelistNeeded(reason))


def _put_aside(stored: Stored) -> Stored:
    """What is kept of an object whose content is not."""
    if stored.deleted or stored.put_aside:
        return stored
    known = Stored(stored.sequence, b"", False)
    found = _typed(stored)
    if isinstance(found, CustomResourceDefinition):
        known.typed = found
    return known


def _typed(stored: Stored) -> Any | None:
    return stored.typed if stored.deleted or stored.put_aside else stored.view_if_any()
