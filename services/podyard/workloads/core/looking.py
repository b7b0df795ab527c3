"""What a look at one key finds, and what it may look at."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from podyard.cluster.intents import living
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.workloads.core import documents
from podyard.workloads.core.actions import Alter, Document, Lost, Told, Usage, Write
from podyard.workloads.core.adoption import FreeSets
from podyard.workloads.core.backoffs import Backoffs
from podyard.workloads.core.ownership import Ownership, View
from podyard.workloads.core.receipts import Receipts
from podyard.workloads.core.templates import Maker


class Looked(NamedTuple):
    """What a look found."""

    why: str = ""
    writes: Sequence[Write] = ()
    together: Sequence[Alter] = ()
    """To be written in one batch, before anything else."""
    again_at: float | None = None
    told: Sequence[Told] = ()
    usages: Sequence[Usage] = ()
    """Of a quota."""


NOTHING: Final = Looked()


class Moments:
    """When to look again: what is not so yet will be so then."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._later: list[float] = []

    def reached(self, at: float | None) -> bool:
        """Whether a moment is past; one that is to come is kept. None: it never comes by itself."""
        if at is not None and at > self._now:
            self._later.append(at)
        return at is not None and at <= self._now

    @property
    def first(self) -> float | None:
        """Seconds since 1970; None: nothing comes by itself."""
        return min(self._later, default=None)


class Surroundings:
    """All that controllers read. Reads views, changes only `lost` and `backoffs`."""

    def __init__(
        self,
        view: View,
        stored: Any,
        ownership: Ownership,
        free_sets: FreeSets,
        maker: Maker,
        lost: dict[str, deque[Lost]],
        receipts: Receipts,
    ) -> None:
        """
        :param stored: raw documents (`controller.Documents`)
        :param lost: by owner uid, replicas that are gone
        :param receipts: when it was heard what agents say
        """
        self._view = view
        self._stored = stored
        self.ownership = ownership
        self.free_sets = free_sets
        self.maker = maker
        self.receipts = receipts
        self.backoffs = Backoffs()
        self._lost = lost

    def objects(self, resource: str) -> Mapping[NamespacedName, Any]:
        """Living objects of a resource, typed."""
        return self._view.objects(resource)

    @property
    def nodes(self) -> Mapping[str, NodeView]:
        """By name."""
        return self._view.nodes

    def document(self, key: ObjectKey, uid: str) -> Document | None:
        """The stored object, None if it is not that one any more: a change that comes will say so."""
        version = living(self._stored.stored(key), uid)
        return None if version is None else version.document()

    def take_lost(self, uid: str, count: int) -> list[Lost]:
        """What `count` pods of an owner replace, as far as it is known."""
        known = self._lost.get(uid)
        return [known.popleft() for _ in range(min(count, len(known)))] if known else []

    def forget_lost(self, uid: str) -> None:
        """The owner has all its pods: what it lost before is not replaced any more."""
        self._lost.pop(uid, None)


def status_write(key: ObjectKey, uid: str, document: Document, fields: Document) -> list[Alter]:
    """The write that sets a status; none if it is so already.

    :param document: the object as it is stored
    """

    def alter(current: Document) -> Document | None:
        return current if documents.set_status(current, fields) else None

    return [Alter(key, uid, alter)] if alter(documents.copied(document)) is not None else []
