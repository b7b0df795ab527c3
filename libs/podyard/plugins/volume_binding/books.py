"""What this process has promised of volumes and claims before their objects say so, and what it has worked
out about volumes.

A promise is made at Reserve (scheduler) or PreBind (binder) and belongs to a placed pod, or one for which
room is kept: it ends with the pod's place in the table, or when the object has a claim, or a node, of its
own, or is no more. So two pods never take one volume, however late the objects come.

Source: kube-scheduler v1.36.2, pkg/scheduler/util/assumecache, volumebinding/assume_cache.go.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims, csi_migration
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.csi_migration import InTreePlugin, TranslationError
from podyard.objects.meta import ObjectReference
from podyard.objects.storage import CSINode
from podyard.plugins.volume_binding import reach
from podyard.plugins.volume_binding.reach import Reach
from podyard.plugins.volume_binding.shelves import ClaimKey, Item, Shelves

CSI_NODES: Final = "csinodes"

K = TypeVar("K")
T = TypeVar("T")


class Promises(NamedTuple):
    """What one pod was promised."""

    volumes: Mapping[str, ObjectReference]
    """By name of the volume: the claim it is for."""
    nodes: Mapping[ClaimKey, str]
    """By claim: the node for which its volume is to be made."""


class VolumeBooks:
    """Index over placed pods. `version` grows with every promise made or ended."""

    def __init__(self, nodes: NodeTable) -> None:
        self.version = 0
        self._nodes = nodes
        self._promises: dict[str, Promises] = {}
        self._volumes: dict[str, dict[str, ObjectReference]] = {}
        """By name of the volume: which pods it was promised to, by uid, each with the claim. Pods that share
        a claim share the volume."""
        self._claims: dict[ClaimKey, dict[str, str]] = {}
        """The same of claims, with the node."""
        self.shelves = Shelves(self._settled)
        self._served: tuple[tuple[int, int], dict[str, NDArray[np.bool_]]] = (-1, -1), {}

    # ---- promises

    def add(self, pod: PlacedPod, row: int) -> None:
        """Placing a pod promises nothing."""

    def remove(self, pod: PlacedPod, row: int) -> None:
        if self._nodes.placed(pod.uid) is None:  # else it is only another version of the pod
            self.forget(pod.uid)

    def promise(self, uid: str, promises: Promises) -> None:
        """The pod gets these, instead of what it was promised before."""
        self.forget(uid)
        if not promises.volumes and not promises.nodes:
            return
        self._promises[uid] = promises
        for name, reference in promises.volumes.items():
            self._volumes.setdefault(name, {})[uid] = reference
        for claim, node in promises.nodes.items():
            self._claims.setdefault(claim, {})[uid] = node
        self.version += 1

    def forget(self, uid: str) -> None:
        """The pod gets nothing."""
        promises = self._promises.pop(uid, None)
        if promises is None:
            return
        for name in promises.volumes:
            _without(self._volumes, name, uid)
        for claim in promises.nodes:
            _without(self._claims, claim, uid)
        self.version += 1

    def _settled(self, name: str) -> None:
        """The volume's own object says what becomes of it: nothing is promised of it any more, also if it is
        free again later."""
        self._volumes.pop(name, None)

    def claim_of(self, volume: PersistentVolume) -> ObjectReference | None:
        """The claim a volume is for: its own, else the promised one."""
        own = volume.spec.claim_ref
        if own is not None:
            return own
        return self._standing(self._volumes.get(volume.metadata.name))

    def selected_node(self, claim: PersistentVolumeClaim) -> str | None:
        """The node for which a claim's volume is to be made: its own, else the promised one."""
        own = claim.metadata.annotations.get(claims.SELECTED_NODE)
        if own is not None:
            return own
        return self._standing(self._claims.get((claim.metadata.namespace, claim.metadata.name)))

    def _standing(self, promised: Mapping[str, T] | None) -> T | None:
        """What was promised to the first of these pods that still has a place; the others' promises end."""
        for uid, what in list(promised.items()) if promised else ():
            if self._stands(uid):
                return what
        return None

    def _stands(self, uid: str) -> bool:
        """A pod that has no place holds nothing; the table does not tell of pods on nodes that are gone."""
        if self._nodes.placed(uid) is not None or self._nodes.kept(uid) is not None:
            return True
        self.forget(uid)
        return False

    @property
    def promised(self) -> Mapping[str, object]:
        """By name: volumes that some pod may have been promised, whether or not the promise still stands."""
        return self._volumes

    def promised_to(self, claim: ClaimKey) -> Iterator[Item]:
        """Volumes that were promised to a claim, as far as the shelves know them."""
        for name, promised in list(self._volumes.items()):
            if any((reference.namespace, reference.name) == claim for reference in promised.values()):
                item = self.shelves.named(name)
                if item is not None:
                    yield item

    # ---- in-tree volumes

    def served(self, plugin: InTreePlugin, cluster: Snapshot) -> NDArray[np.bool_]:
        """By row: whether a CSI driver serves the plugin's volumes on that node."""
        made = cluster.version(CSI_NODES), self._nodes.topology_version
        if self._served[0] != made:
            self._served = made, {}
        found = self._served[1].get(plugin.name)
        if found is None:
            found = self._served[1][plugin.name] = np.zeros(self._nodes.capacity, dtype=np.bool_)
            for (_, name), node in cluster.objects(CSI_NODES).items():
                row = self._nodes.row_of.get(name)
                if row is not None:
                    found[row] = plugin.name in csi_migration.served_on(node)
        return found


def _without(promised: dict[K, dict[str, T]], key: K, uid: str) -> None:
    """One pod less that a volume, or a claim's node, was promised to."""
    pods = promised.get(key)
    if pods is not None:
        pods.pop(uid, None)
        if not pods:
            del promised[key]


def served_one(plugin: InTreePlugin, node_name: str, cluster: Snapshot) -> bool:
    """Whether a CSI driver serves the plugin's volumes on a node."""
    node: CSINode | None = cluster.objects(CSI_NODES).get(("", node_name))
    return plugin.name in csi_migration.served_on(node)


def translated(plugin: InTreePlugin, volume: PersistentVolume) -> Reach:
    """From where an in-tree volume can be reached through its CSI driver.

    :raises TranslationError: if it cannot be translated
    """
    try:
        csi_migration.volume_handle(plugin, volume)
    except TranslationError as error:
        raise TranslationError(f"could not translate pv: {error}") from error
    return reach.compiled(csi_migration.translated_affinity(plugin, volume))
