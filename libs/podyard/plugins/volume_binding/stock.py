"""Volumes that claims of one demand could take, on each node the first few of them.

Source: kube-scheduler v1.36.2, component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume).
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.objects import claims, quantity, selectors
from podyard.objects.core import PersistentVolumeClaim
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import Selector
from podyard.plugins.volume_binding.books import VolumeBooks
from podyard.plugins.volume_binding.reach import Reach
from podyard.plugins.volume_binding.shelves import Item, Shelf, Traits

NONE: Final = np.iinfo(np.int64).max
"""Instead of a volume's place on the shelf: there is none."""


class Demand(NamedTuple):
    """What a claim asks of a volume, wherever it is."""

    storage_class: str
    size_nano: int
    mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: Selector | None
    """On the volume's labels; `None`: any."""

    def alike(self, traits: Traits) -> bool:
        """Whether volume mode and attributes class agree, as they must even if the volume was bound to the
        claim beforehand."""
        return (self.mode, self.attributes_class) == traits[:2]

    def suits(self, item: Item) -> bool:
        """Whether a free volume will do."""
        return (
            item.key[0] >= self.size_nano
            and self.alike(item.traits)
            and self.access_modes <= set(item.traits[2])
            and (self.selector is None or self.selector.matches(item.volume.metadata.labels))
        )


def demand_of(claim: PersistentVolumeClaim) -> Demand:
    """What a claim asks for. A selector that is not valid matches no volume."""
    spec = claim.spec
    size = spec.resources.requests.get(claims.STORAGE)
    selector = None
    if spec.selector is not None:
        try:
            selector = selectors.compile_labels(spec.selector)
        except SelectorError:
            selector = selectors.NOTHING
    return Demand(
        claims.class_of_claim(claim),
        0 if size is None else quantity.parse(size).nano,
        spec.volume_mode or claims.FILESYSTEM,
        spec.volume_attributes_class_name or "",
        frozenset(spec.access_modes),
        selector,
    )


class Stock:
    """The free volumes of a shelf that meet a demand, by their places there (the smallest first)."""

    def __init__(self, demand: Demand, shelf: Shelf, depth: int, books: VolumeBooks) -> None:
        """
        :param depth: how many volumes of one node may be needed: claims of the pod that have none
        """
        self.demand = demand
        self.shelf = shelf
        self._depth = depth
        self._books = books
        self._by_label: dict[str, dict[str, list[int]]] = {}
        """Volumes that only ask for the value of one label: by label and value, the first few."""
        self._others: dict[Reach, list[int]] = {}
        self._sort_out()

    def _sort_out(self) -> None:
        demand, free, promised = self.demand, self.shelf.free, self._books.promised
        will_do: dict[Traits, bool] = {}
        for place in range(bisect_left(self.shelf.keys, (demand.size_nano, "")), len(free)):
            item = free[place]
            suits = None if demand.selector is not None else will_do.get(item.traits)
            if suits is None:
                suits = will_do[item.traits] = demand.suits(item)
            if suits and (item.name not in promised or self._books.claim_of(item.volume) is None):
                self._file(place, item)

    def _file(self, place: int, item: Item) -> None:
        if item.label is None:
            self._append(self._others.setdefault(item.reach, []), place)
            return
        key, values = item.label
        by_value = self._by_label.get(key)
        if by_value is None:
            by_value = self._by_label[key] = {}
        for value in values:
            places = by_value.get(value)
            if places is None:
                by_value[value] = [place]
            else:
                self._append(places, place)

    def _append(self, places: list[int], place: int) -> None:
        if len(places) < self._depth:
            places.append(place)

    def first(self, nodes: NodeTable, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """For each row (second axis) the places of the first few volumes that the node reaches, ascending,
        then NONE."""
        first = np.full((self._depth, len(rows)), NONE, dtype=np.int64)
        for key, by_value in self._by_label.items():
            column = nodes.label_column(key)
            places = np.full((self._depth, len(column.values)), NONE, dtype=np.int64)
            known = [(column.ids[value], found) for value, found in by_value.items() if value in column.ids]
            for depth in range(self._depth):
                deep = [(at, found[depth]) for at, found in known if len(found) > depth]
                if deep:
                    ids, there = zip(*deep, strict=True)
                    places[depth, list(ids)] = there
            for layer in places[:, column.cells[rows]]:
                _merge(first, layer)
        for reach, found in self._others.items():
            mask = reach.mask(nodes, rows)
            for place in found:
                _merge(first, np.where(mask, place, NONE))
        return first

    def first_one(self, labels: Mapping[str, str]) -> list[int]:
        """The same for a node of these labels, in no order."""
        places: list[int] = []
        for key, by_value in self._by_label.items():
            held = labels.get(key)
            if held is not None:
                places += by_value.get(held, ())
        for reach, found in self._others.items():
            if reach.holds(labels):
                places += found
        return places


def _merge(first: NDArray[np.int64], layer: NDArray[np.int64]) -> None:
    """Put one more place of each row among the smallest ones, which are in ascending order."""
    for at in range(len(first)):
        smaller = np.minimum(first[at], layer)
        layer = np.maximum(first[at], layer)
        first[at] = smaller
