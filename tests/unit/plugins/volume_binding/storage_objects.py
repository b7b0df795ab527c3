"""Objects for hints, in as few words as possible."""

from typing import Any

from podyard.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from podyard.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from tests.support.objects import decoded, typed_pod


def _decoded(resource: str, name: str, namespace: str = "", meta: dict[str, Any] | None = None, **fields: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"} | (meta or {})
    return decoded(resource, {"metadata": metadata} | fields)


def pod(name: str = "p", *volumes: dict[str, Any], **more: Any) -> Pod:
    """A pod with these volumes."""
    listed = [{"name": f"v{at}"} | volume for at, volume in enumerate(volumes)]
    return typed_pod(name, **more, volumes=listed)


def uses(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


EPHEMERAL = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return _decoded("persistentvolumeclaims", name, namespace)


def volume(name: str = "pv", **labels: str) -> PersistentVolume:
    return _decoded("persistentvolumes", name, meta={"labels": labels})


def storage_class(name: str = "sc", mode: str | None = None, topologies: list[Any] | None = None) -> StorageClass:
    return _decoded("storageclasses", name, volumeBindingMode=mode, allowedTopologies=topologies or [])


def csi_node(served: str = "", **limits: int | None) -> CSINode:
    drivers = [
        {"name": name, "nodeID": "n"} | ({} if limit is None else {"allocatable": {"count": limit}})
        for name, limit in limits.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": served} if served else {}
    return _decoded("csinodes", "n1", meta={"annotations": annotations}, spec={"drivers": drivers})


def driver(name: str, *, told: bool) -> CSIDriver:
    return _decoded("csidrivers", name, spec={"storageCapacity": told})


def capacity(size: str | None = None, largest: str | None = None) -> CSIStorageCapacity:
    return _decoded("csistoragecapacities", "k", "default", capacity=size, maximumVolumeSize=largest)


def attachment(attacher: str = "csi.example.com") -> VolumeAttachment:
    return _decoded(
        "volumeattachments",
        "va",
        spec={"attacher": attacher, "nodeName": "n1", "source": {"persistentVolumeName": "pv"}},
    )
