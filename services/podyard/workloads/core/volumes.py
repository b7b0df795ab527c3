"""Volumes and claims: binds claims that do not wait for a pod, and makes the volumes of classes whose
provisioner is simulated.

    claim, Immediate            -> the smallest volume that will do, both sides in one batch; else a simulated
                                   one
    claim, WaitForFirstConsumer -> nothing before a scheduler has named a node (`selected-node`); then a
                                   simulated one for that node
    claim gone                  -> its simulated volume goes too
    new volume                  -> Available, or Bound if its claim has it already

A simulated volume holds nothing. It is made with the claim that it is for, and bound in a second look, so
that a crash between the two leaves nothing to be cleared up. Its class may say from where it is reached:

    provisioner: podyard.io/simulated
    parameters: {topologyKey: topology.kubernetes.io/zone}

That is from the nodes that have the selected node's value; left out, from everywhere.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, provisionClaimOperation),
component-helpers pv_helpers.go (FindMatchingVolume).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from podyard.cluster.changes import Change
from podyard.cluster.errors import Contended
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.objects import claims
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.storage import StorageClass
from podyard.plugins.volume_binding import matching, stock, writing
from podyard.plugins.volume_binding.shelves import Item
from podyard.workloads.core.actions import Alter, Document

SIMULATED: Final = "podyard.io/simulated"
"""Provisioner of classes whose volumes are made here."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
TOPOLOGY_KEY: Final = "topologyKey"
_NEW: Final = ("", "Pending")
"""Phases of a volume that nobody has looked at."""

Objects = Callable[[str], Mapping[NamespacedName, Any]]
"""Those of a resource."""


class Plan(NamedTuple):
    """What is to be done for a claim: at most one of both."""

    bind: PersistentVolume | None = None
    make: Document | None = None


NOTHING: Final = Plan()


def plan(claim: PersistentVolumeClaim, objects: Objects, nodes: Mapping[str, NodeView]) -> Plan:
    """Look at one claim."""
    if claims.fully_bound(claim) or claim.metadata.deletion_timestamp is not None:
        return NOTHING
    storage_class: StorageClass | None = objects(claims.CLASSES).get(("", claims.class_of_claim(claim)))
    waits = storage_class is not None and storage_class.volume_binding_mode == claims.WAIT_FOR_FIRST_CONSUMER
    volume = _volume_for(claim, objects(claims.VOLUMES), waits=waits)
    if volume is not None:
        return Plan(bind=volume)
    if storage_class is None or storage_class.provisioner != SIMULATED or claim.spec.volume_name:
        return NOTHING
    node = claim.metadata.annotations.get(claims.SELECTED_NODE, "")
    return NOTHING if waits and not node else Plan(make=_simulated(claim, storage_class, nodes.get(node)))


