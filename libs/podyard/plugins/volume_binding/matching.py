"""Which of the volumes that are there already a claim can be bound to, on each node.

On every node the smallest volume that will do; a volume that was bound to the claim beforehand comes first, and if it cannot be reached the
claim has none. Claims of one pod take turns, the smallest first, each without the volumes that the others took on that node.

Source: kube-scheduler v1.36.2, component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume); binder.go (findMatchingVolumes).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims, quantity, selectors
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.errors import SelectorError
from podyard.objects.meta import ObjectReference
from podyard.objects.selectors import Selector
from podyard.plugins.volume_binding.books import VolumeBooks
from podyard.plugins.volume_binding.reach import Reach

NONE: Final = np.iinfo(np.int64).max
"""Instead of a volume's place in the order: there is none."""


def size_of(claim: PersistentVolumeClaim) -> int:
    """How much a claim asks for, in nano-bytes."""
    size = claim.spec.resources.requests.get(claims.STORAGE)
    return 0 if size is None else quantity.parse(size).nano


def is_for(reference: ObjectReference | None, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume with this claimRef is bound to the claim, or to be bound. Source: IsVolumeBoundToClaim."""
    meta = claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (meta.namespace, meta.name)
        and reference.uid in ("", meta.uid)
    )


class Matcher:
    """The volumes that one claim could take, as places in the order of its class (the smallest first)."""

    def __init__(self, claim: PersistentVolumeClaim, rivals: int, books: VolumeBooks, cluster: Snapshot) -> None:
        """
        :param rivals: claims of the same pod that may take a volume before this one
        """
        self.claim = claim
        self._depth = rivals + 1
        self._books = books
        self.order: Sequence[PersistentVolume] = books.volumes_of(claims.class_of_claim(claim), cluster)
        self._wanted = size_of(claim)
        self._selector = _selector(claim)
        self._beforehand: int | None = None
        self._by_label: dict[str, dict[str, list[int]]] = {}
        """Volumes that only ask for the value of one label: by label and value, the first few."""
        self._others: dict[Reach, list[int]] = {}
        self._sort_out()

    def _sort_out(self) -> None:
        for place, volume in enumerate(self.order):
            if not self._could_take(volume):
                continue
            if self._books.claim_of(volume) is None:
                self._file(place, self._books.reach_of(volume))
            elif self._beforehand is None:
                self._beforehand = place

    def _could_take(self, volume: PersistentVolume) -> bool:
        """Whether the volume will do for the claim, wherever it can be reached."""
        claim, reference = self.claim, self._books.claim_of(volume)
        if reference is not None and not is_for(reference, claim):
            return False
        if self._books.size_nano(volume) < self._wanted or not _alike(claim, volume):
            return False
        return reference is not None or _free(claim, volume, self._selector)

    def _file(self, place: int, reach: Reach) -> None:
        label = reach.one_label
        if label is None:
            self._append(self._others.setdefault(reach, []), place)
            return
        key, values = label
        for value in values:
            self._append(self._by_label.setdefault(key, {}).setdefault(value, []), place)

    def _append(self, places: list[int], place: int) -> None:
        if len(places) < self._depth:
            places.append(place)

    def best(self, nodes: NodeTable, rows: NDArray[np.intp], taken: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """For each row the place of the volume to take, NONE if there is none.

        :param taken: places in the same order that are gone, each aligned with rows
        """
        if self._beforehand is None:
            return self._best_free(nodes, rows, taken)
        mask = self._books.reach_of(self.order[self._beforehand]).mask(nodes, rows)
        best = np.where(mask, self._beforehand, NONE)
        gone = np.zeros(len(rows), dtype=np.bool_)
        for one in taken:  # the pod names the claim twice, and takes one volume each time
            gone |= one == self._beforehand
        return np.where(gone, self._best_free(nodes, rows, taken), best) if gone.any() else best

    def _best_free(
        self, nodes: NodeTable, rows: NDArray[np.intp], taken: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        first = np.full((self._depth, len(rows)), NONE, dtype=np.int64)
        for key, by_value in self._by_label.items():
            column = nodes.label_column(key)
            places = np.full((self._depth, len(column.values)), NONE, dtype=np.int64)
            for value, found in by_value.items():
                known = column.ids.get(value)
                if known is not None:
                    places[: len(found), known] = found
            for layer in places[:, column.cells[rows]]:
                _merge(first, layer)
        for reach, found in self._others.items():
            mask = reach.mask(nodes, rows)
            for place in found:
                _merge(first, np.where(mask, place, NONE))
        return _first_left(first, taken)

    def best_one(self, labels: Mapping[str, str], taken: Collection[int]) -> int | None:
        """The same for a node of these labels; `None` if there is none."""
        if self._beforehand is not None and self._beforehand not in taken:
            return self._beforehand if self._books.reach_of(self.order[self._beforehand]).holds(labels) else None
        places: list[int] = []
        for key, by_value in self._by_label.items():
            held = labels.get(key)
            if held is not None:
                places += by_value.get(held, ())
        for reach, found in self._others.items():
            if reach.holds(labels):
                places += found
        return min((place for place in places if place not in taken), default=None)

    def named_one(self, name: str, labels: Mapping[str, str], taken: Collection[int]) -> int | None:
        """The place of the volume of this name if the claim may take it on a node of these labels."""
        place = next((at for at, volume in enumerate(self.order) if volume.metadata.name == name), None)
        if place is None or place in taken:
            return None
        volume = self.order[place]
        if not self._books.reach_of(volume).holds(labels):
            return None
        if self._beforehand is not None:
            return place if place == self._beforehand else None
        return place if self._could_take(volume) else None


def _merge(first: NDArray[np.int64], layer: NDArray[np.int64]) -> None:
    """Put one more place of each row among the smallest ones, which are in ascending order."""
    for at in range(len(first)):
        smaller = np.minimum(first[at], layer)
        layer = np.maximum(first[at], layer)
        first[at] = smaller


def _first_left(first: NDArray[np.int64], taken: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    best = np.full(first.shape[1], NONE, dtype=np.int64)
    for layer in first[::-1]:
        left = layer != NONE
        for gone in taken:
            left &= layer != gone
        best = np.where(left, layer, best)
    return best


def _selector(claim: PersistentVolumeClaim) -> Selector:
    """Which volumes the claim wants by their labels; one that is not valid matches none."""
    if claim.spec.selector is None:
        return selectors.EVERYTHING
    try:
        return selectors.compile_labels(claim.spec.selector)
    except SelectorError:
        return selectors.NOTHING


def _alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """What must agree even if the volume was bound to the claim beforehand."""
    wanted, there = claim.spec, volume.spec
    return (
        (wanted.volume_mode or claims.FILESYSTEM) == (there.volume_mode or claims.FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (there.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _free(claim: PersistentVolumeClaim, volume: PersistentVolume, selector: Selector) -> bool:
    return (
        volume.status.phase == claims.AVAILABLE
        and selector.matches(volume.metadata.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )
