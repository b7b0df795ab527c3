"""Whether the volumes that are made for a pod's claims are there, or still can be.

A claim is given the node, and whoever makes its volume says in the objects what came of it: a volume bound to
the claim, or the node taken away again. That mark stays when the wait times out, as in the reference: the
volume may be made at any moment, for that node, and without the mark the claim could be given another node
meanwhile.

Source: kube-scheduler v1.36.2, plugins/volumebinding/binder.go (BindPodVolumes, checkBindings).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.framework.cycle_state import StateKey
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.plugins.volume_binding import matching
from podyard.plugins.volume_binding.claims_on_nodes import Choice


class Awaited(NamedTuple):
    """What a pod waits for on its node, as its first PreBind found it."""

    namespace: str
    made: tuple[tuple[str, str], ...]
    """Name and uid of the claims whose volumes are made."""
    chosen: tuple[tuple[str, PersistentVolumeClaim], ...]
    """Volumes that the other claims get with the binding, and those claims."""

    def keys(self) -> tuple[ObjectKey, ...]:
        """Objects that may end the wait: the claims, and the volumes that were chosen."""
        made = [ObjectKey(claims.CLAIMS, self.namespace, name) for name, _ in self.made]
        return (*made, *(ObjectKey(claims.VOLUMES, "", volume) for volume, _ in self.chosen))


AWAITED: Final = StateKey[Awaited]("AwaitedVolumes")


class ProvisionFault(Exception):
    """It cannot be any more; the text says why."""


def awaited(namespace: str, choice: Choice) -> Awaited:
    """What is to be awaited of a choice."""
    return Awaited(
        namespace,
        tuple((claim.metadata.name, claim.metadata.uid) for claim in choice.made),
        tuple((volume.metadata.name, claim) for claim, volume in choice.volumes),
    )


def missing(what: Awaited, node_name: str, cluster: Snapshot) -> tuple[tuple[str, ...], tuple[ObjectKey, ...]]:
    """Claims that are not bound yet, by name, none if all are; and volumes whose coming is awaited besides.

    :raises ProvisionFault: if a claim is gone, lost or going, or its volume is not made on this node after
        all; if a chosen volume is gone or belongs to another claim
    """
    _check_chosen(what, cluster)
    names: list[str] = []
    volumes: list[ObjectKey] = []
    for claim in _made(what, cluster):
        if _node_of(claim) != node_name:
            raise ProvisionFault(f'provisioning failed for PVC "{claim.metadata.name}"')
        volume = claim.spec.volume_name
        if volume and ("", volume) not in cluster.objects(claims.VOLUMES):
            names.append(claim.metadata.name)
            volumes.append(ObjectKey(claims.VOLUMES, "", volume))
        elif not claims.fully_bound(claim):
            names.append(claim.metadata.name)
    return tuple(names), tuple(volumes)


def unmarked(made: Iterable[PersistentVolumeClaim], node_name: str) -> Iterator[PersistentVolumeClaim]:
    """Claims that do not name the node yet."""
    return (claim for claim in made if _node_of(claim) != node_name)


def _node_of(claim: PersistentVolumeClaim) -> str | None:
    return claim.metadata.annotations.get(claims.SELECTED_NODE)


def _made(what: Awaited, cluster: Snapshot) -> Iterator[PersistentVolumeClaim]:
    for name, uid in what.made:
        claim: PersistentVolumeClaim | None = cluster.objects(claims.CLAIMS).get((what.namespace, name))
        if claim is None or claim.metadata.uid != uid:
            raise ProvisionFault(f"failed to check provisioning pvc: {claims.claim_not_found(name)}")
        if claim.metadata.deletion_timestamp is not None:
            raise ProvisionFault(f'persistentvolumeclaim "{name}" is being deleted')
        if claim.status.phase == claims.LOST:
            raise ProvisionFault(f'persistentvolumeclaim "{name}" has lost its volume')
        yield claim


def _check_chosen(what: Awaited, cluster: Snapshot) -> None:
    for name, claim in what.chosen:
        volume: PersistentVolume | None = cluster.objects(claims.VOLUMES).get(("", name))
        if volume is None:
            raise ProvisionFault(f"failed to check binding: {claims.not_found('persistentvolume', name)}")
        if volume.spec.claim_ref is not None and not matching.is_for(volume.spec.claim_ref, claim):
            raise ProvisionFault(f'pv "{name}" is bound to another claim')
