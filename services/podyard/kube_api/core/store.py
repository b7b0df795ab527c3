"""What the API answers from: every object joined with what others say of it, its resourceVersion, and what
changed lately. A view that an informer feeds. Pure.

An object's resourceVersion is the CLUSTER sequence of the last message that changed the joined object: its
own version, its binding, what its agent or `workloads` says of it, what is used of a quota. So it grows with
every change that a reader can see, and a list's is the position of the view.

Follow the bindings themselves, not the records of commits: a binding's sequence is then the same to whoever
lists it later.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from podyard.cluster.changes import Change, Delivered, Effect
from podyard.cluster.documents import DocumentView
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.kube_api.core import errors, relisting
from podyard.kube_api.core.definitions import Defined, Definitions
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.history import HISTORY_BYTES, Gap, History
from podyard.kube_api.core.items import Content, Item, Step, path_of
from podyard.kube_api.core.relisting import Difference, Places, topology_labels
from podyard.kube_api.core.shelves import EMPTY, Scope, Shelf
from podyard.objects.extensions import DEFINITIONS
from podyard.objects.quotas import QUOTAS
from podyard.proto import codec, subjects
from podyard.proto.facts import PodScheduledFact
from podyard.telling.objects import Moment, Objects
from podyard.telling.pod_conditions import NOTHING, Evidence

_OBJECT: Final = "cluster"
_OBJECT_TOKENS: Final = 4
_BINDINGS: Final = subjects.ALL_BINDINGS.removesuffix(">")
_POD_SCHEDULED: Final = subjects.ALL_POD_SCHEDULED.removesuffix(">")
_QUOTA_USAGE: Final = subjects.ALL_QUOTA_USAGE.removesuffix(">")


class Reader(Protocol):
    """Who is told what changed, at once and in order."""

    def offer(self, steps: Sequence[Step]) -> None:
        """These steps were made."""
        ...

    def missed(self, gap: Gap) -> None:
        """The steps that are offered next are what came of the messages in between, which were not read."""
        ...

    def forgotten(self, position: int) -> None:
        """What there is now has nothing to do with what was told before."""
        ...


class Readers:
    """Several, told one after the other."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers

    def offer(self, steps: Sequence[Step]) -> None:
        """As of a reader; so the others."""
        for reader in self._readers:
            reader.offer(steps)

    def missed(self, gap: Gap) -> None:
        for reader in self._readers:
            reader.missed(gap)

    def forgotten(self, position: int) -> None:
        for reader in self._readers:
            reader.forgotten(position)


class Source(Protocol):
    """What lists and watches are answered from: the `Store`; of objects that do not lie in CLUSTER something
    else."""

    @property
    def position(self) -> int: ...
    @property
    def history(self) -> History: ...
    def ahead(self, version: int) -> ApiError: ...
    def items(self, scope: Scope, *, start: str = "") -> Iterable[Item]: ...
    def items_at(self, scope: Scope, version: int, *, start: str = "") -> Sequence[Item]: ...


