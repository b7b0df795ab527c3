"""Which claims a pod's volumes stand for, and what a claim and a volume say about each other.

Sources: component-helpers/storage/volume/{helpers,pv_helpers}.go,
component-helpers/storage/ephemeral/ephemeral.go.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import Pod
from podyard.objects.volumes import Volume

CLAIMS: Final = "persistentvolumeclaims"
"""Resource of claims."""
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses"

BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Annotation that names the class, before `storageClassName`."""
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is complete on both sides; its value does not matter."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume or claim that was not bound by its creator."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: for this node a volume is to be made."""

STORAGE: Final = "storage"
"""The resource of a claim's size and a volume's capacity."""
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
FILESYSTEM: Final = "Filesystem"
LOST: Final = "Lost"
AVAILABLE: Final = "Available"
BOUND: Final = "Bound"


class ClaimUse(NamedTuple):
    """A volume of a pod that stands for a claim in the pod's namespace."""

    name: str
    ephemeral: bool = False
    """The claim is made for the pod, and must be its own."""


def claim_of(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim that a volume of `pod` stands for; `None` if it stands for none."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod.metadata.name}-{volume.name}", ephemeral=True)
    return None


def claims_of(pod: Pod) -> Iterator[ClaimUse]:
    """The claims of a pod's volumes, in the order of the volumes; one may come twice."""
    for volume in pod.spec.volumes:
        use = claim_of(pod, volume)
        if use is not None:
            yield use


def has_claims(pod: Pod) -> bool:
    """Whether any volume of the pod stands for a claim."""
    return bool(pod.spec.volumes) and any(True for _ in claims_of(pod))


def named_claims(pod: Pod) -> Iterator[str]:
    """Names of the claims that the pod's creator named, in the order of the volumes; one may come twice."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def names(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether the pod's creator named this claim."""
    return claim.metadata.namespace == pod.metadata.namespace and claim.metadata.name in named_claims(pod)


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume of the pod stands for this claim, by its name: whoever it was made for."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(use.name == claim.metadata.name for use in claims_of(pod))


def foreign(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why the claim of an ephemeral volume is not the pod's own; empty if it is. Source:
    ephemeral.VolumeIsForPod."""
    owner = claim.metadata.controller
    if claim.metadata.namespace == pod.metadata.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return ""
    return f"PVC {full_name(claim.metadata)} was not created for pod {full_name(pod.metadata)} (pod is not owner)"


def full_name(metadata: ObjectMeta) -> str:
    """`namespace/name`."""
    return f"{metadata.namespace}/{metadata.name}"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Name of the storage class a claim asks for, or empty. Source: GetPersistentVolumeClaimClass."""
    annotated = claim.metadata.annotations.get(BETA_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Name of the storage class a volume belongs to, or empty. Source: GetPersistentVolumeClass."""
    annotated = volume.metadata.annotations.get(BETA_CLASS)
    return annotated if annotated is not None else volume.spec.storage_class_name


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether nothing is left to be done for the claim. Source: volumeBinder.isPVCFullyBound."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def not_found(kind: str, name: str) -> str:
    """What the API server says of an object that is not there; `kind` in lower case with its group."""
    return f'{kind} "{name}" not found'


def claim_not_found(name: str) -> str:
    """The same for a claim."""
    return not_found("persistentvolumeclaim", name)
