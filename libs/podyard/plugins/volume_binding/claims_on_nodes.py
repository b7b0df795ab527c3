"""What nodes can do for a pod's claims, all at once and one at a time.

Source: kube-scheduler v1.36.2, plugins/volumebinding/binder.go (FindPodVolumes).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.framework.interfaces import Detail
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims, csi_migration
from podyard.objects.core import Node, PersistentVolume, PersistentVolumeClaim
from podyard.objects.csi_migration import TranslationError
from podyard.plugins.volume_binding import books as volume_books
from podyard.plugins.volume_binding import matching, provisioning
from podyard.plugins.volume_binding.books import VolumeBooks
from podyard.plugins.volume_binding.matching import Matcher
from podyard.plugins.volume_binding.pod_claims import PodClaims
from podyard.plugins.volume_binding.provisioning import Provision
from podyard.plugins.volume_binding.stock import NONE

OUT_OF_REACH: Final = 1
NOTHING_TO_BIND: Final = 2
NO_ROOM: Final = 4
VOLUME_MISSING: Final = 8
FAILED: Final = 16
"""The others are flags; this and more: the node could not be judged, `failures[code - FAILED]` says why."""


class Choice(NamedTuple):
    """What a pod's unbound claims get on a node."""

    volumes: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    made: tuple[PersistentVolumeClaim, ...] = ()
    """Claims whose volume is to be made for the node."""