class Store:
    """All objects as of one position. Feed it as an informer feeds a view."""

    def __init__(self, *, history_bytes: int = HISTORY_BYTES) -> None:
        """
        :param history_bytes: that the steps may take which are remembered
        """
        self.objects = Objects(ClusterView(), DocumentView())
        self.history = History(history_bytes)
        self.reader: Reader | None = None
        """Who is told."""
        self.gap = Gap(0, 0)
        """Of the last listing: what happened in it is known by its outcome alone."""
        self.refusals: dict[str, int] = {}
        """Of what uids it is stored why they are not scheduled, with the sequences of that."""
        self.settled: dict[str, subjects.PodSubject] = {}
        """Those of them that do not wait any more, until somebody takes them."""
        self._definitions = Definitions()
        self._shelves: dict[str, Shelf] = {}
        self._listed = False
        self._places: Places | None = None
        """While a listing is under way: what it says of bindings."""

    # Reading

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the store; 0 before the first listing."""
        return self.objects.view.position

    def item(self, key: ObjectKey) -> Item | None:
        """The object as it is now; `None` if it is not there."""
        return self._shelf(key.resource).items.get(path_of(key))

    def count(self, resource: str) -> int:
        """How many objects of a resource there are."""
        return len(self._shelf(resource).items)

    def items(self, scope: Scope, *, start: str = "") -> Iterator[Item]:
        """The objects there are now, in order; not to be used after the next delivery.

        :param start: the first path that may be among them
        """
        return self._shelf(scope.resource).between(scope.namespace, start)

    def items_at(self, scope: Scope, version: int, *, start: str = "") -> list[Item]:
        """The objects as they were at a version that the history reaches, in order."""
        before = self.history.before(scope.resource, version)
        return self._shelf(scope.resource).as_before(before, scope.namespace, start)

    def ahead(self, version: int) -> ApiError:
        """Why a version that was asked for cannot be answered: it is not there yet. Whoever can wait, waits
        before he asks."""
        return errors.too_large(version, self.position)

    def _shelf(self, resource: str) -> Shelf:
        return self._shelves.get(resource, EMPTY)

    # Folding

    def begin_listing(self) -> None:
        """A listing begins, or begins again."""
        self._places = Places()
        self.objects.documents.begin_listing()
        self.objects.view.begin_listing()

    def apply(self, delivery: Delivered) -> list[Change]:
        """Fold one delivery, and tell of the steps that it made."""
        subject = delivery.subject
        if subject.startswith(_POD_SCHEDULED):
            self._refused(delivery)
            return []
        about = subjects.parse_object(subject) if _is_object(subject.split(".")) else None
        if about is not None:
            self.objects.documents.apply(delivery)
        changes = self.objects.view.apply(delivery)
        if self._places is not None:
            if about is not None:
                self._places.keys[subject] = about
            if subject.startswith(_BINDINGS):
                self._places.read(subjects.parse_pod(subject).uid, delivery.sequence, delivery.stored_at)
            return []
        self._note_places(changes)
        if about is None and subject.startswith(_QUOTA_USAGE):
            usage = subjects.parse_pod(subject)
            about = ObjectKey(QUOTAS, usage.namespace, usage.name)
        touched = dict.fromkeys(_touched(about, changes))
        if about is not None and about.resource == DEFINITIONS:
            names = self._definitions.changed(about.name, self.objects.moment(about))
            touched |= dict.fromkeys(ObjectKey(DEFINITIONS, "", name) for name in sorted(names))
        if touched:
            self._settle(touched, delivery.sequence)
        return changes

    def advance(self, position: int) -> None:
        """The stream moved on without a message for this reader."""
        self.objects.documents.advance(position)
        self.objects.view.advance(position)

    def take_effects(self) -> Sequence[Effect]:
        """What the informer is asked for: dead letters, a new listing."""
        self.objects.documents.take_effects()  # the same faults
        return self.objects.view.take_effects()

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete up to `position`: tell what differs from the state before. What cannot be
        told in order is not told: whoever watches begins anew."""
        if self._places is None:
            return []
        before = self.position
        self.objects.documents.end_listing(position)
        changes = self.objects.view.end_listing(position)
        places, self._places = self._places, None
        self.objects.evidence = places.evidence(self.objects.view, self.objects.evidence)
        self.refusals = {uid: sequence for uid, (sequence, _) in places.refusals.items()}
        for uid, (_, fact) in places.refusals.items():
            self._settle_refusal(subjects.PodSubject(fact.namespace, fact.name, uid))
        found = map(self.objects.moment, self.objects.documents.keys(DEFINITIONS))
        self._definitions.listed(moment for moment in found if moment is not None)
        old, self._shelves = self._shelves, {}
        self.gap = gap = Gap(before, position)
        differences = list(self._relist(old, places, gap))
        steps = relisting.in_order(differences, gap) if self._listed else None
        self._listed = True
        if steps is None:
            for shelf in self._shelves.values():
                relisting.apart_at(shelf.items.values(), position)
            self.history.forget(position)
            if self.reader is not None:
                self.reader.forgotten(position)
            return changes
        self.history.missed(gap)
        self.history.add(steps)
        if self.reader is not None:
            self.reader.missed(gap)
            self.reader.offer(steps)
        return changes

    def _relist(self, old: dict[str, Shelf], places: Places, gap: Gap) -> Iterator[Difference]:
        """Make the shelves anew, and say where they differ from the old ones. What is the same keeps its
        version."""
        for resource in self.objects.documents.resources:
            shelf, known = self._shelves.setdefault(resource, Shelf()), old.get(resource, EMPTY)
            for key, stored in self.objects.documents.living(resource, places.keys):
                moment = self._completed(self.objects.moment_of(key, stored))
                path = path_of(key)
                before = known.items.get(path)
                if before is not None and relisting.same(before.moment, moment):
                    before.moment = moment  # the old one holds the whole state before the listing
                    shelf.items[path] = before
                    continue
                version = relisting.version_of(moment, self.objects.view, places)
                if self._listed and version <= gap.after <= gap.to:
                    version = gap.to  # it changed by what is not there any more
                after = shelf.items[path] = Item(path, moment, version)
                yield Difference(resource, path, before, after)
            shelf.paths = sorted(shelf.items)
        for resource, known in old.items():
            there = self._shelf(resource).items
            for path, before in known.items.items():
                if path not in there:
                    yield Difference(resource, path, before, None, relisting.end_of(before, self.objects.view, gap))

    def _refused(self, delivery: Delivered) -> None:
        """It is stored why a pod is not scheduled, or that is over.

        :raises MessageError: it cannot be read
        """
        pod, sequence = subjects.parse_pod(delivery.subject), delivery.sequence
        fact = None if delivery.deleted else codec.decode(PodScheduledFact, delivery.payload)
        if self._places is not None:
            if fact is None:
                self._places.refusals.pop(pod.uid, None)
            else:
                self._places.refusals[pod.uid] = sequence, fact
            return
        self.advance(sequence)
        evidence = self.objects.evidence
        if fact is None:
            self.refusals.pop(pod.uid, None)
            self.settled.pop(pod.uid, None)
        else:
            self.refusals[pod.uid] = sequence
            self._settle_refusal(pod)
        known = evidence.get(pod.uid, NOTHING)
        if fact is None and known.refusal is not None:
            del evidence[pod.uid]
        elif fact is not None and pod.uid not in self.settled:
            evidence[pod.uid] = known._replace(refusal=fact)
        else:
            return
        self._settle([ObjectKey(subjects.PODS, pod.namespace, pod.name)], sequence)

    def _settle_refusal(self, pod: subjects.PodSubject) -> None:
        if pod.uid in self.refusals and not relisting.is_pending(self.objects.view, pod.uid):
            self.settled[pod.uid] = pod

    def _moment(self, key: ObjectKey) -> Content | None:
        """The object as it is now, with all that is told of it; None: it is not there."""
        moment = self.objects.moment(key)
        return None if moment is None else self._completed(moment)

    def _completed(self, moment: Moment) -> Content:
        """With what is told of a definition besides."""
        if moment.key.resource != DEFINITIONS:
            return moment
        return Defined(moment, self._definitions.standing(moment.key.name))

    def _note_places(self, changes: Iterable[Change]) -> None:
        """Since when pods are bound, as long as they are there."""
        evidence = self.objects.evidence
        for change in changes:
            if change.uid in self.refusals:
                self._settle_refusal(subjects.PodSubject(*change.key[1:], change.uid))
            if change.bound:
                pod = self.objects.view.pods_by_uid.get(change.uid)
                node = "" if pod is None else pod.node_name
                topology = topology_labels(self.objects.view, node)
                evidence[change.uid] = Evidence(bound_at=change.origin.at, topology=topology)
            elif change.new is None and change.uid in evidence and change.uid not in self.objects.view.pods_by_uid:
                del evidence[change.uid]

    def _settle(self, keys: Iterable[ObjectKey], sequence: int) -> None:
        """A message was about these objects: take the steps that it made."""
        differences: list[Difference] = []
        for key in keys:
            path = path_of(key)
            before, moment = self._shelf(key.resource).items.get(path), self._moment(key)
            if before is None and moment is None:
                continue
            if before is not None and before.moment == moment:
                continue
            after = None if moment is None else Item(path, moment, sequence)
            differences.append(Difference(key.resource, path, before, after))
        steps = relisting.in_order(differences, Gap(sequence - 1, sequence)) or []
        for step in steps:
            shelf = self._shelves.setdefault(step.resource, Shelf())
            if step.after is None:
                shelf.remove(step.path)
            else:
                shelf.put(step.after)
        if steps:
            self.history.add(steps)
            if self.reader is not None:
                self.reader.offer(steps)


def _is_object(parts: Sequence[str]) -> bool:
    """Whether a subject's tokens are those of an object."""
    return len(parts) == _OBJECT_TOKENS and parts[0] == _OBJECT and parts[1] not in subjects.RESERVED_RESOURCES


def _touched(about: ObjectKey | None, changes: Sequence[Change]) -> Iterator[ObjectKey]:
    """The objects that a message may have changed.

    :param about: the one that its subject names
    """
    if about is not None:
        yield about
    for change in changes:
        if change.resource in (subjects.PODS, subjects.NODES):
            yield ObjectKey(*change.key)