def bound_together(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Sequence[Alter]:
    """Both sides of a binding; neither if the volume is another claim's by then."""
    place = ObjectKey(claims.VOLUMES, "", volume.metadata.name)

    def alter_volume(current: Document) -> Document:
        reference: Document = current["spec"].get("claimRef") or {}
        if reference.get("uid", claim.metadata.uid) != claim.metadata.uid:
            raise Contended(place, 1)
        writing.set_bound_volume(current, volume, claim)
        return current

    def alter_claim(current: Document) -> Document:
        writing.set_bound_claim(current, volume)
        return current

    return (
        Alter(place, volume.metadata.uid, alter_volume),
        Alter(ObjectKey(claims.CLAIMS, claim.metadata.namespace, claim.metadata.name), claim.metadata.uid, alter_claim),
    )


def is_left_over(volume: PersistentVolume, objects: Objects) -> bool:
    """Whether a volume was made for a claim that is no more, and is not to be kept."""
    if volume.metadata.annotations.get(PROVISIONED_BY) != SIMULATED or volume.spec.claim_ref is None:
        return False
    if volume.spec.persistent_volume_reclaim_policy != "Delete":
        return False
    reference = volume.spec.claim_ref
    claim = objects(claims.CLAIMS).get((reference.namespace, reference.name))
    return claim is None or claim.metadata.uid != reference.uid


def first_phase(volume: PersistentVolume, objects: Objects) -> Alter | None:
    """What a new volume's phase becomes: Available without a claim, Bound if the claim that it names has it;
    None if it stays.

    A new volume is Pending, whatever its creator wrote. Source: pv_controller.go, syncVolume.
    """
    if volume.status.phase not in _NEW or volume.metadata.deletion_timestamp is not None:
        return None
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        phase = claims.AVAILABLE
    else:
        claim = objects(claims.CLAIMS).get((reference.namespace, reference.name))
        if claim is None or claim.metadata.uid != reference.uid or claim.spec.volume_name != volume.metadata.name:
            return None
        phase = claims.BOUND

    def alter(current: Document) -> Document | None:
        status: Document = current.setdefault("status", {})
        if status.get("phase", "") not in _NEW:
            return None
        status["phase"] = phase
        return current

    return Alter(ObjectKey(claims.VOLUMES, "", volume.metadata.name), volume.metadata.uid, alter)


def concerned(change: Change, objects: Objects) -> Iterator[ObjectKey]:
    """Other objects that a change makes worth a look: claims that a volume or class may help, the volume of a
    claim that went."""
    if change.resource == claims.CLAIMS and change.new is None:
        yield ObjectKey(claims.VOLUMES, "", _name_for(change.uid))
    elif change.resource == claims.CLAIMS and isinstance(change.new, PersistentVolumeClaim):
        if change.new.spec.volume_name:
            yield ObjectKey(claims.VOLUMES, "", change.new.spec.volume_name)
    elif change.resource == claims.VOLUMES and isinstance(change.new, PersistentVolume):
        yield from _unbound(objects, claims.class_of_volume(change.new))
    elif change.resource == claims.CLASSES and isinstance(change.new, StorageClass):
        yield from _unbound(objects, change.new.metadata.name)


def _unbound(objects: Objects, storage_class: str) -> Iterator[ObjectKey]:
    for (namespace, name), claim in objects(claims.CLAIMS).items():
        if not claims.fully_bound(claim) and claims.class_of_claim(claim) == storage_class:
            yield ObjectKey(claims.CLAIMS, namespace, name)


def _volume_for(
    claim: PersistentVolumeClaim, volumes: Mapping[NamespacedName, PersistentVolume], *, waits: bool
) -> PersistentVolume | None:
    """The volume that the claim names; else the smallest that is for it; else, unless it waits for a pod, the
    smallest that will do."""
    named = claim.spec.volume_name
    if named:
        found = volumes.get(("", named))
        mine = found is not None and (found.spec.claim_ref is None or matching.is_for(found.spec.claim_ref, claim))
        return found if mine else None
    demand = stock.demand_of(claim)
    items = [Item(one) for one in volumes.values() if claims.class_of_volume(one) == demand.storage_class]
    own = (
        item
        for item in items
        if matching.is_for(item.volume.spec.claim_ref, claim)
        and item.key[0] >= demand.size_nano
        and demand.alike(item.traits)
        and item.volume.metadata.deletion_timestamp is None
    )
    return _smallest(own) or (None if waits else _smallest(item for item in items if item.free and demand.suits(item)))


def _smallest(items: Iterable[Item]) -> PersistentVolume | None:
    best = min(items, key=lambda item: item.key, default=None)
    return None if best is None else best.volume


def _name_for(claim_uid: str) -> str:
    """Of a claim's volume: as provisioners name them, so that one that is made twice is made once."""
    return f"pvc-{claim_uid}"


def _simulated(claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeView | None) -> Document:
    meta, name = claim.metadata, _name_for(claim.metadata.uid)
    spec: Document = {
        "capacity": {claims.STORAGE: claim.spec.resources.requests.get(claims.STORAGE, "1Gi")},
        "accessModes": list(claim.spec.access_modes),
        "storageClassName": storage_class.metadata.name,
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "volumeMode": claim.spec.volume_mode or claims.FILESYSTEM,
        "csi": {"driver": SIMULATED, "volumeHandle": name},
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
    }
    key = storage_class.parameters.get(TOPOLOGY_KEY, "")
    value = node.node.metadata.labels.get(key) if node is not None and key else None
    if value is not None:
        there = {"key": key, "operator": "In", "values": [value]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: SIMULATED}},
        "spec": spec,
    }
