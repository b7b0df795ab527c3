"""Disks that a pod names itself, and when two pods cannot have the same one on one node.

Source: kube-scheduler v1.36.2, plugins/volumerestrictions/volume_restrictions.go (isVolumeConflict).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.objects.pod import Pod
from podyard.objects.volumes import Volume

EBS: Final = "AWS EBS volume"
GCE: Final = "GCE disk"
ISCSI: Final = "iSCSI target"
RBD: Final = "Ceph image"

DiskId: TypeAlias = tuple[str, ...]
"""Kind and name of a disk."""


class Disk(NamedTuple):
    """A disk as one pod uses it."""

    id: DiskId
    read_only: bool = False
    monitors: frozenset[str] = frozenset()
    """Of a Ceph image: images of one name are the same only if they have a monitor in common."""

    def clashes(self, other: "Disk") -> bool:
        """Whether two pods cannot use it like this on one node. Readers may share, except an EBS volume."""
        if self.id != other.id or (self.read_only and other.read_only and self.id[0] != EBS):
            return False
        return self.id[0] != RBD or not self.monitors.isdisjoint(other.monitors)


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    """The pod's disks, in the order of its volumes."""
    return tuple(disk for volume in pod.spec.volumes for disk in _disks(volume)) if pod.spec.volumes else ()


def _disks(volume: Volume) -> Iterator[Disk]:
    gce, ebs, iscsi, rbd = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
    if gce is not None:
        yield Disk((GCE, gce.pd_name), gce.read_only)
    if ebs is not None:
        yield Disk((EBS, ebs.volume_id), ebs.read_only)
    if iscsi is not None:
        yield Disk((ISCSI, iscsi.iqn), iscsi.read_only)
    if rbd is not None:
        yield Disk((RBD, rbd.pool, rbd.image), rbd.read_only, frozenset(rbd.monitors))


def first_clash(wanted: Iterable[Disk], pods: Iterable[Pod]) -> Disk | None:
    """The first of the wanted disks that one of the pods uses in a way that cannot be shared."""
    for disk in wanted:
        for pod in pods:
            if any(disk.clashes(other) for other in disks_of(pod)):
                return disk
    return None


class DisksInUse:
    """Index: which placed pods use a disk, and where."""

    def __init__(self, nodes: NodeTable) -> None:
        self._users: dict[DiskId, dict[str, tuple[int, tuple[Disk, ...]]]] = {}
        """Row and uses by uid, by disk."""

    def add(self, pod: PlacedPod, row: int) -> None:
        for disk in (disks := disks_of(pod.stored)):
            same = tuple(one for one in disks if one.id == disk.id)
            self._users.setdefault(disk.id, {})[pod.uid] = row, same

    def remove(self, pod: PlacedPod, row: int) -> None:
        for disk in disks_of(pod.stored):
            users = self._users.get(disk.id)
            if users is not None:
                users.pop(pod.uid, None)
                if not users:
                    del self._users[disk.id]

    def rows_without(self, wanted: Iterable[Disk]) -> set[int]:
        """Rows of nodes on which one of the wanted disks is not to be had."""
        return {
            row
            for disk in wanted
            for row, uses in self._users.get(disk.id, {}).values()
            if any(disk.clashes(other) for other in uses)
        }
