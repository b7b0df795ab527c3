"""New versions of volumes and claims, to be written together with the pod's binding; and what makes them
bound to each other.

Nobody else completes a binding of a volume that was chosen for a pod, so both sides of it are written at
once.

Source: kube-scheduler v1.36.2, component-helpers/storage/volume/pv_helpers.go (GetBindVolumeToClaim);
kube-controller-manager v1.36.2, pkg/controller/volume/persistentvolume/pv_controller.go (bind).
"""

from typing import Any

from podyard.framework.interfaces import ObjectWrite
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault
from podyard.objects import claims
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.plugins.volume_binding import matching


def bind(claim: PersistentVolumeClaim, volume: PersistentVolume, cluster: Snapshot) -> tuple[ObjectWrite, ...]:
    """The volume for the claim, and the claim bound to the volume.

    :raises PluginFault: if one of the documents is not known
    """
    return _bound_volume(claim, volume, cluster), _bound_claim(claim, volume, cluster)


def select_node(claim: PersistentVolumeClaim, node_name: str, cluster: Snapshot) -> ObjectWrite:
    """The claim with the node for which its volume is to be made."""
    document = _document(claims.CLAIMS, claim.metadata.namespace, claim.metadata.name, cluster)
    _annotate(document, claims.SELECTED_NODE, node_name)
    return _write(claims.CLAIMS, claim.metadata.namespace, claim.metadata.name, document)


def _bound_volume(claim: PersistentVolumeClaim, volume: PersistentVolume, cluster: Snapshot) -> ObjectWrite:
    name = volume.metadata.name
    document = _document(claims.VOLUMES, "", name, cluster)
    set_bound_volume(document, volume, claim)
    return _write(claims.VOLUMES, "", name, document)


def set_bound_volume(document: dict[str, Any], volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
    """Change the document of `volume`: it is bound to the claim."""
    if not matching.is_for(volume.spec.claim_ref, claim):
        _annotate(document, claims.BOUND_BY_CONTROLLER, "yes")
    document.setdefault("spec", {})["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    }
    document["status"] = {**(document.get("status") or {}), "phase": claims.BOUND}


def _bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume, cluster: Snapshot) -> ObjectWrite:
    namespace, name = claim.metadata.namespace, claim.metadata.name
    document = _document(claims.CLAIMS, namespace, name, cluster)
    set_bound_claim(document, volume)
    return _write(claims.CLAIMS, namespace, name, document)


def set_bound_claim(document: dict[str, Any], volume: PersistentVolume) -> None:
    """Change a claim's document: it is bound to the volume."""
    document.setdefault("spec", {})["volumeName"] = volume.metadata.name
    _annotate(document, claims.BIND_COMPLETED, "yes")
    _annotate(document, claims.BOUND_BY_CONTROLLER, "yes")
    document["status"] = {
        **(document.get("status") or {}),
        "phase": claims.BOUND,
        "accessModes": list(volume.spec.access_modes),
        "capacity": dict(volume.spec.capacity),
    }


def _annotate(document: dict[str, Any], key: str, value: str) -> None:
    metadata = document.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), key: value}


def _document(resource: str, namespace: str, name: str, cluster: Snapshot) -> dict[str, Any]:
    found = cluster.document(resource, namespace, name)
    if found is None:
        raise PluginFault(f"the document of {resource} {namespace}/{name} is not known".replace(" /", " "))
    return found


def _write(resource: str, namespace: str, name: str, document: dict[str, Any]) -> ObjectWrite:
    return ObjectWrite(resource=resource, namespace=namespace, name=name, document=document)
