"""Index: an upper bound of the volumes attached to each node, so that most nodes need no closer look."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims
from podyard.objects.pod import Pod
from podyard.objects.storage import CSINode, VolumeAttachment
from podyard.plugins.node_volume_limits.resolving import ATTACHMENTS, Attachable, Resolver, considered

CSI_NODES: Final = "csinodes"
UNLIMITED: Final = 2**62
"""More than any limit and count; amounts can still be taken from it."""


class OnNode(NamedTuple):
    """Volumes of a node that has a CSINode."""

    used: frozenset[Attachable]
    """By its pods."""
    held: Mapping[str, int]
    """By driver: how many are used or attached."""


class AttachableVolumes:
    """By row: how many volumes of placed pods may have to be attached, shared ones counted for each pod.

    Also keeps limits, attachments and the volumes of placed pods by node until their objects change.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._most: NDArray[np.int64] = np.zeros(nodes.capacity, dtype=np.int64)
        self._owned: NDArray[np.int64] = np.zeros(nodes.capacity, dtype=np.int64)
        """Of these, ephemeral ones: whether their claims are their pods' own is looked at each time."""
        self._limits = Limits((-1, -1), 0)
        self._attachments: tuple[int, dict[str, list[VolumeAttachment]]] = -1, {}
        self._on_node: dict[int, OnNode] = {}
        """By row, until one of its pods with volumes comes or goes."""
        self._on_node_at: tuple[int, ...] = ()
        """Versions that `_on_node` was made from."""

    def add(self, pod: PlacedPod, row: int) -> None:
        self._count(pod.stored, row, 1)

    def remove(self, pod: PlacedPod, row: int) -> None:
        self._count(pod.stored, row, -1)

    def _count(self, pod: Pod, row: int, sign: int) -> None:
        if not pod.spec.volumes:
            return
        self._on_node.pop(row, None)
        self._grow()
        self._most[row] += sign * sum(map(considered, pod.spec.volumes))
        self._owned[row] += sign * sum(volume.ephemeral is not None for volume in pod.spec.volumes)

    def _grow(self) -> None:
        if len(self._most) < self._nodes.capacity:
            more = self._nodes.capacity - len(self._most)
            self._most = np.pad(self._most, (0, more))
            self._owned = np.pad(self._owned, (0, more))

    def most(self, cluster: Snapshot) -> NDArray[np.int64]:
        """By row: not more volumes than this are attached, whatever claims and volumes say."""
        self._grow()
        most = self._most.copy()
        for name, found in self.attachments(cluster).items():
            row = self._nodes.row_of.get(name)
            if row is not None:
                most[row] += len(found)
        return most

    def owned(self) -> NDArray[np.bool_]:
        """By row: whether a placed pod has an ephemeral volume."""
        self._grow()
        return self._owned > 0

    def attachments(self, cluster: Snapshot) -> dict[str, list[VolumeAttachment]]:
        """By node."""
        version = cluster.version(ATTACHMENTS)
        if self._attachments[0] != version:
            found: dict[str, list[VolumeAttachment]] = {}
            for attachment in cluster.objects(ATTACHMENTS).values():
                found.setdefault(attachment.spec.node_name, []).append(attachment)
            self._attachments = version, found
        return self._attachments[1]

    def on_node(self, row: int, resolver: Resolver, cluster: Snapshot) -> OnNode:
        """Volumes of a node that has a CSINode.

        :raises PluginFault: if the claim of an ephemeral volume is not its pod's own
        """
        objects = map(cluster.version, (claims.CLAIMS, claims.VOLUMES, claims.CLASSES, ATTACHMENTS))
        versions = (self._nodes.topology_version, *objects)
        if self._on_node_at != versions:
            self._on_node_at = versions
            self._on_node.clear()
        tried = self._nodes.tried(row)
        known = None if tried else self._on_node.get(row)
        if known is None:
            known = self._look(self._nodes.names[row], resolver, cluster)
            if not tried:
                self._on_node[row] = known
        return known

    def _look(self, name: str, resolver: Resolver, cluster: Snapshot) -> OnNode:
        used = frozenset(
            one
            for pod in self._nodes.pods_on(name).values()
            if pod.stored.spec.volumes
            for one in resolver.of_pod(pod.stored, csi_node=True, wanted=False)
        )
        there = used | resolver.attached(self.attachments(cluster).get(name, ()))
        return OnNode(used, Counter(one.driver for one in there))

    def limits(self, cluster: Snapshot) -> "Limits":
        """What the CSINodes allow."""
        made = cluster.version(CSI_NODES), self._nodes.topology_version
        if self._limits.made != made:
            self._limits = Limits(made, self._nodes.capacity)
            for (_, name), node in cluster.objects(CSI_NODES).items():
                row = self._nodes.row_of.get(name)
                if row is not None:
                    self._limits.set(row, _limits_of(node))
        return self._limits


class Limits:
    """How many volumes nodes may have, by row."""

    __slots__ = ("_by_driver", "known", "limited", "made")

    def __init__(self, made: tuple[int, int], capacity: int) -> None:
        self.made = made
        """Versions that it was made from."""
        self.known: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        """Whether there is a CSINode."""
        self.limited: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        """Whether any driver has a limit."""
        self._by_driver: dict[str, NDArray[np.int64]] = {}

    def set(self, row: int, limits: Mapping[str, int]) -> None:
        """A node with a CSINode."""
        self.known[row] = True
        self.limited[row] = bool(limits)
        for driver, limit in limits.items():
            if driver not in self._by_driver:
                self._by_driver[driver] = np.full(len(self.known), UNLIMITED, dtype=np.int64)
            self._by_driver[driver][row] = limit

    def of(self, driver: str) -> NDArray[np.int64] | None:
        """The driver's limits; UNLIMITED where it has none, `None` if it has none anywhere."""
        return self._by_driver.get(driver)

    def at(self, driver: str, row: int) -> int:
        """The driver's limit on this node, or UNLIMITED."""
        limits = self._by_driver.get(driver)
        return UNLIMITED if limits is None else limits.item(row)


def _limits_of(node: CSINode) -> dict[str, int]:
    """By driver: how many volumes the node may have. Source: getVolumeLimits."""
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
