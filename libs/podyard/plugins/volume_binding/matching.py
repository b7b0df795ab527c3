"""Which of the volumes that are there already a claim can be bound to, on each node.

On every node the smallest volume that will do; a volume that was bound to the claim beforehand comes first,
and if it cannot be reached the claim has none. Claims of one pod take turns, the smallest first, each without
the volumes that the others took on that node.

Source: kube-scheduler v1.36.2, component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume); binder.go
(findMatchingVolumes).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.snapshot import Snapshot
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.meta import ObjectReference
from podyard.plugins.volume_binding.books import VolumeBooks
from podyard.plugins.volume_binding.shelves import Item
from podyard.plugins.volume_binding.stock import NONE, Demand, Stock, demand_of

OWN: Final = NONE - 1
"""Places of volumes that are a claim's own, since they are not in the stock: this and the numbers below."""
MOST_OWN: Final = 1024
"""Of one claim; more than one comes of somebody's mistake."""


def is_for(reference: ObjectReference | None, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume with this claimRef is bound to the claim, or to be bound. Source:
    IsVolumeBoundToClaim."""
    meta = claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (meta.namespace, meta.name)
        and reference.uid in ("", meta.uid)
    )


class Matcher:
    """One claim, the stock that meets its demand, and the volumes that are its own, the smallest first.

    The first of its own that is left decides: where it is out of reach, no other will do.
    """

    def __init__(self, claim: PersistentVolumeClaim, number: int, stock: Stock, own: Sequence[Item]) -> None:
        """
        :param number: of the claim among the pod's claims; the same if the pod names it twice
        """
        self.claim = claim
        self.stock = stock
        self._own = {OWN - number * MOST_OWN - at: item for at, item in enumerate(own[:MOST_OWN])}

    def volume(self, place: int) -> PersistentVolume:
        """The volume at a place that this matcher gave."""
        own = self._own.get(place)
        return self.stock.shelf.free[place].volume if own is None else own.volume

    def best(
        self, nodes: NodeTable, rows: NDArray[np.intp], first: NDArray[np.int64], taken: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """For each row the place of the volume to take, NONE if there is none.

        :param first: what the stock has for these rows
        :param taken: places of the same class that are gone, each aligned with rows
        """
        if not self._own:
            return _first_left(first, taken)
        best = np.full(len(rows), NONE, dtype=np.int64)
        left = np.ones(len(rows), dtype=np.bool_)
        for place, item in self._own.items():
            decided = left.copy()
            for one in taken:  # the pod names the claim twice, and takes one volume each time
                decided &= one != place
            best[decided & item.reach.mask(nodes, rows)] = place
            left &= ~decided
            if not left.any():
                return best
        return np.where(left, _first_left(first, taken), best)

    def best_one(self, labels: Mapping[str, str], taken: Collection[int]) -> int | None:
        """The same for a node of these labels; `None` if there is none."""
        for place, item in self._own.items():
            if place not in taken:
                return place if item.reach.holds(labels) else None
        return min((place for place in self.stock.first_one(labels) if place not in taken), default=None)

    def named_one(self, name: str, labels: Mapping[str, str], taken: Collection[int], books: VolumeBooks) -> int | None:
        """The place of the volume of this name if the claim may take it on a node of these labels."""
        for place, item in self._own.items():
            if place not in taken:
                return self.best_one(labels, taken) if item.name == name else None
        place = self.stock.shelf.place(name)
        if place is None or place in taken:
            return None
        item = self.stock.shelf.free[place]
        free = self.stock.demand.suits(item) and books.claim_of(item.volume) is None
        return place if free and item.reach.holds(labels) else None


def matchers_of(unbound: Sequence[PersistentVolumeClaim], books: VolumeBooks, cluster: Snapshot) -> Iterator[Matcher]:
    """For each claim, the smallest first."""
    numbers: dict[str, int] = {}
    stocks: dict[Demand, Stock] = {}
    for demand, claim in sorted(((demand_of(claim), claim) for claim in unbound), key=lambda pair: pair[0].size_nano):
        stock = stocks.get(demand)
        if stock is None:
            shelf = books.shelves.shelf(demand.storage_class, cluster)
            stock = stocks[demand] = Stock(demand, shelf, len(unbound), books)
        number = numbers.setdefault(claim.metadata.name, len(numbers))
        yield Matcher(claim, number, stock, _own(claim, stock, books))


def _own(claim: PersistentVolumeClaim, stock: Stock, books: VolumeBooks) -> list[Item]:
    """The volumes that are for this claim, by what they say themselves or by a promise, the smallest
    first."""
    key = claim.metadata.namespace, claim.metadata.name
    found = {
        item.name: item
        for item in (*stock.shelf.claimed.get(key, ()), *books.promised_to(key))
        if is_for(books.claim_of(item.volume), claim)
        and item.storage_class == stock.demand.storage_class
        and item.key[0] >= stock.demand.size_nano
        and item.volume.metadata.deletion_timestamp is None
        and stock.demand.alike(item.traits)
    }
    return sorted(found.values(), key=lambda item: item.key)


def _first_left(first: NDArray[np.int64], taken: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    best = np.full(first.shape[1], NONE, dtype=np.int64)
    for layer in first[::-1]:
        left = layer != NONE
        for gone in taken:
            left &= layer != gone
        best = np.where(left, layer, best)
    return best