class ClaimsOnNodes:
    """For one pod, over the objects as they are now."""

    def __init__(self, pod_claims: PodClaims, cluster: Snapshot) -> None:
        self.claims = pod_claims
        self.failures: list[str] = []
        self._cluster = cluster
        self._books = cluster.nodes.index(VolumeBooks)

    # ---- claims that have no volume yet

    @cached_property
    def _selected(self) -> list[tuple[PersistentVolumeClaim, str]]:
        """Claims whose volume is to be made for one node already."""
        found = ((claim, self._books.selected_node(claim)) for claim in self.claims.delayed)
        return [(claim, node) for claim, node in found if node is not None]

    @cached_property
    def _matchers(self) -> list[Matcher]:
        """Of the other claims, the smallest first."""
        selected = {id(claim) for claim, _ in self._selected}
        unbound = [claim for claim in self.claims.delayed if id(claim) not in selected]
        return list(matching.matchers_of(unbound, self._books, self._cluster))

    @cached_property
    def _provisions(self) -> list[Provision]:
        """Where volumes can be made: for the selected claims, then for those of the matchers."""
        wanted = [claim for claim, _ in self._selected] + [matcher.claim for matcher in self._matchers]
        return [provisioning.provision_of(claim, self._cluster) for claim in wanted]

    # ---- all at once

    def codes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """For each row 0 or why the node cannot take the pod."""
        codes = self._bound_codes(rows)
        if self.claims.delayed:
            codes = np.where(codes >= FAILED, codes, codes | self._unbound_codes(rows))
        return codes

    def _bound_codes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        codes = np.zeros(len(rows), dtype=np.int64)
        for claim in self.claims.bound:
            volume = self._volume_of(claim)
            if volume is None:
                codes[codes == 0] = VOLUME_MISSING
                break
            found = self._reach_codes(volume, rows)
            codes = np.where(codes == 0, found, codes)
        return codes

    def _reach_codes(self, volume: PersistentVolume, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        nodes = self._cluster.nodes
        codes = np.where(self._books.shelves.item(volume).reach.mask(nodes, rows), 0, OUT_OF_REACH)
        plugin = csi_migration.plugin_of_volume(volume)
        if plugin is None or not plugin.migrated:
            return codes
        served = self._books.served(plugin, self._cluster)[rows]
        if not served.any():
            return codes
        try:
            other = np.where(volume_books.translated(plugin, volume).mask(nodes, rows), 0, OUT_OF_REACH)
        except TranslationError as error:
            return np.where(served, self._failure(str(error)), codes)
        return np.where(served, other, codes)

    def _unbound_codes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        nodes = self._cluster.nodes
        needs: list[NDArray[np.bool_]] = []
        elsewhere = np.zeros(len(rows), dtype=np.bool_)
        for _, node in self._selected:
            elsewhere |= rows != nodes.row_of.get(node, -1)
            needs.append(np.ones(len(rows), dtype=np.bool_))
        taken: dict[str, list[NDArray[np.int64]]] = {}
        first: dict[int, NDArray[np.int64]] = {}
        for matcher in self._matchers:
            stock = matcher.stock
            if id(stock) not in first:
                first[id(stock)] = stock.first(nodes, rows)
            gone = taken.setdefault(stock.demand.storage_class, [])
            best = matcher.best(nodes, rows, first[id(stock)], gone)
            gone.append(best)
            needs.append(best == NONE)
        codes = np.where(elsewhere, NOTHING_TO_BIND, 0)
        for provision, need in zip(self._provisions, needs, strict=True):
            left = need & (codes == 0)
            if left.any():
                allowed = provision.allowed(nodes, rows)
                codes[left & ~allowed] = NOTHING_TO_BIND
                codes[left & allowed & ~provision.roomy(nodes, rows)] = NO_ROOM
        return codes

    # ---- one at a time

    def code(self, row: int) -> int:
        """The same for one node."""
        node = self._cluster.nodes.nodes[row]
        if node is None:
            return OUT_OF_REACH
        code = self._bound_code(node)
        if code < FAILED and self.claims.delayed:
            code |= self._unbound(node)[0]
        return code

    def choice(self, row: int, decided: Mapping[str, str] | None = None) -> Choice | None:
        """What the unbound claims get on a node; `None` if the node cannot give it.

        :param decided: volumes that were chosen elsewhere, by name of the claim, empty for one that is to be
            made: others will not do
        """
        node = self._cluster.nodes.nodes[row]
        if node is None or self._bound_code(node):
            return None
        code, choice = self._unbound(node, decided)
        return None if code else _each_once(choice)

    def _bound_code(self, node: Node) -> int:
        for claim in self.claims.bound:
            volume = self._volume_of(claim)
            if volume is None:
                return VOLUME_MISSING
            try:
                if not self._reached(volume, node):
                    return OUT_OF_REACH
            except TranslationError as error:
                return self._failure(str(error))
        return 0

    def _reached(self, volume: PersistentVolume, node: Node) -> bool:
        labels, plugin = node.metadata.labels, csi_migration.plugin_of_volume(volume)
        if (
            plugin is not None
            and plugin.migrated
            and volume_books.served_one(plugin, node.metadata.name, self._cluster)
        ):
            return volume_books.translated(plugin, volume).holds(labels)
        return self._books.shelves.item(volume).reach.holds(labels)

    def _unbound(self, node: Node, decided: Mapping[str, str] | None = None) -> tuple[int, Choice]:
        name, labels = node.metadata.name, node.metadata.labels
        if any(selected != name for _, selected in self._selected):
            return NOTHING_TO_BIND, Choice()
        volumes: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        made = [claim for claim, _ in self._selected]
        lacking = list(range(len(made)))
        taken: dict[str, set[int]] = {}
        for at, matcher in enumerate(self._matchers, start=len(made)):
            gone = taken.setdefault(matcher.stock.demand.storage_class, set())
            best = self._best(matcher, labels, gone, decided)
            if best is None:
                lacking.append(at)
                made.append(matcher.claim)
            else:
                gone.add(best)
                volumes.append((matcher.claim, matcher.volume(best)))
        return self._lack(lacking, labels), Choice(tuple(volumes), tuple(made))

    def _best(
        self, matcher: Matcher, labels: Mapping[str, str], gone: set[int], decided: Mapping[str, str] | None
    ) -> int | None:
        wanted = None if decided is None else decided.get(matcher.claim.metadata.name)
        if wanted is None:
            return matcher.best_one(labels, gone)
        return matcher.named_one(wanted, labels, gone, self._books) if wanted else None

    def _lack(self, lacking: Sequence[int], labels: Mapping[str, str]) -> int:
        for at in lacking:
            provision = self._provisions[at]
            if not provision.allowed_one(labels):
                return NOTHING_TO_BIND
            if not provision.roomy_one(labels):
                return NO_ROOM
        return 0

    def detail(self, row: int) -> Detail | None:
        """Which claim keeps the pod off a node, in words."""
        node = self._cluster.nodes.nodes[row]
        if node is None:
            return None
        for claim in self.claims.bound:
            name, volume = claim.metadata.name, self._volume_of(claim)
            if volume is None:
                return Detail(f"claim {name} is bound to volume {claim.spec.volume_name}, which there is not")
            if not self._reached(volume, node):
                reach = self._books.shelves.item(volume).reach
                where = f", only where {reach}" if reach.terms is not None else ""
                return Detail(f"claim {name} is bound to volume {volume.metadata.name}, not to be had there{where}")
        for claim in self._unbound(node)[1].made:
            size = claim.spec.resources.requests.get("storage", "any size")
            return Detail(
                f"claim {claim.metadata.name} finds no free volume of {size} there,"
                f" and class {claims.class_of_claim(claim)} makes none there"
            )
        return None

    # ---- both

    def _volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        return self._cluster.objects(claims.VOLUMES).get(("", claim.spec.volume_name))

    def _failure(self, text: str) -> int:
        if text not in self.failures:
            self.failures.append(text)
        return FAILED + self.failures.index(text)


def _each_once(choice: Choice) -> Choice:
    """A claim that the pod names twice needs two volumes to pass, as in the reference; it gets the first."""
    volumes = {id(claim): (claim, volume) for claim, volume in reversed(choice.volumes)}
    made = {id(claim): claim for claim in choice.made if id(claim) not in volumes}
    return Choice(tuple(reversed(volumes.values())), tuple(made.values()))
